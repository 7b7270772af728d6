"""Texts that only look as if they had secrets in them. They stay as they are, byte for byte."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid

CODE = """
def check_password(password: str) -> bool:
password = getpass()
password = getpass.getpass("Password: ")
password = os.environ["DB_PASSWORD"]
password = os.environ.get("DB_PASSWORD", "")
password = settings.database.password
password = self.password
self._token = token
token: str
token: str | None = None
token: Optional[str] = None
api_key: str = Field(default="")
secret: SecretStr
connect(user=user, password=password)
connect(user=user, password=config.password, host=host)
if token == ")":
if token.type == "identifier":
while token != "end":
token = next(tokens)
token = lexer.next_token()
tokens = tokenizer.encode(text)
max_tokens=4096
"max_tokens": 4096,
"prompt_tokens": 1234, "completion_tokens": 99
token_count = len(tokens)
token_type = "bearer"
const token = await getToken();
const password = req.body.password;
let secret = process.env.SECRET;
password: string;
password?: string,
readonly token: CancellationToken;
String password = request.getParameter("password");
private final String password;
var apiKey = config.ApiKey
api_key = api_key or default
apiKey: process.env.API_KEY,
func Login(user, password string) error {
token := r.Header.Get("Authorization")
let token = parser.next()?;
pass
passed = 5
compass = "north-east"
author = "Somebody Else"
authors = ["A", "B"]
keyboard = "qwerty"
key = "name"
primary_key = "id"
foreign_key = "user_id"
cache_key = f"user:{user_id}"
for key, value in items.items():
sort(key=lambda item: item.name)
public_key = "ssh-rsa"
monkey = "see"
turkey: big
secretary = "Ms Example"
assert response.headers["Authorization"] == f"Bearer {token}"
headers = {"Authorization": f"Bearer {token}"}
headers["Authorization"] = "Bearer " + token
"Authorization": "Bearer ${TOKEN}"
curl -H "Authorization: Bearer $TOKEN" https://example.com
curl -u "$USER:$PASSWORD" https://example.com
curl -u user: https://example.com
mysql -u root -p main
docker run -p 8080:80 image
ssh -p 2222 example.com
mkdir -p src/deep/folder
export PATH=/usr/bin:/bin
PWD=/usr/src/app
OLDPWD=/usr/src
class PasswordField(Field):
type Token = { kind: string; value: string };
enum Secret { None, Some }
if token is Token.Name.Function:
self.token = nextchar
self._authkey = authkey
def fallback_getpass(prompt='Password: ', stream=None):
print("Enter password: ", end="")
token = r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
TOKEN_PATTERN = r'[^\\W\\d]+'
CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'
user_pass = '%s:%s' % (user, word)
HEADERS = ["Cookie", "Authorization", "Proxy-Authorization"]
"auth0": "types-auth0-python",
csrf_token: "{{ csrf_token }}"
"""

CONFIGURATION = """
("password", "Passwort")
fields = ["password", "token", "secret"]
{"name": "password", "value": ""}
parser.add_argument("--token", "-t", help="the token to use")
password: ${DB_PASSWORD}
password: $DB_PASSWORD
password: {{ vault_password }}
password: <your password>
password: "<password>"
password: ""
password: ''
password: null
password: ********
password: xxxxxxxx
API_KEY=
API_KEY=your-api-key-here
API_KEY=<your key>
OPENAI_API_KEY=sk-...
OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxx
token: ${{ secrets.GITHUB_TOKEN }}
SECRET_KEY=changeme
password_policy: strict
password_min_length: 12
token_url: https://example.com/oauth/token
token_endpoint = "https://example.com/oauth2/token"
private_key_path: ~/.ssh/id_ed25519
private_key_file = "/etc/ssl/private.pem"
secret_name: database-credentials
api_key_header: X-Api-Key
key: value
session_timeout: 3600
authentication: required
access_token_ttl: 3600
ssh_key_name = deploy
"""

ECHOES = """
CLIENT_SECRET = "client_secret"
export declare const AcquireToken = "acquireToken";
refresh_token: refreshToken
customHeaders["x-ms-continuationtoken"] = "continuationToken";
const invalidSecret = "invalid_secret";
#define SSL_OP_NO_EXTENDED_MASTER_SECRET SSL_OP_BIT(0)
#define TLS_YIELD_SECRET 2004
#define UPLUG_TOKEN 0x54762486
#define aes128_set_encrypt_key nettle_aes128_set_encrypt_key
session = requests.Session()
session: "main"
session = session_factory_2_for_tests
"call_id": "call_12345678"
call_id: str
token: 1234
max_tokens: 1234567
mdp: markdown
import mdp
set -e PATH_TOKEN
set -x TOKEN_TYPE bearer
set -gx PATH /usr/bin
secret_key_base = ENV['SECRET_KEY_BASE']
IDENTIFIED BY 'password'
PASSWORD('x')
localhost:8080:a:b:c
src/a.py:10:20:W291:trailing
12:30:45:678:abc
from twilio.rest import Client
aws s3 cp a s3://bucket
sl.append(x)
Passwort vergessen?
mot de passe oublié
La contraseña es obligatoria
"""

PROSE = """
The password must be at least 12 characters long.
Enter your password:
Forgot your password? Reset it here.
Password: required
A token is a piece of text.
The token limit is 8192 tokens.
The secret of good code is naming.
Bearer authentication is used by most servers.
Basic authentication sends the password with every request.
Tokens: 1234 (prompt), 99 (completion)
Keep the API key in the environment, never in a file.
See https://example.com/docs/authentication#token for details.
This task-list has sk-circle and sk-folding-cube classes.
Use the --username and --password options instead.
For example `{"Proxy-Authorization": "Basic <username>:<password>"}`.
Mnemonic: "go to file"
Chapter 3: the key to the house
Step 2 of 5: password check
密码不能为空。
请输入密码：
令牌数量是 1234
"""

ADDRESSES = """
https://example.com/path?query=1&page=2
https://play.example.org/?code=%23!%5Ballow(unused)%5D%0Afn+main()+%7B+let+x+=+32;+%7D
https://example.com/search?q=password+manager
https://user@example.com/repo.git
git@github.com:example/repo.git
ssh://git@github.com/example/repo.git
https://example.com/a/b/c/d/e/f/g/h/i/j/k.html
http://127.0.0.1:8080/v1
postgresql://localhost:5432/main
redis://localhost:6379/0
mailto:somebody@example.com
pkg:npm/%40scope/name@1.2.3
https://registry.npmjs.org/@types/node/-/node-20.1.0.tgz
someone@example.com:8080
"""

OTHERS = """
"created_at": "2025-01-01T00:00:00.000Z"
"time_ms": 12, "step": 3, "event": "token", "ts": 1735689600.123
--token-limit 4096
--no-password
--key-type rsa
data-testid="password-input"
<input type="password" name="password">
<label for="token">Token</label>
[A-Za-z0-9_]{36}
ghp_
sk-
AKIA
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
npm_config_registry=https://registry.npmjs.org/
hf_transfer enabled
pat = re.compile("a")
eyJ
xoxo, your friend
1.2.3-beta.4+build.5678
0123456789abcdef0123456789abcdef01234567
"""

_KEY = "PRIVATE" + " KEY-----"
_OF_PARSERS = f"""
-----BEGIN {_KEY}
const PEM_HEADER = "-----BEGIN {_KEY}"; const PEM_FOOTER = "-----END {_KEY}";
if pem.startswith("-----BEGIN RSA {_KEY}") and pem.endswith("-----END RSA {_KEY}"):
s.replace("-----BEGIN {_KEY}", "").replace("-----END {_KEY}", "").replace("\\n", "")
HEADER = "-----BEGIN {_KEY}"⏎FOOTER = "-----END {_KEY}"
case "-----BEGIN EC {_KEY}":⏎    return parse_ec(body)⏎case "-----BEGIN {_KEY}":⏎    return parse_pkcs8(body)
begin = pem.find("-----BEGIN {_KEY}") + 27⏎end = pem.find("-----END {_KEY}")⏎decodeBase64PrivateKey(pem[begin:end])
A key starts with -----BEGIN {_KEY} and it always ends with the line -----END {_KEY}
#define PEM_STRING_PKCS8INF "{_KEY.rstrip("-")}"
let re = /-----BEGIN (?:RSA )?{_KEY}([^-]*)-----END (?:RSA )?{_KEY}/;
"""

# Names of errors, constants of enumerations, comparisons of types, lists of names, schemas, references, containers.
NAMED_ONLY = """
BAD_PASSWORD = 40101
    BAD_PASSWORD = 40101,
INVALID_TOKEN = 1001
INVALID_TOKEN: 100102
ERR_WRONG_PASSWORD = 40101;
WRONG_PASSWORD=40101
ErrInvalidToken = 1003
ERROR_EXPIRED_PASSWORD = -2147023568
"BAD_PASSWORD": 40101,
public static final int BAD_PASSWORD = 40101;
    Secret = 0x0001,⏎    Password = 0x0002,
Password=0x0002,
PASSWORD = 0x20
    Token = 0x00ff00ffU,
Secret = 0x00000001;
#define KEY_PASSWORD 0x0001
const TOKEN_PASSWORD = 0x80;
typeof x.getToken === "function"
if (typeof client.getAccessToken === "function") {
if (typeof opts.secret !== 'symbol') return;
return typeof api.password == "bigint";
const NAMES = ["MYSQL_NATIVE_PASSWORD", "SHA2_PASSWORD"]
["MYSQL_NATIVE_PASSWORD", "CACHING_SHA2_PASSWORD", "DB_PASSWORD2"]
"plugins": ["mysql_native_password", "caching_sha2_password"]
("DB_PASSWORD", "OAUTH2_TOKEN", "S3_SECRET")
"Authorization": {"additionalProperties": false}
  "Authorization": {"additionalProperties": {"type": "string"}}
"password": {"additionalProperties": false, "minLength": 8}
"access_token": { "patternProperties": {} }
  existingSecret: my-release-postgresql
existingSecret: name
auth:⏎  existingSecret: db-credentials-v2⏎  existingSecretPasswordKey: password1
  existingSecret: app.prod-eu-1.credentials
"existingSecret": "release-10-db-credentials"
  existingSecretKey: api-key-2
echo hello | docker run -i image
echo test123 | docker run -i --rm alpine cat
echo "input42" | docker exec -i web sh
printf 'data2024' | podman run -i x sort
"""


def generated() -> list[str]:
    """Hashes, ids and pictures: as random as a secret, and none."""
    rng = random.Random(11)
    data = rng.randbytes(600)
    sha1, sha256 = hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest()
    sha512 = base64.b64encode(hashlib.sha512(data).digest()).decode()
    picture = base64.b64encode(data).decode()
    return [
        f"commit {sha1}",
        f"index {sha1[:7]}..{sha1[8:15]} 100644",
        f"{sha1} refs/heads/main",
        f'"integrity": "sha512-{sha512}",',
        f"sha256:{sha256}",
        f"--hash=sha256:{sha256} \\",
        f'checksum = "{sha256}"',
        f"h1:{base64.b64encode(hashlib.sha256(data).digest()).decode()}",
        f"id: {uuid.UUID(bytes=data[:16])}",
        f'"uuid": "{uuid.UUID(bytes=data[16:32])}"',
        f"urn:uuid:{uuid.UUID(bytes=data[32:48])}",
        f"data:image/png;base64,{picture}",
        f'<img src="data:image/jpeg;base64,/9j/{picture}">',
        f'ETag: "{sha1}"',
        f"image@sha256:{sha256}",
        "-----BEGIN CERTIFICATE-----\n" + picture[:64] + "\n-----END CERTIFICATE-----",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + picture[:43] + " me@host",
        "".join(f"{byte:08b}" for byte in data[:40]),
        "\n".join(f"{number:08x}  {data[number : number + 16].hex(' ')}" for number in range(0, 64, 16)),
        ".s" + "k-loading-indicator-with-a-long-class-name { }",
        "🎉 emoji 👨‍👩‍👧 and 中文 stay",
    ]


def everything() -> list[str]:
    """All look-alikes, one a line or block."""
    lines = "".join((CODE, CONFIGURATION, ECHOES, PROSE, ADDRESSES, OTHERS, _OF_PARSERS, NAMED_ONLY)).splitlines()
    return [line.replace("⏎", "\n") for line in lines if line.strip()] + generated()
