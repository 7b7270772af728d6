"""How a secret is written in the files of the world: a frame for each spelling, `§` where the secret stands.

Some write it in parts: `§+` pieces of a concatenation, `§'` single characters, `§#` numbers, `§|` folded lines,
each with what stands between the parts in brackets. `⏎` is the end of a line, `¶` three quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_PIECES = re.compile(r"§(?P<how>[+'#|\\])(?P<between>\[.*?\])", re.DOTALL)

SPELLINGS: Mapping[str, str] = {
    "python": r"""
password = "§"
password = '§'
password: str = "§"
DB_PASSWORD: Final[str] = '§'
api_key = r"§"
api_key = b'§'
api_key = f"§"
secret_key = '''§'''
secret_key = ¶§¶
secret_key = ¶\⏎§⏎¶
password        =        "§"
password = (⏎    "§"⏎)
password = (⏎    "§+["⏎    "]"⏎)
password = "§+[" + "]"
password = '§+[' \⏎    ']'
password = os.getenv("DB_PASSWORD", "§")
password = os.environ.get('DB_PASSWORD', '§')
password = os.environ.get("DB_PASSWORD") or "§"
password = environ.get("DB_PASSWORD", default="§")
client = Client(api_key="§")
client = Client(⏎    token="§",⏎)
config["password"] = "§"
config['db']['password'] = '§'
os.environ["API_TOKEN"] = "§"
os.environ.setdefault("API_TOKEN", "§")
parser.add_argument("--api-key", default="§")
password = SecretStr("§")
password = base64.b64decode("§")
password: SecretStr = SecretStr("§")
password = "".join(["§+[", "]"])
password = bytes([§#[, ]]).decode()
def connect(user="app", password="§"):
def connect(user: str = "app", password: str = "§") -> None:
credentials = {"user": "app", "password": "§"}
credentials = dict(user="app", password="§")
credentials = ("password", "§")
if password == "§":
assert token == '§'
monkeypatch.setenv("API_TOKEN", "§")
print("the password is §")
# the password is §
# password: §
field(name="password", default="§")
password = getpass.getpass() or "§"
keyring.set_password("app", "bob", "§")
""",
    "javascript": r"""
const apiKey = "§";
const apiKey = `§`;
let password: string = '§';
export const API_KEY = "§" as const;
const password = process.env.DB_PASSWORD ?? "§";
const password = process.env.DB_PASSWORD || '§';
const password = process.env["DB_PASSWORD"] || `§`;
const { password = "§" } = process.env;
module.exports = { apiKey: '§' };
const c = { "api-key": "§" };
headers: { "X-Api-Key": "§" },
headers.set('X-Api-Key', '§');
const secret = "§+[" + "]";
const secret = "§+[" +⏎  "]";
const secret = ['§+[', ']'].join('');
const secret = [§'[, ]].join('');
const secret = String.fromCharCode(§#[, ]);
const password = Buffer.from("§", "base64").toString();
const password = atob("§");
this.password = '§';
config.password="§"
process.env.API_TOKEN = "§";
window.API_KEY="§"
var a={user:"x",password:"§",b:1};
{"password":"§"}
fetch(u,{headers:{authorization:"Bearer §"}})
password: isProd ? env.password : "§",
<Login password="§" />
<Login password={"§"} />
import.meta.env.VITE_API_KEY ?? "§"
""",
    "java and kotlin": r"""
String password = "§";
private static final String API_KEY = "§";
char[] password = {§'[, ]};
char[] password = new char[] {§'[, ]};
byte[] secretKey = {§#[, ]};
byte[] secretKey = new byte[] {§#[, ]};
String password = System.getenv().getOrDefault("DB_PASSWORD", "§");
String password = Optional.ofNullable(System.getenv("DB_PASSWORD")).orElse("§");
@Value("${db.password:§}")
@Value("${app.api-key:§}")
props.setProperty("db.password", "§");
props.put("password", "§");
builder.password("§").build();
config.setPassword("§");
ds.setPassword(⏎    "§");
val password = "§"
val password: String = ¶§¶
val apiKey = System.getenv("API_KEY") ?: "§"
const val API_KEY = "§"
buildConfigField("String", "API_KEY", "\"§\"")
System.setProperty("api.token", "§");
String password = "§+["⏎    + "]";
""",
    "go and rust": r"""
const apiKey = "§"
const apiKey string = "§"
var password = `§`
password := "§"
apiKey := []byte("§")
cfg := Config{Password: "§"}
    Password:    "§",
os.Setenv("API_TOKEN", "§")
var secret = [...]byte{§#[, ]}
token := getenv("API_TOKEN", "§")
viper.SetDefault("db.password", "§")
let password = "§";
let api_key: &str = "§";
const API_KEY: &'static str = "§";
static SECRET: &str = r#"§"#;
let token = std::env::var("API_TOKEN").unwrap_or("§".to_string());
let token = env::var("API_TOKEN").unwrap_or_else(|_| "§".into());
let secret = concat!("§+[", "]");
let password = String::from("§");
let secret_key: [u8; 32] = [§#[, ]];
let token = b"§";
""",
    "c and c++": r"""
#define API_KEY "§"
const char *password = "§";
static const char password[] = "§";
const char password[64] = {§'[, ]};
std::string token = "§";
auto token = R"(§)";
auto password = L"§";
const char *secret = "§+["⏎    "]";
unsigned char secret_key[] = {§#[, ]};
NSString *apiKey = @"§";
let apiKey: String = "§"
string password = @"§";
string password = $"§";
public const string ApiKey = "§";
var password = Environment.GetEnvironmentVariable("DB_PASSWORD") ?? "§";
.WithPassword("§")
""",
    "ruby, php, perl, lua and others": r"""
password = '§'
password = %q(§)
password = %q{§}
:password => '§'
password: '§',
config.secret_key = "§"
password = ENV.fetch("DB_PASSWORD", "§")
password = ENV.fetch('DB_PASSWORD') { '§' }
password = ENV["DB_PASSWORD"] || "§"
password ||= "§"
password = <<~EOS⏎  §⏎EOS
password = <<-SECRET.strip⏎§⏎SECRET
$password = '§';
$password = "§";
define('DB_PASSWORD', '§');
'password' => env('DB_PASSWORD', '§'),
$config['password'] = '§';
$secret = '§+[' . '].';
$password = getenv('DB_PASSWORD') ?: '§';
$password = <<<EOT⏎§⏎EOT;
$password = $_ENV['DB_PASSWORD'] ?? '§';
my $password = '§';
my $password = q(§);
$ENV{API_TOKEN} = "§";
local password = "§"
local password = [[§]]
local password = [==[§]==]
password <- "§"
Sys.setenv(API_TOKEN = "§")
val password = sys.env.getOrElse("DB_PASSWORD", "§")
password = System.get_env("DB_PASSWORD") || "§"
config :app, Repo, password: "§"
(def password "§")
(setq api-key "§")
(defvar my-password "§")
password := '§';
let password = "§" in
password = "§" :: String
$env:DB_PASSWORD = "§"
$password = ConvertTo-SecureString "§" -AsPlainText -Force
Connect-Thing -Password "§" -User x
SET DB_PASSWORD=§
set "DB_PASSWORD=§"
Dim password As String = "§"
""",
    "shell": r"""
export DB_PASSWORD=§
export DB_PASSWORD='§'
export DB_PASSWORD="§"
DB_PASSWORD=§ ./run.sh
DB_PASSWORD="${DB_PASSWORD:-§}"
: "${DB_PASSWORD:=§}"
export API_KEY=${API_KEY-§}
PASSWORD=$(cat <<EOF⏎§⏎EOF⏎)
cat > .env <<'EOF'⏎API_KEY=§⏎EOF
readonly API_TOKEN=§
declare -x API_TOKEN="§"
local password='§'
tool --password §
tool --password=§
tool --password '§'
tool --api-key="§" --verbose
tool --token §
tool -password §
java -Ddb.password=§ -jar a.jar
helm install a b --set db.password=§
docker run -e DB_PASSWORD=§ image
docker run --env DB_PASSWORD="§" image
docker build --build-arg API_TOKEN=§ .
curl -u bob:§ https://example.com
curl -H "X-Api-Key: §" https://example.com
curl -H 'Authorization: Bearer §' https://example.com
curl -d 'grant=x&client_secret=§' https://example.com
curl -d '{"password": "§"}' https://example.com
curl "https://example.com/?api_key=§"
mysql -u root -p§ main
mysql --password=§ main
PGPASSWORD=§ psql -h db
PGPASSWORD='§' pg_dump
sshpass -p '§' ssh host
redis-cli -a § ping
aws configure set aws_secret_access_key §
heroku config:set API_TOKEN=§
git config --global github.token §
kubectl create secret generic a --from-literal=password=§
set -x DB_PASSWORD §
setenv DB_PASSWORD §
echo "password: §"
export LONG_SECRET="\⏎§"
export API_SECRET=§\[\⏎]
""",
    "yaml": r"""
password: §
password: "§"
password: '§'
"password": "§"
  db_password: §
- password: §
password: |⏎  §
password: |-⏎  §|[⏎  ]
password: >-⏎  §|[⏎  ]
password: >⏎  §|[⏎  ]⏎next: 1
api_key: >2-⏎  §
password: §|[⏎  ]
password:⏎  §
password: "§|[⏎  ]"
password: !vault §
password: &anchor §
{ user: a, password: §, b: 1 }
env:⏎  - name: DB_PASSWORD⏎    value: §
env:⏎  - name: DB_PASSWORD⏎    value: "§"
environment:⏎  - DB_PASSWORD=§
environment:⏎  DB_PASSWORD: §
spring.datasource.password: §
password: ${DB_PASSWORD:§}
kind: Secret⏎stringData:⏎  anything: §
args: ["--password", "§"]
args: ["--password=§"]
command: --requirepass §
ansible_become_pass: §
secret_key_base: §
""",
    "toml, ini, properties": r"""
password = "§"
password = '§'
password = ¶⏎§¶
password = '''⏎§⏎'''
"password" = "§"
credentials = { user = "a", password = "§" }
db.password=§
db.password = §
db.password : §
db.password=§\[\⏎    ]
password=§
password = §
[auth]⏎client_secret = §
API_KEY=§
API_KEY="§"
API_KEY = §
//registry.npmjs.org/:_authToken=§
machine example.com login bob password §
machine example.com⏎  login bob⏎  password §
db.example.com:5432:main:app:§
requirepass §
proxy_set_header X-Api-Key "§";
proxy_set_header X-Api-Key §;
SetEnv DB_PASSWORD §
SetEnv DB_PASSWORD "§"
ENV DB_PASSWORD=§
ENV DB_PASSWORD §
ENV DB_PASSWORD="§"
ARG API_TOKEN=§
ARG API_TOKEN="§"
Environment=DB_PASSWORD=§
Environment="DB_PASSWORD=§"
user = bob⏎password = §⏎host = x
""",
    "xml and html": r"""
<password>§</password>
<password>⏎  §⏎</password>
<password><![CDATA[§]]></password>
<password type="plain">§</password>
<db:password>§</db:password>
<add key="ApiToken" value="§"/>
<add name="x" connectionString="Server=a;Password=§;"/>
<user name="bob" password="§"/>
<user name='bob' password='§'/>
<entry key="password">§</entry>
<string name="api_key">§</string>
<property name="password" value="§"/>
<property name="password">§</property>
<key>password</key>⏎<string>§</string>
<param name="password">⏎  <value>§</value>⏎</param>
<meta name="api-key" content="§">
<input type="hidden" name="token" value="§">
<div data-api-key="§"></div>
password=&quot;§&quot;
""",
    "json": r"""
{"password": "§"}
{"password":"§"}
{"user": "a", "password" : "§", "b": 1}
{"a": "{\"password\": \"§\"}"}
{"a": "{\"b\": \"{\\\"password\\\": \\\"§\\\"}\"}"}
{"name": "password", "value": "§"}
{"name": "DB_PASSWORD",⏎ "value": "§"}
{"password": {"value": "§"}}
{"passwords": ["§"]}
{"auths": {"r": {"auth": "§"}}}
{"api-key": "§"}
{"apiKey": "§"}
{"client_secret": "§", "x": null}
{"env": {"API_TOKEN": "§"}}
{"args": ["--api-key", "§"]}
{\u0022password\u0022: \u0022§\u0022}
""",
    "sql": r"""
CREATE USER app IDENTIFIED BY '§';
CREATE USER app IDENTIFIED BY "§";
ALTER USER app IDENTIFIED WITH mysql_native_password BY '§';
CREATE ROLE app WITH LOGIN PASSWORD '§';
ALTER ROLE app PASSWORD '§';
SET PASSWORD FOR app = PASSWORD('§');
CREATE LOGIN app WITH PASSWORD = '§';
UPDATE users SET password = '§' WHERE id = 1;
UPDATE users SET password='§' WHERE id = 1;
GRANT ALL ON *.* TO app@x IDENTIFIED BY '§';
CREATE SECRET s (TYPE s3, SECRET '§');
password VARCHAR(80) DEFAULT '§',
""",
    "terraform, cmake and build": r"""
password = "§"
variable "db_password" {⏎  type    = string⏎  default = "§"⏎}
variable "db_password" {⏎  default = "§"⏎}
secret_key = <<EOT⏎§⏎EOT
secret_key = <<-EOT⏎  §⏎  EOT
secret_string = jsonencode({ password = "§" })
set(API_KEY "§")
set(ENV{API_KEY} "§")
DB_PASSWORD := §
DB_PASSWORD ?= §
export DB_PASSWORD = §
storePassword '§'
storePassword = "§"
storePassword "§"
signingConfig { keyPassword "§" }
""",
    "urls and headers": r"""
postgres://app:§@db:5432/main
https://bob:§@example.com/x.git
https://example.com/?access_token=§&a=1
https://example.com/?a=1&api_key=§
jdbc:mysql://db/x?user=a&password=§
Server=db;User Id=a;Password=§;Encrypt=true
Authorization: Bearer §
Authorization: Token §
X-Api-Key: §
X-Auth-Token: §
Cookie: a=b; sessionid=§
Set-Cookie: session_token=§; Path=/
user=a&password%3D§&b=1
?q=%22password%22%3A%22§%22
""",
    "english": r"""
The password is §.
the password is: §
Password: §
**Password:** §
- Password: `§`
- **API key**: `§`
Your API key is §
Your API key is `§`.
The admin password for the staging database is §, please rotate it.
Use the token § to log in.
log in with password §
The secret access key is §
My password's §
Password:⏎§
Password:⏎⏎    §
| password | § |
| password | `§` |
the password has been changed to §
Here is the api key you asked for: §
Credentials: bob / §
credentials are bob:§
user bob, password §
pw: bob, password "§"
access token → §
Passphrase “§”
""",
    "german and other european": r"""
Das Passwort lautet §.
Das Passwort für die Datenbank lautet §.
Passwort: §
Das Kennwort ist §
Kennwort „§“
Der API-Schlüssel lautet §
Das Passwort ist: „§“
Le mot de passe est §
mot de passe : §
Le mot de passe de la base est « § »
La contraseña es §
contraseña: §
A senha é §
La password è §
Пароль: §
пароль от базы: §
пароль — §
Hasło to §
Het wachtwoord is §
Lösenordet är §
Şifre: §
""",
    "chinese": r"""
密码是 §
密码是§
密码为§。
密码：§
数据库密码是：§
密码: §
数据库的密码是“§”。
口令：§
密钥为 §
访问令牌是§，请保密。
API密钥：§
密碼是 §
用户名 root 密码 §
""",
    "japanese and korean": r"""
パスワードは§です
パスワードは §です。
パスワード：§
パスワードは「§」です。
データベースのパスワードは§です
トークン: §
秘密鍵は§
비밀번호는 §
비밀번호는 §입니다.
비밀번호: §
비밀번호는 '§' 입니다
데이터베이스 비밀번호는 §입니다
암호는 §
토큰은 §
API 토큰: §
""",
    "beside and before names": r"""
if "§" == password:
assert "§" == user.password
tok = "§"  # token
x = "§"  # password for the staging db
API_KEYS = {⏎    "alice": "§",⏎}
z.string().default("§") // password
password: // dev⏎  "§",
if ('§' === password) {
return "§"; // password
spec = new PBEKeySpec("§".toCharArray(), s, 1);
SecretKeySpec k = new SecretKeySpec("§".getBytes(), "AES");
`json:"x" default:"§"` // password
#[arg(long, default_value = "§")]⏎password: String,
#[serde(default = "§")]⏎token: String,
DBI->connect("dbi:x", "bob", "§")
""",
    "programs and what they read": r"""
[ "$PASSWORD" = "§" ] && x
net use \\s\x /user:bob §
tool \⏎  --password \⏎  §
sqlplus bob/§@db
openssl enc -k § -in a
echo § | gh auth login --with-token
smbclient //s/x -U bob%§
cmdkey /add:h /user:bob /pass:§
vault login §
useradd -p '§' bob
add_definitions(-DAPI_KEY="§")
-DAPI_KEY=\"§\"
SELECT pgp_sym_encrypt('x', '§') -- key
""",
    "parents of keys": r"""
password:⏎    # the staging one⏎    §
credentials:⏎  - user: a⏎    pass: §
kind: Secret⏎apiVersion: v1⏎data:⏎  tls: §
apiVersion: v1⏎data:⏎  k: §⏎kind: Secret
api:⏎  key: "§"
api:⏎  key: §
encryption:⏎  key: "§"
tokens = [⏎  "§",⏎]
api = { key = "§" }
[api]⏎key = "§"
jdbc.url=jdbc:oracle:thin:bob/§@h:1521/x
systemProp.gpr.key=§
<password><!-- x -->§</password>
<input type="password" name="p" value="§">
{"tokens":["a1","§"]}
{"apiKeys":{"x":"§"}}
{"\u5bc6\u7801":"§"}
""",
    "keys of other languages": r"""
La clave es §
clave: §
La clave de API es §
chave de API: §
A chave é §
La chiave API è §
chiave: §
Le jeton est §
Ключ API: §
токен: §
APIキーは§です
APIキー：§
API 키: §
API 키는 §입니다
""",
}


def spellings() -> Iterator[tuple[str, str]]:
    """Yield every frame with the kind it belongs to."""
    for kind, lines in SPELLINGS.items():
        for frame in filter(None, lines.split("\n")):
            yield kind, frame.replace("⏎", "\n").replace("¶", '"' * 3)


def written(frame: str, secret: str) -> str:
    """Return a frame with the secret in it."""

    def parts(match: re.Match[str]) -> str:
        between = match["between"][1:-1]
        return _WAYS[match["how"]](secret, between)

    return _PIECES.sub(parts, frame).replace("§", secret)


def _joined(secret: str, between: str) -> str:
    third = max(5, len(secret) // 3)
    return between.join(secret[at : at + third] for at in range(0, len(secret), third))


def _folded(secret: str, between: str) -> str:
    return between.join(secret[at : at + 64] for at in range(0, len(secret), 64))


def _characters(secret: str, between: str) -> str:
    return between.join(f"'{char}'" for char in secret)


def _numbers(secret: str, between: str) -> str:
    return between.join(str(ord(char)) for char in secret)


_WAYS = {"+": _joined, "'": _characters, "#": _numbers, "|": _folded, "\\": _folded}
