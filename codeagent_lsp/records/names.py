"""Classification of names by what they say about their value: a secret, perhaps one, an identity, or nothing.

Works on the words of a name in any notation: `API_KEY`, `apiKey`, `x-api-key`, `spring.api.key`. Not here:
the judgement of the value itself (`values.py`).
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum, auto
from functools import lru_cache


class NameKind(Enum):
    """The sensitivity of a value according to its name."""

    PLAIN = auto()
    """Nothing to hide."""
    SECRET = auto()
    """Always a secret: `password`, `client_secret`, `access_token`."""
    PERHAPS = auto()
    """A secret when it looks like one: a bare `token` may also be a piece of source code."""
    SESSION = auto()
    """Names one conversation or call; replaced in records."""
    LOOKS = auto()
    """A secret when it looks generated: `session` is also the name of many other things."""
    IDENTITY = auto()
    """Names a person, account or project; shown by its first and last characters in records."""


# `APIKey` is `API`, `Key`; `apiKey2` is `api`, `Key`, `2`.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
# Letters without an accent that could be taken off.
_STROKES = {ord(char): plain for char, plain in zip("łŁøØıđß", ("l", "L", "o", "O", "i", "d", "ss"), strict=True)}
_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd", "userpass")
_SECRETS = frozenset((
    *_PASSWORDS, "secret", "apikey", "apitoken", "accesskey", "secretkey", "accesstoken", "authtoken", "bearer",
    "authorization", "accountkey", "privatekey", "credential", "credentials", "secrets", "passwords", "apikeys",
    "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "金鑰", "令牌", "暗号", "パスワード", "合言葉", "シークレット",
    "トークン", "秘密鍵", "暗証番号", "私钥", "私鑰", "權杖", "权杖",
    "비번", "비밀번호", "암호", "비밀키", "토큰", "패스워드", "시크릿", "sharedaccesskey",
    "clientsecret", "appsecret", "authkey", "pat", "psk", "fernet", "privkey", "presharedkey",
    "requirepass", "masterauth",
))  # fmt: skip
_FOREIGN = frozenset((
    "passwort", "passwoerter", "kennwort", "kennwoerter", "zugangskennwort", "motdepasse", "contrasena",
    "contrasenia", "parola", "parol", "senha", "wachtwoord", "haslo", "hasło", "пароль", "пароля", "паролем", "паролю",
    "losenord", "losenordet", "adgangskode", "adgangskoden", "salasana", "heslo", "jelszo", "sifre", "sifresi", "khau",
    "sandi", "geheimnis", "секрет", "κωδικος", "סיסמה", "पासवर्ड", "รหัสผ่าน", "apischlussel", "zugangsschlussel",
    "المرور", "السر",
))  # fmt: skip
SECRET_WORDS = _SECRETS | _FOREIGN | {"token", "passe", "pass", "key", "pin"}
_ENDINGS = ("password", "passwort", "kennwort", "passwd", "passphrase", "secret", "token", "apikey", "pwd")
_KEYS = frozenset((
    "api", "access", "secret", "private", "account", "auth", "encryption", "signing", "master", "license", "ssh",
    "deploy", "service", "role", "shared", "session", "app", "application", "consumer", "client", "subscription",
    "encrypt", "webhook", "hmac", "jwt", "ingest", "write", "admin", "storage", "integration",
    "geheimer", "privater",
    "fernet", "pragma", "wep", "wpa", "wifi", "priv", "preshared", "aes", "kms", "enc", "cipher", "openai", "anthropic",
    "openrouter", "gemini", "groq", "mistral", "cohere", "deepseek", "stripe", "azure", "google", "maps", "sendgrid",
    "mailgun", "gpr", "fcm", "twilio", "algolia", "datadog", "sentry", "cloudflare",
))  # fmt: skip
_WEAK = frozenset((
    "clave", "chave", "chiave", "cle", "schlussel", "jeton", "ключ", "токен", "キー", "키",
    "通行证", "授权码", "授權碼", "激活码", "凭证", "憑證",
    "mdp", "pw", "token", "mnemonic", "auth", "cookie", "credential", "credentials", "bearer", "cred", "creds", "jwt",
))  # fmt: skip
_WEAK_KEYS = frozenset((
    "app", "application", "session", "client", "write", "service", "role", "storage", "account",
    "data", "server", "root", "cookie", "salt", "crypto", "decryption", "decrypt", "rsa", "hf", "huggingface", "linear",
    "notion", "github", "gitlab", "aws", "gcp", "db", "database", "hash", "wrapping", "bot", "user",
))  # fmt: skip
_VENDORS = frozenset(("stripe", "aws", "openai", "clerk", "paddle", "paystack", "live", "test", "prod"))
_SUFFIXES = frozenset((
    "value", "raw", "plain", "plaintext", "text", "base64", "b64", "old", "new", "current", "prod", "production",
    "dev", "test", "staging", "live", "main", "default", "confirmation", "again", "string", "str", "admin", "root",
    "user", "env", "data", "primary", "secondary", "key", "base",
))  # fmt: skip
# Words by which a name asks about a secret or counts something: `has_password`, `max_token`, `next_token`.
_QUESTIONS = frozenset((
    "forgot", "forget", "forgotten", "show", "hide", "has", "is", "needs", "need", "no", "use", "uses", "require",
    "requires", "required", "allow", "enable", "disable", "hash", "hashed", "encrypted", "check", "validate", "max",
    "min", "num", "next", "prev", "previous", "peek", "csrf", "stop", "pad", "eos", "bos", "unk", "sep", "special",
    "first", "last", "eof", "cancellation", "cancel", "non", "not", "mask", "masked", "public", "progress",
    "partial", "result", "work", "done", "per", "continuation", "page", "pagination", "cursor", "image", "syntax",
    "keyword", "operator", "parser", "lexer", "lex", "n", "current", "pass", "match", "with", "without",
))  # fmt: skip
# What `pass` is a password of; alone it is a verb, a round, or the result of a test.
_PASS_OF = frozenset((
    "db", "database", "user", "smtp", "mail", "ftp", "proxy", "admin", "mysql", "redis", "pg", "auth", "ssh", "sudo",
    "su", "become", "ansible", "login", "root", "vnc", "imap", "ldap", "bind", "wifi", "amqp", "rabbitmq", "postgres",
    "mariadb", "mongo", "oracle", "sql", "email", "http", "svc", "keystore", "truststore", "store", "vault", "ssl",
    "cert", "pfx", "service", "app", "default", "sa", "key",
))  # fmt: skip
_PW = frozenset(("dbpw", "rootpw", "userpw", "adminpw", "mypw", "smtppw", "ftppw", "ldappw", "bindpw", "sshpw"))
_LOOKING = frozenset(("session", "call_id", "callid", "pass", "tokens", "auth_tokens", "access_tokens"))
_PAT_OF = frozenset(("github", "gitlab", "azure", "devops", "ado", "gh", "gl", "bitbucket", "my", "user"))
_SESSIONS = frozenset(("session_id", "sessionid", "tool_call_id", "sid", "phpsessid", "jsessionid", "session_cookie"))
_IDENTITIES = frozenset((
    "user_id", "userid", "account_id", "accountid", "project_id", "projectid", "org_id", "organization_id",
    "tenant_id", "customer_id", "workspace_id", "team_id", "subscription_id", "client_email", "owner_id",
))  # fmt: skip
_HEADERS = frozenset((
    "authorization", "proxy_authorization", "cookie", "set_cookie", "x_amz_security_token", "x_goog_api_key",
    "x_auth", "x_amz_signature", "x_amz_credential", "x_goog_signature", "x_goog_credential",
))  # fmt: skip


_BY_WEIGHT = (
    *(kind for kind in NameKind if kind not in (NameKind.PERHAPS, NameKind.SECRET)),
    NameKind.PERHAPS,
    NameKind.SECRET,
)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> NameKind:
    """Return the kind of `name`. Names of more than 80 characters are sentences, and plain."""
    if len(name) > 80:
        return NameKind.PLAIN
    first, dot, last = name.rpartition(".")
    if dot and first and (kind := kind_of(last)) is not NameKind.PLAIN:
        return kind  # `self.token` is a token
    words = [word.lower() for word in _WORD.findall(name if name.isascii() else _plain(name))]
    joined = "_".join(words)
    # In capitals only, as `pat` is also short for pattern.
    if name in ("PAT", "$PAT"):
        return NameKind.PERHAPS
    if joined in _HEADERS:
        return NameKind.SECRET
    if joined in _SESSIONS:
        return NameKind.SESSION
    if joined in _LOOKING:
        return NameKind.LOOKS
    if joined in _IDENTITIES:
        return NameKind.IDENTITY
    # `secretOrKey` is what one of both is.
    if "or" in words[1:-1]:
        at = words.index("or", 1)
        return max((kind_of("_".join(part)) for part in (words[:at], words[at + 1 :])), key=_BY_WEIGHT.index)
    return _by_words(_without_suffixes(words))


def _by_words(words: list[str]) -> NameKind:
    if not words:
        return NameKind.PLAIN
    *before, last = words
    # `api_key` is one, `primary_key` is none: the word before tells.
    if last in ("key", "schlussel") and before:
        return _by_key(before)
    # Mostly the names of entries.
    if last == "keys" and before:
        return NameKind.LOOKS if before[-1] in ("api", "secret", "access", "private", "auth") else NameKind.PLAIN
    if last == "phrase" and before:
        return NameKind.SECRET if before[-1] in ("pass", "seed", "recovery") else NameKind.PLAIN
    if before and _QUESTIONS.intersection(before) and last not in ("secret", "apikey"):
        return (
            NameKind.PERHAPS
            if before[0] in ("current", "last", "next", "with") and last in _PASSWORDS
            else NameKind.PLAIN
        )
    # `mot_de_passe`.
    if last == "passe" and before[-2:] == ["mot", "de"]:
        return NameKind.SECRET
    if last in _PW or (last == "pw" and before and before[-1] in _PASS_OF):
        return NameKind.SECRET
    if last == "pass":
        return NameKind.SECRET if before and before[-1] in _PASS_OF else NameKind.PLAIN
    # A personal access token by its maker's name; alone it is a name or a pattern.
    if last == "pat":
        return NameKind.SECRET if before and before[-1] in _PAT_OF else NameKind.PLAIN
    if last in ("sk", "passkey", "seed"):
        known = before and before[-1] in (("totp", "otp", "mfa") if last == "seed" else _VENDORS)
        return NameKind.PERHAPS if known or last == "passkey" else NameKind.PLAIN
    # `token` alone is mostly a piece of a text; `access_token` opens something.
    if last in _WEAK:
        return NameKind.SECRET if before and last in ("token", "bearer") else NameKind.PERHAPS
    if last.endswith("pass") and last.removesuffix("pass") in _PASS_OF:
        return NameKind.SECRET
    return NameKind.SECRET if last in _SECRETS or last in _FOREIGN or last.endswith(_ENDINGS) else NameKind.PLAIN


def _plain(name: str) -> str:
    """Return a name without accents: `contraseña` as `contrasena`; of other scripts, as it is."""
    apart = unicodedata.normalize("NFD", name.translate(_STROKES))
    return unicodedata.normalize("NFC", "".join(char for char in apart if not "\u0300" <= char <= "\u036f"))


def _by_key(before: list[str]) -> NameKind:
    if before[-1] in _WEAK_KEYS:
        return NameKind.PERHAPS
    if before[-1] in _KEYS or before[-1] in _SECRETS:
        return NameKind.SECRET
    return NameKind.PLAIN


def _without_suffixes(words: list[str]) -> list[str]:
    """Return `words` without suffixes that carry no meaning: `token_value`, `password2`, `api_key_prod`."""
    end = len(words)
    while end > 1 and (words[end - 1].isdigit() or words[end - 1] in _SUFFIXES):
        if words[end - 1] == "key" and words[end - 2] not in ("password", "token", "passwd"):
            break
        end -= 1
    return words[:end] if end > 1 or not words[:1] or words[0] not in ("key",) else words
