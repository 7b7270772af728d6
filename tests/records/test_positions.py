"""A secret is found by its place beside names, and in a sentence; names are kept; hiding twice changes nothing."""

from __future__ import annotations

import base64
import random

import pytest

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.masking import Masking
from tests.records.formats import ALNUM, CONTEXTS, HEX, PLACED, TOKENS, chars
from tests.records.lookalikes import everything
from tests.records.spellings import spellings, written

# `§` is a secret, `§2` another one, `⏎` the end of a line.
FRAMES = {
    "parallel assignment": r"""
user, password = "bob", "§"
username, password = 'bob', '§'
password, user = "§", "bob"
host, user, password = "localhost", "root", "§"
(user, password) = ("bob", "§")
[user, password] = ["bob", "§"]
const [user, password] = ["bob", "§"];
let [login, token] = ["bob", "§"]
user, password := "bob", "§"
user, pwd, db := "bob", "§", "main"
local user, password = "bob", "§"
my ($user, $password) = ("bob", "§");
my ($user, $password) = ('bob', '§');
list($user, $password) = ["bob", "§"];
var (user, password) = ("bob", "§");
let (user, password) = ("bob", "§");
val (user, password) = Pair("bob", "§")
user, password = ("bob", "§")
user, password = ["bob", "§"]
self.user, self.password = "bob", "§"
$user, $password = "bob", "§"
password, secret = "§", "§2"
user,password="bob","§"
""",
    "lists": r"""
passwords = ["§", "§2"]
passwords = ["§"]
PASSWORDS = ("§", "§2")
"passwords": ["§", "§2"]
passwords:⏎  - §⏎  - §2
secrets = {"§", "§2"}
passwords = new String[] {"§", "§2"};
List<String> passwords = List.of("§", "§2");
passwords := []string{"§", "§2"}
let passwords = vec!["§", "§2"];
passwords=(§ §2)
PASSWORDS="§ §2"
""",
    "here-documents": r"""
cat > .env <<EOF⏎DB_PASSWORD=§⏎EOF
mysql <<EOF⏎CREATE USER bob IDENTIFIED BY '§';⏎EOF
psql <<EOF⏎ALTER USER bob WITH PASSWORD '§';⏎EOF
docker login -u bob --password-stdin <<< "§"
docker login -u bob --password-stdin <<EOF⏎§⏎EOF
chpasswd <<EOF⏎bob:§⏎EOF
chpasswd <<< "bob:§"
sudo -S ls <<< "§"
echo "§" | sudo -S ls
gh auth login --with-token <<< "§"
kinit bob <<< "§"
cryptsetup open /dev/sda x <<< "§"
""",
    "beside errors, types, schemas and containers": r"""
BAD_PASSWORD = "§"
BAD_PASSWORD = §
INVALID_TOKEN: "§"
WRONG_PASSWORD=§
typeof x.password === "string" && x.password === "§"
if (password == "§") { f(); }
PASSWORD = §
DB_PASSWORD=0x§
"Authorization": {"value": "Bearer §"}
echo § | docker login -u bob --password-stdin
echo § | podman secret create db -
echo "§" | docker run -i x mysql --password-stdin
""",
    "arguments": r"""
keyring.set_password("app", "bob", "§")
set_password("§")
user.set_password("§")
user.setPassword("§");
setPassword('§')
login("bob", "§")
client.login("bob", "§")
smtp.login('bob@example.com', '§')
ftp.login("bob", "§")
authenticate("bob", "§")
authenticate(username, "§")
HTTPBasicAuth("bob", "§")
requests.get(url, auth=("bob", "§"))
new PasswordAuthentication("bob", "§".toCharArray())
new UsernamePasswordCredentials("bob", "§")
DriverManager.getConnection("jdbc:x", "bob", "§")
mysqli_connect("localhost", "root", "§", "db")
new PDO("mysql:host=x", "root", "§")
basicAuth("bob", "§")
withBasicAuth("bob", "§")
req.SetBasicAuth("bob", "§")
.basic_auth("bob", Some("§"))
BasicAWSCredentials("AKIDEXAMPLE", "§")
smtp.PlainAuth("", "bob", "§", "host")
def connect(host, user, password): ...⏎connect("db", "bob", "§")
function connect(host, user, password) {}⏎connect("db", "bob", "§")
def login(self, user, password):⏎    pass⏎x.login("bob", "§")
func connect(host string, password string) {}⏎connect("db", "§")
createUser("bob", "§")
create_user("bob", "bob@example.com", "§")
change_password("§", "§2")
jwt.encode(payload, "§", algorithm="HS256")
jwt.sign(payload, "§")
jwt.verify(token, '§')
crypto.createHmac("sha256", "§")
hmac.new(b"§", msg)
createCipheriv("aes", "§", iv)
""",
    "values before names": r"""
- value: §⏎  name: DB_PASSWORD
  - value: "§"⏎    name: DB_PASSWORD
{"value": "§", "name": "DB_PASSWORD"}
{⏎  "value": "§",⏎  "name": "DB_PASSWORD"⏎}
value = "§"⏎name = "db_password"
<add value="§" key="Password" />
<property value="§" name="password"/>
{ Value: "§", Name: "DB_PASSWORD" }
{"Value": "§", "Key": "API_TOKEN"}
- name: DB_PASSWORD⏎  value: §
- name: DB_PASSWORD⏎  type: string⏎  value: §
- value: §⏎  type: x⏎  name: API_KEY
{name: "x", value: "y"}, {value: "§", name: "API_KEY"}
""",
    "sentences": r"""
Das Passwort ist §
Das Passwort ist "§".
Das Passwort lautet §.
Passwort: §
Mein Kennwort ist: §
Dein neues Passwort: §
Nimm als Passwort §
Verwende das Passwort § für den Server.
§ ist das Passwort
Le mot de passe est §
Le mot de passe est « § »
Mot de passe : §
mot de passe: §
Utilise le mot de passe § pour te connecter.
§ est le mot de passe
La contraseña es §
La contraseña es: §
Contraseña: §
Usa la contraseña § para entrar.
§ es la contraseña
A senha é §
La password è §
パスワードは§です
パスワードは §
パスワードは「§」です。
パスワード：§
パスワードは「§」
§ がパスワードです
ログインパスワードは§です。
비밀번호는 §입니다
비밀번호는 §
비밀번호: §
비밀번호는 "§"입니다.
암호는 §이다
密码是§
密码是 §
密码为§
密码：§
密码是“§”。
密码:§
我的密码是§，不要告诉别人
请使用密码§登录
用户名 bob 密码 §
口令是§
数据库密码是§。
密码设置为§
密碼是§
the password is §
The password is "§".
password is: §
my password: §
use password § to log in
Use the password § to log in.
with the password §
log in as bob with password §
user bob, password §
bob's password is §
§ is the password
"§" is the password
пароль: §
Пароль — §
Пароль §
мой пароль §
""",
    "names": r"""
["DB_PASSWORD", "§"]
("MYSQL_NATIVE_PASSWORD", "§")
existingSecret: §
existingSecret: "§"
"Authorization": {"§": true}
echo § | docker run -i image
"additionalProperties": {"password": "§"}
DATA_KEY=§
SERVER_KEY=§
STRIPE_SK=§
PAT=§
data_key = "§"
server_key: "§"
GITHUB_PAT=§
STRIPE_SK_LIVE=§
FCM_SERVER_KEY=§
DB_PASS=§
PGPASSWORD=§
MYSQL_PWD=§
AWS_SK=§
SSH_PASSPHRASE=§
HMAC_KEY=§
COOKIE_KEY=§
MASTER_KEY=§
ROOT_KEY=§
SALT_KEY=§
NEXTAUTH_SECRET=§
PASSKEY=§
WEBHOOK_SIGNING_KEY=§
RSA_KEY=§
BOT_TOKEN=§
TOTP_SEED=§
ENCRYPT_KEY=§
DECRYPTION_KEY=§
CRYPTO_KEY=§
LINEAR_KEY=§
HF_KEY=§
""",
}
HARMLESS = r"""
"jsonwebtoken": "^9.0.2",
jsonwebtoken: 9.0.2
"@octokit/auth-token": "~4.0.0-beta.2"
rpassword = "7.3.1"
io.jsonwebtoken:jjwt-api:0.11.5
user, password = get_credentials()
user, password = args
user, password = None, None
user, password = "user", "password"
user, password = request.user, request.password
const [user, password] = [props.user, props.password];
for user, password in pairs:
host, user, password = parse(url)
passwords = ["short", "password", "letmein"]
secrets = ["db-password", "api-key"]
secrets:⏎  - db_password⏎  - api_key
passwords = []
tokens = ["if", "else", "while"]
tokens: ["int32", "float64"]
passwords = load("passwords.txt")
keys = ["id", "name2"]
login("bob", password)
login("bob", "password")
client.login(username, password)
login("user", getpass())
authenticate("bob", token)
set_password("password")
set_password(new_password)
set_token("Bearer")
setPassword("Passwort")
def connect(host, user, password): ...⏎connect("db", "bob", password)
def connect(host, user, password): ...⏎connect("db", "bob", "password")
def connect(host, user, password="")⏎connect("db2", "bob9")
createHmac("sha256", key)
jwt.sign(payload, process.env.SECRET)
jwt.decode(token, "RS256")
hmac.new(key, b"message", "sha256")
- value: true⏎  name: DB_PASSWORD_REQUIRED
- value: x1y2z3⏎  name: HOSTNAME
{"value": "", "name": "password"}
{"value": "abc123", "name": "x"}, {"name": "password", "value": ""}
- name: password⏎  type: string⏎  required: true
name: password⏎description: value: see below
The password sha256 hash is stored.
Use password base64 encoding.
password PBKDF2 iterations
a password v2.10 format
The password RFC6749 grant
Das Passwort sha512 wird gespeichert.
Das Passwort ist ungültig.
Das Passwort ist erforderlich
Le mot de passe est incorrect
La contraseña es obligatoria
パスワードは必須です
パスワードは8文字以上です
비밀번호는 필수입니다
密码是必填项
密码是 8 位以上
the password is required
sha256 is the password hash
option2 is the password field
Section 12 is the password chapter
password — required
data_key = "id"
server_key: name
DATA_KEY=user_id
SERVER_KEY=/etc/ssl/server.pem
locale_sk = "slovak"
PAT=true
PAT = re.compile("a")
compat=yes1
api_keys:⏎  - name⏎  - id
sudo -S ls < /dev/null
cat <<EOF⏎hello world2⏎EOF
docker login --help
"""


