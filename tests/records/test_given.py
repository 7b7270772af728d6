"""Passwords that people choose, of words and digits or of words alone: found where code, a table or a file of settings
gives them to a name, of every length. Captions, names and tables of other things stay.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from codeagent_lsp.records.masking import Masking

WORDS = "velvet canyon marble otter lantern pebble saffron tundra cobalt nectar juniper hammock quartz biscuit".split()  # noqa: SIM905
LENGTHS = (16, 40, 300, 4_000)
GIVEN = r"""
stripe = SecretStr("§")
std::string password("§");
const std::string apiKey{"§"};
Client::builder().api_key("§").build()?;
password: Some("§".to_owned()),
map.insert("api_key".to_string(), "§".to_string());
strcpy(cfg->password, "§");
expect(config.password).toBe('§');
await page.fill('input[name=password]', '§');
await user.type(screen.getByLabelText(/password/i), '§');
fill_in 'Password', with: '§'
get password() { return '§'; }
(def api-key "§")
static HMAC_SECRET: &[u8] = b"§";
public string Password { get; set; } = "§";
private val password by lazy { "§" }
Const DbPassword As String = "§"
auto password = R"(§)";
my $secret = q{§};
apiToken = ''⏎  §⏎'';
password = os.environ.get("DB_PASSWORD") or "§"
config("SECRET_KEY", default="§")
jwt_secret: SecretStr = Field(default="§", alias="JWT")
const secret = process.env.JWT_SECRET || '§';
my $password = $ENV{PASSWORD} // '§';
const dbPassword = env === 'prod' ? '§' : undefined;
let pw = std::env::var("DB_PASSWORD").unwrap_or_else(|_| "§".into());
val password = getProperty("password").getOrElse("§")
variable "db_password" {⏎  type    = string⏎  default = "§"⏎}
DEPLOY_TOKEN:⏎  value: "§"
DBPassword:⏎  Type: String⏎  Default: §
{"ParameterKey": "DBPassword", "ParameterValue": "§"}
args:⏎  - --db-password⏎  - §
requirepass §
enable secret 0 §
aws configure set aws_secret_access_key §
set $api_token "§";
<wsse:Password Type="x">§</wsse:Password>
<setting name="DbPassword" serializeAs="String"><value>§</value></setting>
<input type="password" name="p" value="§">
<key>ClientSecret</key>⏎<string>§</string>
&lt;password&gt;§&lt;/password&gt;
  ["password"]=>⏎  string(16) "§"
assertEquals("§", user.getPassword());
url.UserPassword("bob", "§")
user.auth('bob', '§')
if ("§".equals(user.getPassword())) {}
'Basic ' + btoa('bob:§')
headers = {"Authorization": "Bearer " + "§"}
echo -n 'bob:§' | base64
PASSWORD=${DB_PASSWORD-§}
npm config set //registry.example.org/:_authToken §
proxy_set_header X-Api-Key §;
password: str = typer.Option("§", "--password")
password: str = field(default_factory=lambda: "§")
const SIGNING_KEY: [u8; 32] = *b"§";
document.querySelector('#password').value = '§';
<Password>⏎  <![CDATA[§]]>⏎</Password>
<param-name>clientSecret</param-name><param-value>§</param-value>
<tr><th>API key</th><td><code>§</code></td></tr>
<tr><th>User</th><th>Password</th></tr>⏎<tr><td>bob</td><td>abc</td></tr>⏎<tr><td>amy</td><td>§</td></tr>
Our API key for staging is `§`.
请把数据库密码改成 § 再重启。
接口密钥「§」已更新
请使用密码“§”登录
| service | user | password |⏎|---|---|---|⏎| db | root | § |
user | password⏎---- | --------⏎bob | §
 id | name | password ⏎----+------+------⏎  1 | bob  | §⏎(1 row)
