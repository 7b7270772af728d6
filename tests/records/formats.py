"""Secrets made up from their formats, anew in every run: nothing here has the shape of one before it is called."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Mapping
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "-_"
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + "234567"
LOWER = string.ascii_lowercase + string.digits

Make = Callable[[random.Random], str]


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    """`count` characters of `alphabet`, with a letter and a digit among them, a plain letter at the end."""
    body = [rng.choice(alphabet) for _ in range(count)]
    body[count // 2] = rng.choice([char for char in alphabet if char.isdigit()] or alphabet)
    body[count // 3] = body[-1] = rng.choice([char for char in alphabet if char.isalpha()])
    return "".join(body)


def _row(beginning: str, alphabet: str, count: int) -> Make:
    return lambda rng: beginning + chars(rng, alphabet, count)


def _jwt(rng: random.Random) -> str:
    def part(value: Mapping[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return ".".join((part({"alg": "HS256", "typ": "JWT"}), part({"sub": chars(rng, ALNUM, 12)}), chars(rng, WORD, 43)))


def _pem(rng: random.Random) -> str:
    kind = rng.choice(("RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""))
    body = "\n".join(chars(rng, ALNUM, 64) for _ in range(6))
    return f"-----BEGIN {kind}PRIVATE " + f"KEY-----\n{body}\n-----END {kind}PRIVATE " + "KEY-----"


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"bob:{chars(rng, ALNUM, 5)}".encode()).decode()


def _phrase(rng: random.Random) -> str:
    return " ".join(chars(rng, string.ascii_lowercase, 6) for _ in range(12))


def _discord(rng: random.Random) -> str:
    return "M" + chars(rng, WORD, 23) + "." + chars(rng, WORD, 6) + "." + chars(rng, WORD, 38)


# Tokens that are found wherever they stand.
TOKENS: Mapping[str, Make] = {
    "crypt of Apache": _row("$apr1" + "$ab12cd34$", ALNUM, 22),
    "bcrypt": _row("$2y" + "$10$", ALNUM, 53),
    "SHA-512 crypt": _row("$6" + "$ab12cd34$", ALNUM, 86),
    "Argon2": _row("$argon2id" + "$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$", ALNUM, 43),
    "openai": _row("sk" + "-", ALNUM, 48),
    "openai project": _row("sk" + "-proj-", WORD, 120),
    "anthropic": _row("sk" + "-ant-api03-", WORD, 95),
    "openrouter": _row("sk" + "-or-v1-", HEX, 64),
    "groq": _row("gs" + "k_", ALNUM, 52),
    "perplexity": _row("pp" + "lx-", ALNUM, 48),
    "xai": _row("xa" + "i-", ALNUM, 80),
    "nvidia": _row("nv" + "api-", WORD, 64),
    "replicate": _row("r" + "8_", ALNUM, 37),
    "hugging face": _row("h" + "f_", ALNUM, 34),
    "langsmith": _row("lsv2" + "_pt_", HEX, 32),
    "google api": _row("AI" + "za", WORD, 35),
    "google client secret": _row("GOC" + "SPX-", WORD, 28),
    "google access": _row("ya" + "29.", WORD, 80),
    "aws key id": _row("AK" + "IA", UPPER, 16),
    "aws temporary id": _row("AS" + "IA", UPPER, 16),
    "alibaba": _row("LT" + "AI", ALNUM, 20),
    "github personal": _row("gh" + "p_", ALNUM, 36),
    "github oauth": _row("gh" + "o_", ALNUM, 36),
    "github app": _row("gh" + "s_", ALNUM, 36),
    "github fine-grained": _row("github" + "_pat_", ALNUM + "_", 82),
    "gitlab": _row("gl" + "pat-", WORD, 20),
    "gitlab deploy": _row("gl" + "dt-", WORD, 20),
    "npm": _row("np" + "m_", ALNUM, 36),
    "pypi": _row("py" + "pi-", WORD, 150),
    "rubygems": _row("ruby" + "gems_", HEX, 48),
    "docker hub": _row("dckr" + "_pat_", WORD, 27),
    "slack bot": lambda rng: "xo" + f"xb-{rng.randrange(10**11)}-{chars(rng, ALNUM, 24)}",
    "slack app": lambda rng: "xa" + f"pp-1-A{chars(rng, UPPER, 10)}-{rng.randrange(10**13)}-{chars(rng, HEX, 64)}",
    "stripe live": _row("sk" + "_live_", ALNUM, 24),
    "stripe restricted": _row("rk" + "_live_", ALNUM, 24),
    "stripe webhook": _row("wh" + "sec_", ALNUM, 32),
    "twilio": _row("S" + "K", HEX, 32),
    "sendgrid": lambda rng: "S" + f"G.{chars(rng, WORD, 22)}.{chars(rng, WORD, 43)}",
    "mailgun": _row("ke" + "y-", HEX, 32),
    "mailchimp": lambda rng: chars(rng, HEX, 32) + "-us" + str(rng.randrange(1, 22)),
    "digitalocean": _row("do" + "p_v1_", HEX, 64),
    "shopify": _row("sh" + "pat_", HEX, 32),
    "telegram": lambda rng: f"{rng.randrange(10**8, 10**10)}:A" + f"A{chars(rng, WORD, 33)}",
    "discord": _discord,
    "databricks": _row("da" + "pi", HEX, 32),
    "grafana": _row("gl" + "sa_", ALNUM, 41),
    "linear": _row("lin" + "_api_", ALNUM, 40),
    "notion": _row("nt" + "n_", ALNUM, 46),
    "figma": _row("fi" + "gd_", WORD, 40),
    "vault": _row("hv" + "s.", WORD, 90),
    "terraform": lambda rng: f"{chars(rng, ALNUM, 14)}.atlas" + f"v1.{chars(rng, ALNUM, 67)}",
    "entra": lambda rng: f"{chars(rng, ALNUM, 3)}8Q" + f"~{chars(rng, ALNUM, 34)}",
    "atlassian": _row("ATA" + "TT3", WORD, 180),
    "new relic": _row("NR" + "AK-", UPPER, 27) ,
    "postman": lambda rng: "PM" + f"AK-{chars(rng, HEX, 24)}-{chars(rng, HEX, 34)}",
    "sentry": _row("snt" + "ryu_", HEX, 64),
    "square": _row("sq" + "0atp-", WORD, 22),
    "supabase": _row("sb" + "p_", HEX, 40),
    "tailscale": _row("ts" + "key-auth-", ALNUM, 30),
    "planetscale": _row("pscale" + "_tkn_", WORD, 43),
    "doppler": _row("dp" + ".pt.", ALNUM, 43),
    "doppler service": lambda rng: "dp" + f".st.prd_main.{chars(rng, ALNUM, 43)}",
    "dropbox": _row("sl" + ".", WORD, 136),
    "dropbox user": _row("sl" + ".u.", WORD, 136),
    "atlassian whole": lambda rng: "ATA" + f"TT3xFfGF0{chars(rng, WORD, 180)}={chars(rng, HEX, 8)}",
    "firebase messaging": lambda rng: f"AAAA{chars(rng, WORD, 7)}:APA" + f"91b{chars(rng, WORD, 134)}",
    "jwt": _jwt,
}  # fmt: skip

# Secrets that are known by where they stand: the name or address around each is part of the format.
PLACED: Mapping[str, tuple[str, Make]] = {
    "url password": ("https://bob:{}@example.com/x", _row("", ALNUM, 14)),
    "url token": ("https://{}@example.com/x.git", _row("", ALNUM, 32)),
    "postgres": ("postgresql+psycopg://app:{}@db.local:5432/main", _row("", ALNUM + "!$", 14)),
    "mongodb": ("mongodb+srv://app:{}@cluster0.example.net/?retryWrites=true", _row("", ALNUM, 14)),
    "amqp": ("amqps://guest:{}@mq/vhost", _row("", ALNUM, 14)),
    "redis": ("redis://:{}@cache:6379/0", _row("", ALNUM, 14)),
    "jdbc": ("jdbc:mysql://db/x?user=app&password={}", _row("", ALNUM, 14)),
    "connection string": ("Server=db;Database=x;User Id=app;Password={};Encrypt=true", _row("", ALNUM, 14)),
    "azure storage": ("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};", _row("", ALNUM + "+/", 86)),
    "sas": ("https://x.blob.example.net/c?sv=2022-11-02&sig={}&sp=r", _row("", ALNUM, 43)),
    "s3 signature": ("https://b.s3.example.com/k?X-Amz-Date=20250101T000000Z&X-Amz-Signature={}", _row("", HEX, 64)),
    "query token": ("https://example.com/cb?a=1&access_token={}&b=2", _row("", ALNUM, 30)),
    "slack hook": ("https://hooks.slack.com/services/{}", _row("T0/B0/", ALNUM, 24)),
    "discord hook": ("https://discord.com/api/webhooks/123456789012345678/{}", _row("", WORD, 68)),
    "teams hook": ("https://x.webhook.office.com/webhookb2/{}", _row("", HEX + "-", 60)),
    "aws secret": ("aws_secret_access_key = {}", _row("", ALNUM + "/+", 40)),
    "basic": ("Authorization: Basic {}", _row("", ALNUM, 24)),
    "bearer": ("authorization: Bearer {}", _row("", ALNUM, 40)),
    "header": ("X-Api-Key: {}", _row("", ALNUM, 32)),
    "proxy": ("Proxy-Authorization: Basic {}", _row("", ALNUM, 24)),
    "cookie": ("Cookie: theme=dark; sid={}", _row("", ALNUM, 32)),
    "set-cookie": ("Set-Cookie: sid={}; Path=/; HttpOnly", _row("", ALNUM, 32)),
    "shell": ("export DB_PASSWORD={}", _row("", ALNUM + "!@#%^&*", 16)),
    "dotenv quoted": ('APP_SECRET="{}"', _row("", ALNUM + " !@#", 16)),
    "yaml": ("db:\n  password: {}\n", _row("", ALNUM, 12)),
    "toml": ("[auth]\nclient_secret = '{}'\n", _row("", ALNUM, 24)),
    "properties": ("spring.datasource.password={}", _row("", ALNUM, 12)),
    "json": ('{{"user": "bob", "password": "{}"}}', _row("", ALNUM + " ,;", 18)),
    "json in json": ('{{"arguments": "{{\\"api_key\\": \\"{}\\"}}"}}', _row("", ALNUM, 18)),
    "cut json": ('{{"password": "{}', _row("", ALNUM, 18)),
    "python": ('password = "{}"', _row("", ALNUM + "!@#$%&*()", 18)),
    "typescript": ('const apiToken: string = "{}";', _row("", ALNUM, 18)),
    "ruby": (":password => '{}'", _row("", ALNUM, 18)),
    "macro": ('#define WIFI_PASSWORD "{}"', _row("", ALNUM, 18)),
    "xml": ("<server><password>{}</password></server>", _row("", ALNUM, 18)),
    "kubernetes": ("- name: DB_PASSWORD\n  value: {}\n- name: X\n", _row("", ALNUM, 14)),
    "setting": ('<add key="ApiToken" value="{}"/>', _row("", ALNUM, 14)),
    "seed phrase": ('seed_phrase = "{}"', _phrase),
    "call": ('monkeypatch.setenv("API_TOKEN", "{}")', _row("", ALNUM, 14)),
    "short basic": ("Authorization: Basic {}", _basic),
    "token option": ("deploy --token {} now", _row("", LOWER, 12)),
    "option": ("tool --password {} --verbose", _row("", ALNUM, 12)),
    "option with sign": ("tool --api-key={} --verbose", _row("", ALNUM, 12)),
    "curl": ("curl -s -u bob:{} https://example.com", _row("", ALNUM, 12)),
    "mysql": ("mysql -u root -p{} main", _row("", ALNUM, 12)),
    "netrc": ("machine example.com login bob password {}", _row("", ALNUM, 12)),
    "npmrc": ("//registry.npmjs.org/:_authToken={}", _row("", ALNUM, 36)),
    "prose": ("by the way, the password is {}.", _row("", ALNUM, 12)),
    "chinese": ("数据库密码：{}", _row("", ALNUM, 12)),
    "fish": ("set -x DB_PASSWORD {}", _row("", ALNUM, 14)),
    "fish, global": ("set -gx API_TOKEN '{}'", _row("", ALNUM, 14)),
    "fish, long": ("set --global --export SECRET_KEY {}", _row("", ALNUM, 14)),
    "csh": ("setenv MY_PASSWORD {}", _row("", ALNUM, 14)),
    "ansible": ("web1 ansible_host=10.0.0.1 ansible_ssh_pass={}", _row("", ALNUM, 14)),
    "ansible become": ("ansible_become_pass: '{}'", _row("", ALNUM, 14)),
    "pgpass": ("db.example.com:5432:main:app:{}", _row("", ALNUM, 14)),
    "pgpass, any": ("*:*:*:app:{}", _row("", ALNUM, 14)),
    "pgpass, other port": ("localhost:7000:main:app:{}", _row("", ALNUM, 14)),
    "dbpw": ("$dbpw = '{}';", _row("", ALNUM, 14)),
    "DB_PW": ("DB_PW={}", _row("", ALNUM, 14)),
    "German": ("Das Passwort lautet {}", _row("", ALNUM, 14)),
    "German name": ("db_kennwort: {}", _row("", ALNUM, 14)),
    "French": ("mot de passe : {}", _row("", ALNUM, 14)),
    "French name": ('mot_de_passe = "{}"', _row("", ALNUM, 14)),
    "French letters": ("mdp = '{}'", _row("", ALNUM, 14)),
    "Spanish": ("la contraseña es {}", _row("", ALNUM, 14)),
    "Spanish name": ("CONTRASENA={}", _row("", ALNUM, 14)),
    "Portuguese": ("senha: {}", _row("", ALNUM, 14)),
    "Russian": ("пароль: {}", _row("", ALNUM, 14)),
    "mysql user": ("CREATE USER 'app'@'%' IDENTIFIED BY '{}';", _row("", ALNUM, 14)),
    "mysql plugin": ("ALTER USER app IDENTIFIED WITH mysql_native_password BY '{}';", _row("", ALNUM, 14)),
    "postgres role": ("create role app with login password '{}'", _row("", ALNUM, 14)),
    "set password": ("SET PASSWORD FOR app = PASSWORD('{}')", _row("", ALNUM, 14)),
    "rails": ("secret_key_base: {}", _row("", HEX, 128)),
    "session": ('"session": "{}"', _row("", HEX, 40)),
    "call id": ('"call_id": "{}"', lambda rng: f"{chars(rng, ALNUM, 20)}1{chars(rng, ALNUM, 8)}2a"),
    "number": ("token: {}", lambda rng: str(rng.randrange(10**9, 10**10))),
    "twilio": ("twilio {}", lambda rng: f"{chars(rng, HEX, 32)} {chars(rng, HEX, 32)}"),
    "aws": ("aws configure: AK" + "IAABCDEFGHIJKLMNOP {}", _row("", ALNUM + "/+", 40)),
    "string over two lines": ("api_key = 'ab\\\n{}'", _row("", ALNUM, 24)),
    "pem": ("key:\n{}\n", _pem),
    "pem in json": ('{{"k": "{}"}}', lambda rng: json.dumps(_pem(rng))[1:-1]),
}  # fmt: skip

# What a token may stand in.
CONTEXTS: Mapping[str, str] = {
    "plain": "{}",
    "prose": "I found {} in the file, please rotate it.",
    "json": '{{"a": 1, "value": "{}"}}',
    "json in json": '{{"arguments": "{{\\"value\\": \\"{}\\"}}"}}',
    "env": "SOME_SETTING={}\n",
    "yaml": "config:\n  value: {}\n  other: 1\n",
    "toml": "value = '{}'\n",
    "url": "https://example.com/path?value={}&x=1",
    "header": "X-Custom: {}\r\nAccept: */*\r\n",
    "python": "client = Client('{}')",
    "shell": "tool --value {} --x",
    "markdown": "Use `{}` here.",
    "xml": "<value>{}</value>",
    "escaped line": "first\\n{}\\nlast",
    "diff": "-old\n+value: {}\n",
}


def quoted(secret: str) -> str:
    """`secret` as it stands in a URL."""
    return quote(secret, safe="")