def _lines(table: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in table.strip("\n").split("\n")]


@pytest.mark.slow
@pytest.mark.parametrize("about", FRAMES)
@pytest.mark.parametrize("secret", ["hunter22", "Zx81kQp0Lm4vT7yB"])
def test_a_secret_is_found_by_its_place_and_the_user_is_kept(about: str, secret: str) -> None:
    wrong = []
    for frame in _lines(FRAMES[about]):
        text = frame.replace("§2", "Qw3rTy9uIoP4").replace("§", secret)
        masking = Masking()
        hidden = masking.hide(text)
        found = secret not in hidden and "Qw3rTy9uIoP4" not in hidden and ("bob" in hidden) == ("bob" in text)
        if not found and not (about == "names" and secret == "hunter22"):
            wrong.append((text, hidden))
        assert masking.reveal(hidden) == text
    assert wrong == []


def test_names_words_and_algorithms_in_such_places_are_kept() -> None:
    assert [(text, Masking().hide(text)) for text in _lines(HARMLESS) if Masking().hide(text) != text] == []


def test_our_own_keys_are_found_in_any_spelling() -> None:
    key = "zq-own-" + "Key_93kd/Lw==xP"
    data = key.encode()
    spelled = [
        *(base64.b32encode(b"ab"[:shift] + data).decode() for shift in range(3)),
        base64.b32encode(data + b"xyz").decode().lower(),
        *("".join(form % byte for byte in data) for form in ("\\x%02x", "\\u%04x", "\\%03o", "%%%02X", "&#%d;")),
        *(", ".join(form % byte for byte in data) for form in ("%d", "0x%02x", "0x%02X")),
        *(data.hex(":"), data.hex(" "), f'"{key[:7]}" + "{key[7:]}"', f"{key[:9]}\\\n{key[9:]}", "', '".join(key)),
        *(f"'{key[:5]}' .\n   '{key[5:12]}' .\n '{key[12:]}'", f"{key[:10]} {key[10:]}"),
    ]
    for text in spelled:
        masking = Masking([key])
        hidden = masking.hide(f"x {text} y")
        assert MARK.search(hidden), text
        assert masking.reveal(hidden) == f"x {text} y"


