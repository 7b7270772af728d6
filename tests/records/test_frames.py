"""Secrets in frames that people write around them: in calls, in names of other languages and widths, in blocks of YAML,
in forms. Values are made anew at each run, of every length and alphabet; what looks alike and holds no secret stays.
"""

from __future__ import annotations

import base64
import random
import string

import pytest

from codeagent_lsp.records.masking import Masking

FRAMES = r"""
axios.defaults.headers.common['Authorization'] = '§';
request.setValue("§", forHTTPHeaderField: "X-API-Key")
request.addValue("§", forHTTPHeaderField: "Authorization")
[request setValue:@"§" forHTTPHeaderField:@"X-Api-Key"];
Keychain.set("§", forKey: "authToken")
UserDefaults.standard.set("§", forKey: "accessToken")
hmac.New(sha256.New, []byte("§"))
Jwts.builder().signWith(SignatureAlgorithm.HS256, "§")
mysql_real_connect(conn, "localhost", "root", "§", "db", 0, NULL, 0);
@Value("§") private String apiKey;
@Value("§")⏎private String apiKey;
const secret = "§1".concat("§2");
const secret = "§1"⏎  .concat("§2");
String secret = new StringBuilder().append("§1").append("§2").toString();
String password = "§1".plus("§2");
$token = <<<EOT⏎§⏎EOT;
$token = <<<'EOT'⏎§⏎EOT;
token = <<~EOS⏎  §⏎EOS
ConvertTo-SecureString "§" -AsPlainText -Force
ConvertTo-SecureString -String '§' -AsPlainText -Force
CREATE USER bob IDENTIFIED BY §;
CREATE DATABASE LINK l CONNECT TO u IDENTIFIED BY §;
secret:⏎  name: x⏎  value: §
api_key:⏎  description: the key⏎  default: "§"
auth_token:⏎  type: string⏎  required: true⏎  default: §
Content-Disposition: form-data; name="password"⏎⏎§⏎--b
Content-Disposition: form-data; name="api_key"⏎Content-Type: text/plain⏎⏎§⏎--b
PuTTY-User-Key-File-2: ssh-rsa⏎Private-Lines: 1⏎§
client.username_pw_set("bob", "§")
pulumi config set --secret dbPassword §
aws ssm put-parameter --name x --value "§" --type SecureString
pass insert -m x <<< "§"
secret-tool store --label=x <<< §
keyring set s u <<< §
etcdctl --user root:§ get x
cargo login §
gem push --key §
.dockerconfigjson: §
tls.key: §
credentials_json: §
пароль_бд = "§"
clé_api = "§"
chave_api = "§"
contraseña_bd = "§"
ＡＰＩ＿ＫＥＹ＝§
ｐａｓｓｗｏｒｄ＝§
ｐａｓｓｗｏｒｄ： "§"
""".strip("\n").split("\n")

PLAIN = r"""
su - postgres <<EOF⏎psql -c 1⏎EOF
pulumi config set --plaintext region eu-central1
the interface identified by NL80211_ATTR_MAC01
a group key is identified by KEY_ID_0123 here
secret:⏎  name: my-release-database⏎  key: password
api_key:⏎  description: the key of the service⏎  type: string
token:⏎  kind: identifier⏎  start: 0⏎  end: 12
Content-Disposition: form-data; name="title"⏎⏎A plain title of 2024⏎--b
view.set("My first title", forKey: "title")
label.setText("Sign in", forState: "token")
const word = "first".concat("second");
String name = builder.append("first").append("second").toString();
@Value("${api.key}") private String apiKey;
@Value("Sign in") private String title;
hmac.New(sha256.New, key)
secret_api = "kubernetes"
auth_api = "/v2/login"
token_json = "tokens.json"
ＡＢＣ＝ｘｙｚ
$text = <<<EOT⏎A line of words.⏎EOT;
status_code = 200
assertion: "equal"
recovery_code = "none"
pepper = "red"
code_verifier = "S256"
""".strip("\n").split("\n")

ALPHABETS = (
    string.ascii_letters + string.digits,
    string.digits + "abcdef",
    string.ascii_letters + string.digits + "+/",
)


def value(chosen: random.Random, length: int) -> str:
    """A value that a program could have made."""
    if chosen.random() < 0.3:
        return base64.b64encode(chosen.randbytes(length * 3 // 4)).decode()
    alphabet = chosen.choice(ALPHABETS)
    # A letter of each kind and digits, as nearly all that are made at random have.
    made = [chosen.choice(alphabet) for _ in range(length - 6)]
    return "".join(chosen.sample([*made, *"aB3fE7"], length))


def shown(frame: str, secret: str) -> str:
    half = len(secret) // 2
    text = frame.replace("§1", secret[:half]).replace("§2", secret[half:]).replace("§", secret)
    return Masking().hide(text.replace("⏎", "\n"))


def leaks(frame: str, lengths: tuple[int, ...], seed: int) -> list[str]:
    chosen = random.Random(f"{frame}{seed}")
    found = []
    for length in lengths:
        secret = value(chosen, length)
        masked = shown(frame, secret)
        if any(secret[at : at + 10] in masked for at in range(0, len(secret) - 9, 5)):
            found.append(f"{length}: {frame}")
    return found


@pytest.mark.parametrize("frame", FRAMES)
def test_no_frame_leaves_a_secret(frame: str) -> None:
    assert leaks(frame, (32, 40, 1_000), 1) == []


@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES)
def test_nor_at_any_length(frame: str) -> None:
    assert [each for seed in range(8) for each in leaks(frame, (32, 48, 64, 300, 4_000), seed)] == []


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_alike_stays(text: str) -> None:
    text = text.replace("⏎", "\n")
    assert Masking().hide(text) == text


def test_what_stands_around_a_wide_name_stays() -> None:
    """Only the secret is replaced: the text around it keeps its width."""
    secret = value(random.Random(3), 32)
    masked = Masking().hide(f"説明ＡＢＣ\nＡＰＩ＿ＫＥＹ＝{secret}\nおわりＸ")
    assert masked.startswith("説明ＡＢＣ\nＡＰＩ＿ＫＥＹ＝<secret:")
    assert masked.endswith(">\nおわりＸ")


def test_a_key_in_base64_is_no_path() -> None:
    """Base64 has slashes, so one key of three hundred begins and goes on as a path does."""
    chosen = random.Random(11)
    for _ in range(60):
        first, second = (value(chosen, length).replace("/", "k").replace("+", "p") for length in (18, 24))
        for frame in ('password = "§"', "API_KEY=§", "secret: §", "<password>§</password>"):
            assert second not in shown(frame, f"/{first}/{second}")
    for path in ("/usr/lib/x86_64-linux-gnu/libssl3", "/etc/ssl/private/key1", "/home/bob/Documents/Token2"):
        assert path in shown('secret = "§"', path)
