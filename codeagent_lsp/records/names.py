"""Names that say something about their value: what a name means (a secret, perhaps one, an identity, nothing), and
where such names stand in a text: `API_KEY`, `clientSecret`, `access token`, `密码`.

A meaning is read from the words of a name in any notation: `API_KEY`, `apiKey`, `x-api-key`, `spring.api.key`. In a
text, the stems of names are looked for one by one, as plain text: that is many times faster than one pattern of all,
and a text without a stem costs nothing more. Not here: the value of a name (`assignments.py`), whether a value looks
like a secret (`values.py`).
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from codeagent_lsp.records.mark import MARK, lower_in_place, places


class NameKind(Enum):
    """The sensitivity of a value according to its name, from nothing to hide (`PLAIN`) to always a
    secret (`SECRET`).
    """

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
    "requirepass", "masterauth", "authtok", "dockerconfigjson",
))  # fmt: skip
_FOREIGN = frozenset((
    "passwort", "passwoerter", "kennwort", "kennwoerter", "zugangskennwort", "motdepasse", "contrasena",
    "contrasenia", "parola", "parol", "senha", "wachtwoord", "haslo", "hasło", "пароль", "пароля", "паролем", "паролю",
    "losenord", "losenordet", "adgangskode", "adgangskoden", "salasana", "heslo", "jelszo", "sifre", "sifresi", "khau",
    "sandi", "geheimnis", "секрет", "κωδικος", "סיסמה", "पासवर्ड", "รหัสผ่าน", "apischlussel", "zugangsschlussel",
    "المرور", "السر", "مرور", "سر", "secreto", "secreta", "segredo", "sekret", "himitsu", "wachtwoorden",
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
    "mailgun", "gpr", "fcm", "twilio", "algolia", "datadog", "sentry", "cloudflare", "tls",
))  # fmt: skip
_WEAK = frozenset((
    "clave", "chave", "chiave", "cle", "schlussel", "schluessel", "jeton", "ключ", "токен", "キー", "키",
    "anahtar", "anahtari", "klucz", "sleutel", "nyckel", "himitsukagi",
    "通行证", "授权码", "授權碼", "激活码", "凭证", "憑證",
    "mdp", "pw", "token", "mnemonic", "auth", "cookie", "credential", "credentials", "bearer", "cred", "creds", "jwt",
))  # fmt: skip
_WEAK_KEYS = frozenset((
    "app", "application", "session", "client", "write", "service", "role", "storage", "account",
    "data", "server", "root", "cookie", "salt", "crypto", "decryption", "decrypt", "rsa", "hf", "huggingface", "linear",
    "notion", "github", "gitlab", "aws", "gcp", "db", "database", "hash", "wrapping", "bot", "user",
    "validation", "machine", "unseal", "recovery",
))  # fmt: skip
_PUBLIC = frozenset((
    "public", "pub", "publishable", "site", "primary", "foreign", "host", "known", "verify", "verification", "pubkey",
    "cache", "group", "object", "sort", "partition", "row", "idempotency", "dedup", "bundle", "chunk", "image", "file",
    "socket", "commit", "blob", "s3", "path", "digest", "etag", "asset", "upload",
))  # fmt: skip
_VENDORS = frozenset(("stripe", "aws", "openai", "clerk", "paddle", "paystack", "live", "test", "prod"))
_SUFFIXES = frozenset((
    "value", "raw", "plain", "plaintext", "text", "base64", "b64", "old", "new", "current", "prod", "production",
    "dev", "test", "staging", "live", "main", "default", "confirmation", "again", "string", "str", "admin", "root",
    "user", "env", "data", "primary", "secondary", "key", "base", "json",
))  # fmt: skip
# What a name in another language, or one that may be a secret's, is for: `clé_api`, `пароль_бд`.
_FOR = frozenset(("api", "апи", "bd", "бд", "acceso", "accesso", "acces", "acesso"))
# Words by which a name asks about a secret or counts something: `has_password`, `max_token`, `next_token`.
_QUESTIONS = frozenset((
    "forgot", "forget", "forgotten", "show", "hide", "has", "is", "needs", "need", "no", "use", "uses", "require",
    "should", "requires", "required", "allow", "enable", "disable", "hash", "hashed", "encrypted", "check",
    "validate", "max", "min", "num", "next", "prev", "previous", "peek", "csrf", "stop", "pad", "eos", "bos", "unk",
    "sep", "special", "first", "last", "eof", "cancellation", "cancel", "non", "not", "mask", "masked", "public",
    "progress", "partial", "result", "work", "done", "per", "continuation", "page", "pagination", "cursor", "image",
    "syntax", "keyword", "operator", "parser", "lexer", "lex", "n", "current", "pass", "match", "with", "without",
))  # fmt: skip
# What `pass` is a password of; alone it is a verb, a round, or the result of a test.
_PASS_OF = frozenset((
    "db", "database", "user", "smtp", "mail", "ftp", "proxy", "admin", "mysql", "redis", "pg", "auth", "ssh", "sudo",
    "su", "become", "ansible", "login", "root", "vnc", "imap", "ldap", "bind", "wifi", "amqp", "rabbitmq", "postgres",
    "mariadb", "mongo", "oracle", "sql", "email", "http", "svc", "keystore", "truststore", "store", "vault", "ssl",
    "cert", "pfx", "remote", "srcstore", "deststore", "service", "app", "default", "sa", "key",
    "mqtt", "wlan", "sta", "ota", "broker", "telnet", "router", "zip", "pdf", "jdbc", "ora", "rds", "repl", "git",
    "svn", "registry", "grafana", "kafka", "sasl", "xmpp", "sip", "pppoe", "vpn", "samba", "smb", "webdav", "rcon",
    "nickserv", "cpanel", "control",
))  # fmt: skip
_PW = frozenset(("dbpw", "rootpw", "userpw", "adminpw", "mypw", "smtppw", "ftppw", "ldappw", "bindpw", "sshpw"))
_LOOKING = frozenset((
    "session", "call_id", "callid", "pass", "login", "tokens", "pepper",
    "client_assertion", "code_verifier", "community", "authorization_code", "activation_code",
))  # fmt: skip
_CODES = frozenset(("recovery_code", "backup_code", "recovery_codes", "backup_codes"))
_OWNERS_OF_TOKENS = frozenset(("auth", "access", "admin", "api", "bearer", "bot", "refresh", "deploy", "service"))
_PAT_OF = frozenset(("github", "gitlab", "azure", "devops", "ado", "gh", "gl", "bitbucket", "my", "user"))
_SESSIONS = frozenset(("session_id", "sessionid", "tool_call_id", "sid", "phpsessid", "jsessionid", "session_cookie"))
_IDENTITIES = frozenset((
    "user_id", "userid", "account_id", "accountid", "project_id", "projectid", "org_id", "organization_id",
    "tenant_id", "customer_id", "workspace_id", "team_id", "subscription_id", "client_email", "owner_id",
))  # fmt: skip
_SALTS = frozenset(("auth_salt", "secure_auth_salt", "logged_in_salt", "nonce_salt", "signing_salt"))
_HEADERS = frozenset((
    "authorization", "proxy_authorization", "cookie", "set_cookie", "x_amz_security_token", "x_goog_api_key",
    "x_auth", "x_amz_signature", "x_amz_credential", "x_goog_signature", "x_goog_credential", "x_j_frog_art_api",
))  # fmt: skip


_BY_WEIGHT = (
    *(kind for kind in NameKind if kind not in (NameKind.PERHAPS, NameKind.SECRET)),
    NameKind.PERHAPS,
    NameKind.SECRET,
)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> NameKind:
    """Return the kind of a name by its words, in any notation and several languages. Names of more than 80 characters
    are plain.
    """
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
    if joined in _HEADERS or joined in _SALTS:
        return NameKind.SECRET
    if joined in _SESSIONS:
        return NameKind.SESSION
    if joined in _LOOKING:
        return NameKind.LOOKS
    if joined in _CODES:
        return NameKind.PERHAPS
    if joined in _IDENTITIES:
        return NameKind.IDENTITY
    # `secretOrKey` is what one of both is.
    if "or" in words[1:-1]:
        at = words.index("or", 1)
        return max((kind_of("_".join(part)) for part in (words[:at], words[at + 1 :])), key=_BY_WEIGHT.index)
    kind = _by_words(_without_suffixes(words))
    # A variable of the environment.
    return NameKind.LOOKS if kind is NameKind.PLAIN and name.isupper() and words[-1] in _OF_ENVIRONMENT else kind


_OF_ENVIRONMENT = frozenset(("key", "token", *_PASSWORDS))
LONGEST_NAME = 80

_STEMS = (
    "pass", "pw", "phrase", "kennw", "contrase", "senha", "wachtwoord", "parol", "haslo", "hasło", "lösenord",
    "losenord", "adgangskode", "salasana", "heslo", "jelsz",
    "şifre", "sifre", "khẩu", "sandi", "geheimnis",
    "schlüssel", "schluessel", "anahtar", "klucz", "sleutel", "nyckel", "himitsu", "sekret", "segredo", "clé",
    "masterauth", "mdp", "_pat", "_sk",
    "secret", "token", "jeton", "jwt", "psk", "fernet", "key", "auth", "cred", "cookie", "bearer", "session", "call_id",
    "callid", "mnemonic", "seed", "login", "dockerconfig", "pepper", "assertion", "verifier", "_code", "_salt",
    "community", "service_role", "servicerole", "art-api", "recovery code", "backup code",
    "clave", "chave", "chiave", "ключ", "токен", "キー", "키",
    "парол", "пасворд", "секрет", "κωδικ", "סיסמ", "كلمة المرور", "كلمة السر", "كلمة مرور", "كلمة سر",
    "पासवर्ड", "รหัสผ่าน",
    "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "金鑰", "令牌", "暗号", "パスワード", "合言葉",
    "私钥", "私鑰", "權杖", "权杖", "通行证", "授权码", "授權碼", "激活码", "凭证", "憑證",
    "シークレット", "トークン", "秘密鍵", "暗証番号",
    "비번", "비밀번호", "암호", "비밀키", "토큰", "패스워드", "시크릿",
)  # fmt: skip
_SESSION_STEMS = ("sid",)
_BEFORE = string.ascii_letters + string.digits + "_.$-"
_BEFORE_SET = frozenset(_BEFORE)
_UNSPACED = "\u0e00"  # from here on are the scripts that write words without spaces between them
_TAIL = re.compile(rf"(?:[^\W{_UNSPACED}-\uffff]|-)*+")
_EXPANDED = re.compile(r"\$\{\w+(?=-)")  # `${TOKEN-…}`: what a shell takes instead
_DEFINED = re.compile(r"-[DP](?=[A-Z_]{2}|[a-z]+[A-Z])")
_ALONE = re.compile(  # a personal access token
    r"(?<![A-Za-z0-9_.-])PAT(?=[\"']?[ \t]?[=:]|,?[ ](?:[a-z]{1,12} ){0,5}(?:is|to) )"
)
_FIRST = frozenset((
    "api", "access", "secret", "private", "auth", "encryption", "signing", "master", "license", "security", "service",
    "deploy", "pragma", "wep", "wpa", "wifi", "pass", "seed", "recovery", "unseal", "geheimer", "privater", "shared",
    "webhook", "admin", "activation", "gateway",
))  # fmt: skip
_SECOND = frozenset(("key", "keys", "token", "pass", "passe", "phrase", "schlüssel"))


_LAST_WORD = re.compile(r"[^\W_]*+\Z")


class Name(NamedTuple):
    """A sensitive name found in a text: its words as they stand there, its span in characters (half-open), and its
    kind.
    """

    text: str
    start: int
    end: int
    kind: NameKind


# JSON as many programs write it: names of other scripts by the numbers of their characters.
_ONE_ESCAPED = len("\\u0000")
_ESCAPED = re.compile(r"(?:\\u[0-9A-Fa-f]{4})++")
_PARENT = re.compile(r"[\w.-]{2,40}\Z")
_BELOW = re.compile(r"(?: \w[^\n\"`=;{}|()<>]{0,120})?[:：][ \t]*\r?\n")  # `the key you asked for:`, then it
_BESIDE = re.compile(r" [`“«]\S{12,4096}")
_PUBLIC_KEY = ("public ", "Public ", "signing ", "host ", "GPG ", "PGP ")
_PARENTS = frozenset("\n \t\"'{")


def sensitive_names(text: str, *, sessions: bool) -> Iterator[Name]:
    """Yield the sensitive names in `text`, in order, none overlapping; with `sessions`, also those of session and call
    ids.
    """
    end = 0
    for at, length in _stems(text, (*_STEMS, *_SESSION_STEMS) if sessions else _STEMS):
        # Within the name before, as `key` in `token_key`.
        if at < end:
            continue
        end = at + length
        # In a script without blanks the name ends with its stem.
        if text[end - 1] < _UNSPACED and (tail := _TAIL.match(text, end)):
            end = tail.end()
            if "-" in tail[0] and (expanded := _EXPANDED.match(text, name_start(text, at) - 2)):
                end = expanded.end()
        if text[at - 1 : at] == "<" and MARK.match(text, at - 1):  # a mark contains the word `secret`
            continue
        start = name_start(text, at)
        if end - start <= LONGEST_NAME and (name := _name(text, start, end)):
            yield name


def name_start(text: str, stem: int) -> int:
    """Return the offset, in characters, at which the name begins whose stem, such as `token` in `access_token`, is at
    the offset `stem`.
    """
    if text[stem - 1 : stem] not in _BEFORE_SET:
        return stem
    before = text[max(0, stem - LONGEST_NAME) : stem]
    return stem - len(before) + len(before.rstrip(_BEFORE))


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
    if last == "tokens" and before and before[-1] in _OWNERS_OF_TOKENS:
        return NameKind.LOOKS
    if last == "phrase" and before:
        return NameKind.SECRET if before[-1] in ("pass", "seed", "recovery") else NameKind.PLAIN
    if last == "token" and before[-1:] in (["csrf"], ["xsrf"]):
        return NameKind.LOOKS
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
    if last == "login" or (last == "role" and before[-1:] == ["service"]):
        return NameKind.LOOKS
    if last == "pass":
        return NameKind.SECRET if before and before[-1] in _PASS_OF else NameKind.LOOKS
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
    if last in _SECRETS or last in _FOREIGN or last.endswith(_ENDINGS):
        return NameKind.SECRET
    # Elsewhere the thing comes first, and then what it is for: `contraseña_correo`, `hasło_do_bazy`.
    return NameKind.PLAIN if _FOREIGN.isdisjoint(before) else NameKind.LOOKS


def _plain(name: str) -> str:
    """Return a name without accents: `contraseña` as `contrasena`; of other scripts, as it is."""
    apart = unicodedata.normalize("NFD", name.translate(_STROKES))
    return unicodedata.normalize("NFC", "".join(char for char in apart if not "\u0300" <= char <= "\u036f"))


def _by_key(before: list[str]) -> NameKind:
    if before[-1] in _WEAK_KEYS:
        return NameKind.PERHAPS
    if before[-1] in _KEYS or before[-1] in _SECRETS or before[-2:] == ["logged", "in"]:
        return NameKind.SECRET
    # What it opens may be anything; few of the keys that only find something look generated.
    return NameKind.PLAIN if before[-1] in _PUBLIC or before[0] in _QUESTIONS else NameKind.LOOKS


def _without_suffixes(words: list[str]) -> list[str]:
    """Return `words` without suffixes that carry no meaning: `token_value`, `password2`, `api_key_prod`."""
    end = len(words)
    while end > 1 and (
        words[end - 1].isdigit()
        or words[end - 1] in _SUFFIXES
        or (words[end - 1] in _FOR and (words[end - 2] in _FOREIGN or words[end - 2] in _WEAK))
    ):
        if words[end - 1] == "key" and words[end - 2] not in ("password", "token", "passwd"):
            break
        end -= 1
    return words[:end] if end > 1 or not words[:1] or words[0] not in ("key",) else words


def _name(text: str, start: int, end: int) -> Name | None:
    words = text[start:end]
    kind = _kind(words)
    if kind is NameKind.SECRET:
        return Name(words, start, end, kind)
    if words in ("key", "Key") and (
        (text[start - 1 : start] in _PARENTS and _is_of_secret(text, start))
        or ((_BELOW.match(text, end) or _BESIDE.match(text, end)) and not text.endswith(_PUBLIC_KEY, 0, start))
    ):
        return Name(words, start, end, NameKind.PERHAPS)
    if text[start - 1 : start] == " " and words.lower() in _SECOND:
        before = text[max(0, start - 16) : start - 1].lower()
        first = "mot de" if before.endswith("mot de") else _LAST_WORD.findall(before)[0]
        if first in _FIRST or first == "mot de":
            start -= len(first) + 1
            kind = kind_of(text[start:end].replace(" ", "_"))
    if kind is NameKind.LOOKS and text[start - 2 : start] == "::":  # a kind of thing: `AWS::KMS::ReplicaKey`
        return None
    return None if kind in (NameKind.PLAIN, NameKind.IDENTITY) else Name(text[start:end], start, end, kind)


def _is_of_secret(text: str, key: int) -> bool:
    """Return whether what stands around a `key` at an offset makes it one of a secret: `api:` or `[api]` on the line
    above, `"api": {` before it.
    """
    before = text[max(0, key - 60) : key].rstrip("\"'").rstrip(" \t")
    if before.endswith("\n"):
        before = before.rstrip("\r\n")
    above = before.rstrip(" \t{").rstrip(" \t:=").rstrip("\"']")
    name = _PARENT.search(above, max(0, len(above) - 40))
    return above != before and name is not None and _kind(f"{name[0]}_key") is NameKind.SECRET


@lru_cache(maxsize=16_384)  # as many names as a large text has
def _kind(words: str) -> NameKind:
    if "\\u" in words:
        words = _read(words)
    # `-DAPI_KEY=…` defines a name for a compiler, or a property for Java.
    return kind_of((words[2:] if _DEFINED.match(words) else words).strip("-.$"))


@lru_cache(maxsize=4096)
def _has_stem(escaped: str) -> bool:
    read = _read(escaped).lower()
    return any(stem in read for stem in _STEMS)


def _read(escaped: str) -> str:
    return _ESCAPED.sub(lambda found: "".join(chr(int(code, 16)) for code in found[0].split("\\u")[1:]), escaped)


def _stems(text: str, stems: tuple[str, ...]) -> list[tuple[int, int]]:
    found = [(match.start(), 3) for match in _ALONE.finditer(text)] if "PAT" in text else []
    lower = lower_in_place(text)
    ascii_only = lower.isascii()
    for stem in stems:
        if stem.isascii() or not ascii_only:
            found += [(at, len(stem)) for at in places(lower, stem)]
    for match in _ESCAPED.finditer(text) if "\\u" in text else ():
        if len(match[0]) > _ONE_ESCAPED and _has_stem(match[0]):
            found.append((match.start(), len(match[0])))
    found.sort()
    return found