+----+----------+⏎| id | password |⏎+----+----------+⏎|  1 | § |⏎+----+----------+
│ user │ password │⏎├──────┼──────────┤⏎│ bob  │ § │
======  ========⏎user    password⏎======  ========⏎bob     §⏎======  ========
name,username,password,url⏎mail,bob,§,https://x.example
"title","login","secret"⏎"x","bob","§"
user;passwort;rolle⏎bob;§;admin
user	password⏎bob	§
INSERT INTO users (id, password, n) VALUES⏎ (1, 'none', 2),⏎ (2, '§', 3);
"""
PHRASES = r"""
password = "§"
{"password": "§"}
secret: '§'
<password>§</password>
CREATE USER bob IDENTIFIED BY '§';
const passphrase = `§`;
"""
PLAIN = r"""
{"password": "enter your new password here", "secret": "choose some memorable phrase please"}
password: optional connection string parameter
password: "must not match the user name"
errors.add(:password, "needs more characters than before")
<input type={showPassword ? "text" : "password"}>
const token = next() || "identifier";
token_type = kind or "bearer"
auth names such as "x509_common_name" or "x509_subject_alternative_name"
_keys = {⏎  "rsa-key": RSAKey,⏎  "rsa-sha2-512-cert-v01@openssh.com": RSAKey,⏎}
	Encrypt_key      [32]uint8
DECLARE_PEM_rw(PublicKey, EVP_PKEY)⏎DECLARE_PEM_rw_ex2048(PUBKEY12, EVP_PKEY)
'password',⏎'algorithm',⏎
apt	python3-x	1.0⏎apt	libpassword	2.40⏎apt	libclang14-dev	1:14.0.6
| Token | Meaning |⏎|---|---|⏎| IDENT_12 | a name |
password = ''⏎user = ''
getByLabel("Password").click("button")
git clone git@example.com:Org/Repo22.git
sed -E 's/(a)(b)/$1$2$3$4$5$6$7$8$9/'
log in with GitHub/GitLab2024
The access key of the second API is: base64url text (RFC4648)
The client secret that users of OAuth2.0 set to SHA256-hashed text
echo "hello2" | base64
bypass = enabled2
console.log(derivedKey.toString('hex'));  // '3745e48...08d59ae'
DEBUG  Token  Secret⏎INFO12  read2024  parsed33
"{SHA}{PLAIN}{CRYPT}"
"""


def of_words(chosen: random.Random, length: int) -> str:
    """Return words and numbers, cut to a length."""
    made = "Cobalt7-9"
    while len(made) < length:
        made += "-" + chosen.choice(WORDS) + chosen.choice(("", "", "4", "27"))
    return made[: length - 1] + "8"


def phrase(chosen: random.Random, length: int) -> str:
    """Return words alone, about as many characters as asked."""
    return " ".join(chosen.choice(WORDS) for _ in range(max(4, length // 7)))


def left(frames: str, make: Callable[[random.Random, int], str]) -> list[str]:
    found = []
    for frame in frames.strip("\n").split("\n"):
        for length in LENGTHS:
            secret = make(random.Random(f"{frame}{length}"), length)
            text = frame.replace("§", secret).replace("⏎", "\n")
            masking = Masking()
            masked = masking.hide(text)
            if any(secret[at : at + 10] in masked for at in range(0, len(secret) - 9, 5)):
                found.append(f"{length}: {frame}")
            elif masking.hide(masked) != masked or masking.reveal(masked) != text:
                found.append(f"again {length}: {frame}")
    return found


@pytest.mark.slow
def test_a_password_of_words_and_digits_is_found_where_it_is_given() -> None:
    assert left(GIVEN, of_words) == []


def test_a_phrase_of_words_is_found_right_behind_its_name() -> None:
    assert left(PHRASES, phrase) == []


@pytest.mark.parametrize("text", PLAIN.strip("\n").split("\n"))
def test_captions_names_and_other_tables_stay(text: str) -> None:
    text = text.replace("⏎", "\n")
    assert Masking().hide(text) == text


def test_only_the_column_of_its_name_is_hidden() -> None:
    secret = of_words(random.Random(5), 24)
    rows = "".join(f"| host{number} | {secret}{number} | Remark10-{number} |\n" for number in range(20))
    table = f"| host | password | remark |\n|------|----------|--------|\n{rows}\nRemark10-{secret}\n"
    masked = Masking().hide(table)
    assert f"| {secret}" not in masked
    assert masked.count("| Remark10-") == 20 and masked.count("| host") == 21


def test_a_folded_secret_is_hidden_with_all_its_lines() -> None:
    chosen = random.Random(6)
    lines = ["".join(chosen.choices("abcdefGHIJKL0123456789", k=64)) for _ in range(4)]
    text = "token:\n    " + "\n    ".join(lines) + "\nuser: bob\n"
    masked = Masking().hide(text)
    assert masked.endswith("\nuser: bob\n")
    assert not any(line[:12] in masked for line in lines)
