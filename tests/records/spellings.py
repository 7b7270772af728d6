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
DATABASES = {"default": {"USER": "app", "PASSWORD": "§", "HOST": "db"}}
pwd = input("pw") or "§"
app.config.update(SECRET_KEY="§", DEBUG=True)
app.secret_key = "§"
class S(BaseSettings):⏎    db_password: str = Field("§", env="DB_PASSWORD")
    token: str = field(default="§")
requests.get(u, auth=("bob", "§"))
requests.get(u, headers={"Authorization": "Token token=§"})
requests.get(u, headers={"X-Auth": "§"})
psycopg2.connect("host=db user=app password=§ dbname=x")
redis.Redis(host="x", port=1, password="§")
boto3.client("s3", aws_access_key_id="x", aws_secret_access_key="§")
jwt.encode(payload, "§", algorithm="HS256")
jwt.decode(tok, key="§")
hmac.new(b"§", msg, sha256)  # secret
Fernet(b"§")
smtp.login("bob@example.com", "§")
paramiko.connect(h, username="bob", password="§")
PASSWORDS = ["§", "x"]
password = {"dev": "§"}["dev"]
password = cfg.get("db", "password", fallback="§")
password = os.environ.get("PW") if x else "§"
getpass = lambda: "§"  # password
password: typing.Annotated[str, 1] = "§"
self.__password = u"§"
SECRET = Rb"§"
if not password: password = "§"
password, user = "§", "bob"
user, password = "bob", "§"
(user, password) = ("bob", "§")
assert login("bob", "§")  # password
kwargs["api_key"] = "§"
setattr(cfg, "password", "§")
monkeypatch.setattr(settings, "PASSWORD", "§")
@patch.dict(os.environ, {"API_TOKEN": "§"})
os.putenv("API_TOKEN", "§")
click.option("--password", default="§")
password = "§" if prod else ""
password = (lambda: "§")()
password = str("§")
password = "§".strip()
""",
    "javascript": r"""