def _texts() -> list[str]:
    found = [line.replace("§2", "secret9word") for table in FRAMES.values() for line in _lines(table)]
    found = [line.replace("§", value) for line in found for value in ("hunter22", "Zx81kQp0Lm4vT7yB")]
    for _, frame in spellings():
        values = ("hunter22", chars(random.Random(frame), ALNUM, 16), chars(random.Random(frame), HEX, 40))
        found += [written(frame, value) for value in values]
    for name, make in TOKENS.items():
        found += [frame.format(make(random.Random(name))) for frame in CONTEXTS.values()]
    found += [frame.format(make(random.Random(frame))) for frame, make in PLACED.values()]
    return [*found, *everything(), *_lines(HARMLESS)]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_hiding_twice_changes_nothing(part: int) -> None:
    texts = _texts()
    pairs = [f"{one}\n{other}" for one, other in zip(texts, reversed(texts), strict=True)]
    joined = [f"{texts[at]} {texts[at * 7 % len(texts)]}" for at in range(0, len(texts), 3)]
    changed = []
    for text in (*texts, *pairs, *joined)[part * 5 :: 40]:
        masking = Masking()
        hidden = masking.hide(text)
        if masking.hide(hidden) != hidden or masking.reveal(hidden) != text:
            changed.append(text)
    assert changed == []