passport.use(new JwtStrategy({ secretOrKey: '§' }, check))
const options = { secretOrPrivateKey: "§" };
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
const {data} = await axios.post(u, {username: "b", password: "§"});
axios.defaults.headers.common["Authorization"] = "Bearer §";
process.env.SECRET ||= "§";
process.env.SECRET ??= '§';
export default { secret: '§' }
new Client({ connectionString: "postgres://u:§@h/d" })
firebase.initializeApp({ apiKey: "§", projectId: "x" })
app.use(session({ secret: "§", resave: false }))
jwt.sign({ a: 1 }, "§")
passport.use(new S({ clientSecret: "§" }))
private readonly apiKey = "§";
static #token = "§";
#password = "§";
get password() { return "§"; }
const getToken = () => "§";
function getPassword() {⏎  return "§";⏎}
localStorage.setItem("token", "§")
sessionStorage.token = "§"
document.cookie = "session_token=§; path=/";
Cypress.env("password", "§")
cy.get("#password").type("§")
await page.fill("#password", "§");
await page.getByLabel("Password").fill("§");
expect(user.password).toBe("§");
password: process.env.PW || `§`,
"scripts": { "deploy": "TOKEN=§ node deploy.js" }
const auth = Buffer.from("bob:§").toString("base64");
const password = ("§");
const password = <string>"§";
const password = "§" satisfies string;
var password = "§", user = "x";
password = String.raw`§`;
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
@Property(name = "password", value = "§")
String pw = props.getProperty("password", "§");
new UsernamePasswordCredentials("bob", "§")
DriverManager.getConnection(url, "bob", "§");
spring.datasource.password=§
private String password = new String("§");
static final char[] PASSWORD = "§".toCharArray();
keyStore.load(in, "§".toCharArray()); // password
env.put(Context.SECURITY_CREDENTIALS, "§");
.header("Authorization", "Bearer §")
.header("X-API-KEY", "§")
withEnv(["API_TOKEN=§"]) {
password.set("§")
password = project.findProperty("pw") ?: "§"
credentials {⏎  username = "x"⏎  password = "§"⏎}
ext.apiKey = '§'
-Dapi.token=§
lazy val password = "§"
def password = "§"
(def config {:password "§"})
{:db {:password "§"}}
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
flag.String("password", "§", "the password")
pflag.StringVar(&pw, "token", "§", "x")
os.Getenv("PW"); if pw == "" { pw = "§" }
req.Header.Set("Authorization", "Bearer §")
req.SetBasicAuth("bob", "§")
Password: ptr("§"),
Password: []byte("§"),
map[string]string{"password": "§"}
return "§" // api key
#[clap(long, env = "TOKEN", default_value = "§")]⏎token: String,
.bearer_auth("§")
.basic_auth("bob", Some("§"))
password: "§".into(),
password: String::from("§"),
option_env!("TOKEN").unwrap_or("§")
std::string getToken() { return "§"; }
#define WIFI_PASSWORD "§"
WiFi.begin("ssid", "§"); // password
constexpr auto kApiKey = "§";
static NSString * const kSecret = @"§";
setenv("API_TOKEN", "§", 1);
curl_easy_setopt(c, CURLOPT_USERPWD, "bob:§");
.password = "§",
password[] = "§";
""",
    "c and c++": r"""
WiFi.begin("home", "§");
WiFi.begin(ssid, "§");
WiFi.softAP("box", "§");
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
mysqli_connect("h", "bob", "§", "db");
new PDO($dsn, "bob", "§");
putenv("API_TOKEN=§");
$_SERVER["API_TOKEN"] = "§";
const PASSWORD = '§';
'connections' => ['mysql' => ['password' => '§']]
Rails.application.config.secret_key_base = "§"
password = Rails.application.credentials.pw || "§"
attr = { password: "§" }
basic_auth "bob", "§"
http_basic_authenticate_with name: "x", password: "§"
our $PASSWORD = "§";
use constant PASSWORD => '§';
DBI->connect($dsn, "bob", '§');
System.put_env("TOKEN", "§")
plug :auth, token: "§"
password: String = "§"
let apiKey = ProcessInfo.processInfo.environment["K"] ?? "§"
Password = "§";
<add name="Main" connectionString="Data Source=x;User ID=a;Pwd=§" />
options.ClientSecret = "§";
new NetworkCredential("bob", "§")
[Environment]::SetEnvironmentVariable("TOKEN", "§")
$cred = New-Object PSCredential("bob", (ConvertTo-SecureString "§" -AsPlainText -Force))
Set-Variable -Name password -Value "§"
password <- Sys.getenv("PW", "§")
options(api_key = "§")
api_key = get(ENV, "KEY", "§")
ENV["TOKEN"] = "§"
password: '§'.obs
const password = "§";
pub const api_key = "§";
data Config = Config { password = "§" }
password = fromMaybe "§" env
let password = Option.value ~default:"§" (Sys.getenv_opt "PW")
:- password("§").
set password "§"
set env(API_TOKEN) "§"
constant password : string := "§";
PASSWORD EQU "§"
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
printf '%s' "§" | docker login --password-stdin
echo "§" | docker login -u bob --password-stdin
echo §|sudo -S ls
docker login -u bob -p §
az login -u bob -p §
export PASSWORD=$(printf '%s' "§")
export PASSWORD=`echo §`
PASSWORD=$(echo '§' | base64 -d)
read -r PASSWORD <<< "§"
PASSWORD=$'§'
: ${TOKEN:=§}
curl -H "Authorization: token §" u
curl --user bob:§ u
curl -ubob:§ u
curl --header 'PRIVATE-TOKEN: §' u
curl -F token=§ u
curl --data-urlencode "password=§" u
curl -b "session_token=§" u
wget --http-password=§ u
wget --password § u
http POST u X-Api-Key:§
http -a bob:§ u
psql "postgresql://bob:§@h/d"
psql "password=§ host=h"
mongosh "mongodb+srv://bob:§@h"
mongo -u bob -p § h
mysqldump -ubob -p§ db
mysql -p'§' db
ldapsearch -D cn=a -w § x
ansible-playbook a.yml -e "db_password=§"
ansible-playbook a.yml -e 'ansible_password=§'
terraform apply -var 'password=§'
terraform apply -var="db_password=§"
npm config set //registry.npmjs.org/:_authToken §
npm config set _authToken=§
twine upload -u bob -p § dist/*
gpg --batch --passphrase § -d f
gpg --passphrase '§' f
openssl rsa -passin pass:§ -in k
openssl pkcs12 -export -passout pass:'§'
zip -P § a.zip f
unzip -P § a.zip
7z x -p§ a.7z
7z a -p'§' a.7z f
keytool -storepass § -list
keytool -keypass § -storepass x
jarsigner -storepass § a.jar k
htpasswd -b f bob §
chpasswd <<< "bob:§"
echo "bob:§" | chpasswd
echo 'bob:§' | sudo chpasswd
usermod --password § bob
net user bob § /add
runas /user:bob §
rclone config create a s3 secret_access_key §
gh secret set NAME --body "§"
gh secret set NAME -b§
vault kv put secret/a password=§
vault kv put secret/a value=§
vault write auth/userpass/users/bob password=§
consul kv put app/password §
etcdctl put /app/password §
redis-cli --pass § ping
redis-cli AUTH §
AUTH §
CONFIG SET requirepass §
sqlcmd -U sa -P §
sqlcmd -S h -U sa -P'§'
impdp bob/§@x
lftp -u bob,§ h
ftp://bob:§@h/
ncftpput -u bob -p § h . f
smbclient -U 'bob%§' //h/s
mount -t cifs -o username=bob,password=§ //h/s /m
mount -t cifs //h/s /m -o user=bob,pass=§
xfreerdp /u:bob /p:§ /v:h
wpa_passphrase ssid §
nmcli dev wifi connect s password §
nmcli dev wifi connect s password "§"
minikube start --token=§
kubectl config set-credentials bob --token=§
kubectl create secret docker-registry r --docker-password=§
helm upgrade a b --set-string auth.token=§
flyctl secrets set TOKEN=§
vercel env add TOKEN §
aws secretsmanager put-secret-value --secret-id x --secret-string §
aws ssm put-parameter --type SecureString --name x --value §
gcloud auth login --access-token §
circleci setup --token §
sentry-cli --auth-token § x
ngrok authtoken §
ngrok config add-authtoken §
tailscale up --authkey §
tailscale up --auth-key=§
cloudflared tunnel run --token §
stripe listen --api-key §
svn co --username b --password § u
git clone https://oauth2:§@h/x
git clone https://§@github.com/a/b
git -c http.extraHeader="Authorization: Bearer §" fetch
ssh-keygen -N '§' -f k
ssh-keygen -p -P § -N x -f k
cryptsetup open --key-file - <<< '§'
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
password: >+⏎  §|[⏎  ]
password: |2⏎    §
"password" : §
? password⏎: §
password: &p "§"
password: !!str §
<<: {password: §}
[password, §]
- {name: TOKEN, value: §}
- name: TOKEN⏎  value: >-⏎    §
data:⏎  token: §
stringData: {a: "§"}⏎kind: Secret
auth:⏎  basic:⏎    username: a⏎    password: §
users:⏎- name: a⏎  user:⏎    token: §
http_basic_auth: bob:§
auths:⏎  r:⏎    auth: §
connection_string: "AccountName=x;AccountKey=§;EndpointSuffix=y"
AccountKey=§
SharedAccessKey=§
SharedAccessSignature=sr=x&sig=§&se=1
DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§
https://x.blob.core.windows.net/a?sv=1&sig=§
[tokens]⏎main = "§"
[tokens]⏎"x.y" = '§'
[[users]]⏎password = "§"
[credentials]⏎bob = "§"
[api_keys]⏎prod = "§"
[passwords]⏎bob = §
[secrets]⏎x = §
password  "§"
auth_pass §
neighbor 1.2.3.4 password §
snmp-server community § RO
enable secret 5 §
username bob secret §
ppp chap password §
wpa-psk §
wpa_passphrase=§
psk="§"
  psk=§
PresharedKey = §
PrivateKey = §
secret: !Sub "§"
Password: !Ref x # §
ParameterKey=Password,ParameterValue=§
MasterUserPassword: §
SecretString: '{"password":"§"}'
environment:⏎  - "TOKEN=§"
environment:⏎  TOKEN: "§"
args:⏎  - --token⏎  - §
args:⏎  - --token=§
command: ["sh", "-c", "x --password §"]
ENV TOKEN="§" OTHER=1
ENV A=1 TOKEN=§
RUN echo "machine h login b password §" > ~/.netrc
RUN --mount=x TOKEN=§ npm ci
<server><id>x</id><username>b</username><password>§</password></server>
<user username="tomcat" password="§" roles="x"/>
<property name="hibernate.connection.password">§</property>
<constructor-arg name="password" value="§"/>
<appSettings><add key="Password" value='§'/></appSettings>
<Setting Name="Token">§</Setting>
<secret>⏎<![CDATA[⏎§⏎]]>⏎</secret>
<entry><string>password</string><string>§</string></entry>
<array><string>password</string><string>§</string></array>
{"type":"password","value":"§"}
{"key":"token","value":"§","enabled":true}
{"password":[ "§" ]}
{"Password":{"S":"§"}}
{"data":{"password":"§"}}
{"login":{"user":"a","pass":"§"}}
{"username":"a","secret":"§"}
{'password': '§'}
{password: "§"}
{"connection":"Server=x;Password=§"}
{"command":"curl -u bob:§ u"}
{"headers":[["Authorization","Bearer §"]]}
{"headers":[{"name":"x-api-key","value":"§"}]}
"authorization": "Basic §"
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
ALTER USER bob IDENTIFIED BY "§" ACCOUNT UNLOCK;
ALTER USER bob WITH ENCRYPTED PASSWORD '§' VALID UNTIL 'x';
INSERT INTO users (name, password) VALUES ('bob', '§');
INSERT INTO users(password,name) VALUES ('§','bob');
INSERT INTO users SET name='bob', password='§';
SELECT * FROM users WHERE name='bob' AND password='§';
CREATE USER bob PASSWORD '§';
CREATE USER MAPPING FOR x OPTIONS (user 'bob', password '§');
CREATE SERVER s OPTIONS (password '§')
SET app.secret = '§';
COPY x FROM 's3://y' CREDENTIALS 'aws_access_key_id=a;aws_secret_access_key=§';
db.createUser({user: "bob", pwd: "§"})
db.auth("bob", "§")
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
The password for bob is §
The root password is currently set to §.
I set the password to §
set your password to "§"
Change the password from § to something else
change the password to §
Please use this password: §
use § as the password
use "§" as your API key
§ is the password
`§` is the API token
The API token (§) expires soon
API token: *§*
API token = §
password - §
password -> §
pwd is §
passwd: §
pass: §
Login: bob Password: §
username: bob⏎password: §
Username: bob / Password: §
creds: bob/§
My new API key: §
Our license key is §
The encryption key is §
The signing secret is §
webhook secret: §
The PIN/password: §
OTP secret: §
wifi password is §
WiFi: MyNet, password: §
the secret's value is §
The secret is "§"
password (staging): §
password [prod]: §
password for prod => §
Password hint: none. Password: §
"password" is "§"
He said: the token is §
Token: Bearer §
> password: §
1. password: §
* password §
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
Passwort für root ist §
Das neue Passwort ist §
Mein Passwort: §
Zugangsdaten: bob / §
Zugangstoken: §
Geheimnis: §
Geheimer Schlüssel: §
Schlüssel ist §
Passwort = §
Das WLAN-Passwort ist §
Benutzer bob, Passwort §
Bitte § als Passwort verwenden
Mot de passe de bob : §
le mot de passe, c'est §
Identifiants : bob / §
Jeton d'accès : §
Clé API : §
La clé secrète est §
Contraseña de root: §
la contraseña es: "§"
Clave secreta: §
Token de acceso: §
Credenciales: bob / §
Senha: §
Chave secreta: §
Password di root: §
Parola d'ordine: §
Wachtwoord: §
Lösenord: §
Adgangskode: §
Salasana: §
Heslo: §
Jelszó: §
Parolă: §
Κωδικός: §
סיסמה: §
كلمة المرور: §
पासवर्ड: §
รหัสผ่าน: §
Mật khẩu: §
Kata sandi: §
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
密码就是§
密码改成§
密码改为 §
新密码：§
管理员密码：§
root密码是§
密码设置为§
请使用密码§登录
用户名：bob，密码：§
账号bob密码§
账号：bob 密码：§
登录密码=§
密码（测试）：§
密钥是§
密钥：§
私钥：§
令牌：§
访问密钥为§
访问令牌: `§`
API Key 是 §
API key：§
token是§
Token：§
secret为§
口令是§
通行证：§
暗号：§
授权码：§
激活码：§
凭证：§
密码→§
「密码」：§
【密码】§
密码:"§"
用§作为密码
§是密码
数据库密码 §
wifi密码：§
密碼為§
密碼：§
金鑰：§
權杖：§
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
パスワードを§に設定
パスワード = §
パスワード：「§」
新しいパスワードは§
管理者パスワード：§
rootのパスワードは§です
パスワードには§を使ってください
ユーザー名：bob、パスワード：§
アクセストークン：§
アクセスキー：§
シークレットキー: §
秘密鍵：§
暗証番号：§
合言葉：§
APIトークンは§
認証キー：§
トークンは「§」
PW：§
パスワードが§に変わりました
비밀번호를 §로 변경
새 비밀번호: §
비밀번호 = §
관리자 비밀번호: §
비밀번호: "§"
비번: §
비번은 §
패스워드: §
암호: §
암호가 §입니다
액세스 토큰: §
비밀 키: §
시크릿 키: §
인증 키: §
API 키는 §
사용자 bob, 비밀번호 §
토큰이 §이다
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
