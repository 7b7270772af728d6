"""Secrets known by the program they are for: `curl -u user:password`, `mysql -ppassword`, `.netrc`, `.pgpass`, SQL.

Not here: `--password value`, which is an assignment (`assignments.py`); real parsing of commands.
"""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import MARK, Mark, lowered, places, replaced
from codeagent_lsp.records.values import is_placeholder, looks_random, looks_scrambled, looks_spoken

HASH = 40  # characters of a SHA-1 in hexadecimal
_BEHIND = 4  # blanks between the parts of a form may be as many line ends

_M = MARK.pattern
_V = rf"(?:{_M}|[^\s\"'`;|&<>])"
_TOOLS = re.compile(
    r"(?:curl|wget|http|https|xh|mysql|mysqldump|mysqladmin|mariadb|mongosh?|redis-cli|sshpass|mosquitto_pub|mosquitto_sub|docker|podman|helm|"
    r"ldapsearch|smbclient|nexus|az|sqlcmd|rclone|skopeo|7z|zip|unzip|openssl|gpg|machine|etcdctl)\b[^\r\n]{1,65536}"
)
_USER = re.compile(
    r"(?P<head>(?:^|\s)(?:-u|--user|--proxy-user|-U|-a|--auth|--creds|--src-creds|--dest-creds)[ =]?[\"']?"
    r"[^\s:\"'<>]{1,100}:)"
    rf"(?P<value>{_V}{{1,65536}}+)"
)
_SHORT = re.compile(rf"(?P<head>(?:^|\s)-(?:p|a|w|P)[ ]?[\"']?)(?P<value>(?!-){_V}{{4,65536}}+)")
_NETRC = re.compile(rf"(?P<head>login\s{{1,10}}\S{{1,200}}\s{{1,10}}password\s{{1,10}})(?P<value>{_V}{{1,65536}}+)")
_OPENSSL = re.compile(rf"(?P<head>pass:)(?P<value>{_V}{{1,65536}}+)")
# `host:port:database:user:password`, a line of `.pgpass`.
_PGPASS = re.compile(
    rf"(?P<head>(?:^|(?<=[\s'\"|+:-]))(?:\*|[A-Za-z0-9][\w.-]{{0,100}}):(?P<port>\*|[1-9][0-9]{{3,4}}):[\w*.-]{{1,63}}:"
    rf"[\w*.@-]{{1,63}}:)(?P<value>(?:{_M}|\\[:\\]|[^\s:\\\"'`]){{4,65536}}+)(?=$|[\s\"'`])",
    re.MULTILINE,
)
_VALUE_OF_SQL = r"\\{0,3}['\"])(?P<value>[^'\"\r\n\\]{3,65536}+)(?=\\{0,3}['\"])"
_IDENTIFIED = re.compile(
    r"(?P<head>\bIDENTIFIED\s{1,4}(?:WITH\s{1,4}['\"]?\w{1,40}['\"]?\s{1,4})?(?:BY|AS)\s{1,4}(?:PASSWORD\s{1,4})?"
    + _VALUE_OF_SQL,
    re.IGNORECASE,
)
# Oracle's have no quotes.
_IDENTIFIED_BARE = re.compile(
    r"(?P<head>\b(?:(?:CREATE|ALTER)\s{1,4}(?:USER|ROLE)|CONNECT\s{1,4}TO)\s{1,4}[\w$#\"]{1,128}"
    rf"\s{{1,4}}IDENTIFIED\s{{1,4}}BY\s{{1,4}})(?P<value>(?!['\"]){_V}{{6,65536}}+)",
    re.IGNORECASE,
)
_SQL_PASSWORD = re.compile(r"(?P<head>\b(?:PASSWORD(?:\s{1,4}\(?|\()\s{0,4}|password\s{1,4})" + _VALUE_OF_SQL)
# Two tokens that belong together: the identifier, or the service's name, and then the secret.
_AFTER_AWS = re.compile(
    r"(?P<head>(?:\baws\b[^\r\n]{0,60}?|<secret:[0-9a-f]{6}>)[\s:,\"'|]{1,6})(?P<value>(?<![\w/+])[A-Za-z0-9/+]{40})(?![\w/+=])"
)
_AFTER_TWILIO = re.compile(
    rf"(?P<head>\b(?i:twilio)\b[^\r\n]{{0,40}}?[\s:,\"'=]{{1,6}}(?:{_M}|[A-Za-z0-9]{{32,64}})[\s:,/\"']{{1,6}})"
    r"(?P<value>[A-Za-z0-9]{32,64})(?![\w/+=])"
)
_TWILIO_ID = re.compile(
    rf"(?P<head>\b(?i:twilio)\b[^\r\n]{{0,40}}?[\s:,\"'=]{{1,6}})(?P<value>[A-Za-z0-9]{{32,64}})(?=[\s:,/\"']{{1,6}}{_M})"
)
# The password comes first: piped into the program that reads it, or named behind it.
_PIPED = re.compile(
    rf"(?P<head>(?:echo|printf)\s{{1,4}}(?:-\w\s{{1,4}})?(?:[\"']?%s(?:\\n)?[\"']?[ \t]{{1,4}})?[\"']?"
    rf"(?:[\w.-]{{1,64}}:)?)(?P<value>{_V}{{4,65536}}+)"
    r"(?=[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]|(?:ch|smb|htp?)?passwd\b"
    r"|[^\r\n|]{0,200}?--(?:password-stdin|with-token|passphrase-fd)\b"
    r"|(?P<container>docker[ \t]|podman[ \t])(?P<reads>[^\r\n|]{0,200}?(?:\blogin\b|secret|passw|token|cred))?))"
)
# What is written into a file whose name says what it holds, and what a script types when it is asked.
_INTO_FILE = re.compile(
    rf"(?P<head>\b(?:echo|printf)[ \t]{{1,4}}(?:-\w[ \t]{{1,4}})?(?:[\"']?%s(?:\\n)?[\"']?[ \t]{{1,4}})?[\"']?)"
    rf"(?P<value>{_V}{{6,65536}}+)(?=[\"']?[ \t]{{0,4}}(?:>{{1,2}}|\|[ \t]{{0,4}}(?:sudo[ \t])?tee\b)[^\n;|&]{{0,120}}"
    r"(?i:token|secret|passw|passphrase|credential|api.?key|netrc|pgpass))"
)
_TYPED = re.compile(rf"(?P<head>\bsend[ \t](?:--[ \t])?\"(?:--[ \t])?)(?P<value>(?:(?!\\[rn]\"){_V}){{6,65536}}+)")
_FED_TO = re.compile(
    r"(?P<head>(?:--password-stdin|--with-token|\b(?:chpasswd|passwd|kinit|cryptsetup|smbpasswd)\b"
    r"|\bsudo[ \t]+-S|htpasswd[ \t]+-\w*i|\bpass[ \t]+insert\b|\bsecret-tool[ \t]+store\b|\bkeyring[ \t]+set\b)"
    r"[^\n|;<]{0,120}<<(?:<[ \t]{0,4}[\"']?"
    r"|-?[ \t]{0,4}[\"']?\w{1,20}[\"']?[^\n]{0,40}\n[ \t]{0,40})(?:[\w.-]{1,64}:)?)"
    rf"(?P<value>{_M}|{_V}{{4,65536}}+)"
)
_FEEDING = ("passw", "with-token", "kinit", "cryptsetup", "sudo", "pass insert", "secret-tool", "keyring")
_SAID = re.compile(
    r"[ \t](?:is|as|ist|als|est|es|é|è)[ \t](?:(?:the|my|our|your|a|das|mein|dein|le|mon|la|mi)[ \t])?"
    r"(?:\w{1,20}[ \t]){0,2}(?:(?P<password>(?i:pass(?!ed|es|ing)|kennwort|mot de passe|contrase|senha))"
    r"|(?i:secret|token|api.?key))"
    r"|(?:[がは]|是|作为|作為|[为為])(?P<unspaced>パスワード|暗証番号|密[码碼]|口令)"
)
_WORD_SIGNS = "".join(char for char in map(chr, range(33, 127)) if char not in "\"'()<>`")
_LAST_WORD = re.compile(r"[^\s\"'`(<>「«“”]{6,}\Z")
_LONGEST_SAID = 4_096  # characters of a word
_SAYING = (" is ", " as ", " ist ", " als ", " est ", " es ", " é ", " è ", "がパスワード", "はパスワード")
_CHINESE = ("密码", "密碼", "口令")
_SAYING_UNSPACED = tuple(f"{verb}{word}" for verb in ("是", "作为", "作為", "为", "為") for word in _CHINESE)
_SECRET_WORDS = ("pass", "secret", "token", "key", "kennwort", "contrase", "senha", "パスワード", "暗証", *_CHINESE)
_PORT = re.compile(r":(?:\*|[1-9][0-9]{3,4}):")
# A user and the password behind a sign of the program's own: `sqlplus bob/…@db`, `smbclient -U bob%…`, and programs
# that take it as a word.
_AFTER_USER = re.compile(
    r"(?P<head>(?:\b(?:sqlplus|sqlldr|expdp|impdp)[ \t](?:-\w+[ \t])*[\w.-]{1,64}/|:thin:[\w.-]{1,64}/"
    r"|\b(?:smbclient|rpcclient)[ \t][^\r\n]{0,200}?(?:-U|--user)[ =]?[\"']?[\w.\\-]{1,64}%"
    r"|\blftp[ \t][^\r\n]{0,200}?-u[ ]?[\"']?[\w.@-]{1,64},|\bxfreerdp[ \t][^\r\n]{0,200}?/p:"
    r"|\bnet[ \t]user[ \t][\w.\\-]{1,64}[ \t]|\bssh-keygen[ \t](?:[^\r\n]{0,120}?[ \t])?-[NP][ \t]"
    r"|\bSecureString\b[^\r\n]{0,200}?--value[ =]|\bConvertTo-SecureString[ \t](?:-String[ \t])?"
    r"|\bsnmp-server[ \t]community[ \t]|\bvault[ \t]login[ \t]"
    r"|\buser(?:add|mod)[ \t][^\r\n]{0,80}?-p[ \t]|\bopenssl[ \t][^\r\n]{0,120}?[ \t]-[kK][ \t]"
    r"|\bhtpasswd[ \t]+-\w*b\w*[ \t]+[^\s;|&]{1,200}[ \t]+[\w.@-]{1,64}[ \t]+"
    r"|\bnet[ \t]use[ \t](?:\w:[ \t])?\\\\\S{1,200}[ \t](?!/)"
    r"|\bput-parameter\b[^\r\n]{0,200}?--value[ =]|\bcargo[ \t]login[ \t]|\bgem[ \t]push[ \t]--key[ \t]"
    r"|\bconfig[ \t]set[ \t]--secret[ \t][\w:.-]{1,80}[ \t]"
    rf"|/user:[\w.\\-]{{1,64}}[ \t]|/pass:)[\"']?)(?P<value>(?:(?!@){_V}){{6,65536}}+)"
)
_USERS = (
    *("sqlplus", "sqlldr", "expdp", "impdp", ":thin:", "smbclient", "rpcclient", "vault login", "useradd", "usermod"),
    *(
        "htpasswd",
        "net use",
        "openssl",
        "/user:",
        "/pass:",
        "lftp",
        "xfreerdp",
        "net user",
        "ssh-keygen",
        "SecureString",
        "snmp-server",
        "put-parameter",
        "cargo login",
        "gem push",
        "config set --secret",
    ),
)
_SPOKEN_TO_SERVER = re.compile(  # FTP, POP, IMAP, IRC
    rf"(?P<head>^(?:[\w.]{{1,8}}[ |:+>]{{1,2}})?(?:PASS|LOGIN[ ]\S{{1,100}}|AUTH)[ ]\"?)(?P<value>{_V}{{6,65536}}+)",
    re.MULTILINE,
)
_OPTIONS = ("-u", "-U", "--", "-p", "-P", "-a", "-w", "pass:")  # a command has one of them on its line
_SHORT_TOOLS = (
    "mosquitto",
    "mysql",
    "maria",
    "redis",
    "sshpass",
    "docker",
    "podman",
    "mongo",
    "ldap",
    "az",
    "sqlcmd",
    "7z",
    "zip",
    "unzip",
)


def mask_command_lines(text: str, mark: Mark) -> str:
    """Return `text` with passwords given to well-known programs masked."""
    # A form is looked for only where a word of it stands: most texts have none, and words are found ten times faster.
    if " -" in text or "\t-" in text or "pass:" in text:
        options = places(text, *_OPTIONS)
        text = replaced(options, text, _TOOLS, lambda match: _command(match[0], mark))
    if "login" in text and "password" in text:
        text = _NETRC.sub(lambda match: _masked(match, mark), text)
    ports = (match.start() for match in _PORT.finditer(text))
    text = replaced(ports, text, _PGPASS, lambda match: _of_pgpass(match, mark))
    told = places(text, "PASS ", "LOGIN ", "AUTH ")
    text = replaced(told, text, _SPOKEN_TO_SERVER, lambda match: _scrambled(match, mark))
    if "<<" in text and any(word in text for word in _FEEDING):
        fed = places(text, "<<")
        text = replaced(fed, text, _FED_TO, lambda match: _masked(match, mark), _BEHIND)
    users = places(text, *_USERS)
    text = replaced(users, text, _AFTER_USER, lambda match: _random(match, mark))
    if "|" in text:
        piped = places(text, "echo ", "printf ")
        text = replaced(piped, text, _PIPED, lambda match: _piped(match, mark), _BEHIND)
    written = places(text, "echo ", "printf ") if ">" in text or "tee " in text else ()
    text = replaced(written, text, _INTO_FILE, lambda match: _random(match, mark))
    if "expect" in text:
        text = replaced(places(text, "send "), text, _TYPED, lambda match: _random(match, mark))
    lower = lowered(text)
    if any(word in lower for word in _SECRET_WORDS):
        text = _mask_said(text, mark)
    if "identified" in lower:
        identified = places(lowered(text), "identified")
        text = replaced(identified, text, _IDENTIFIED, lambda match: _masked(match, mark), _BEHIND)
        bare = places(lowered(text), "identified")
        text = replaced(bare, text, _IDENTIFIED_BARE, lambda match: _random(match, mark), _BEHIND)
    passwords = places(text, "PASSWORD", "password")
    text = replaced(passwords, text, _SQL_PASSWORD, lambda match: _of_sql(match, mark), _BEHIND)
    # The second time for a secret behind the mark that the first one made of its identifier.
    for _ in range(2):
        keys = places(text, "aws", "<secret:")
        text = replaced(keys, text, _AFTER_AWS, lambda match: _mixed(match, mark), _BEHIND)
    for pattern in (_AFTER_TWILIO, _TWILIO_ID) if "twilio" in lower else ():
        named = places(lowered(text), "twilio")
        text = replaced(named, text, pattern, lambda match: _mixed(match, mark), _BEHIND)
    return text


def _piped(match: re.Match[str], mark: Mark) -> str:
    """Mask what a program reads as a password; what a container reads may be anything."""
    # `echo … | docker exec` may feed any program.
    anything = match["container"] and match["reads"] is None and not looks_scrambled(match["value"])
    return match[0] if anything else _masked(match, mark)


def _of_pgpass(match: re.Match[str], mark: Mark) -> str:
    """Mask the last field of a line: surely if the port is a usual one of PostgreSQL."""
    value = match["value"]
    usual = match["port"] in ("*", "5432", "5433", "6432")
    return _masked(match, mark) if usual or looks_random(value, least=8) else match[0]


def _of_sql(match: re.Match[str], mark: Mark) -> str:
    """Mask the text behind `PASSWORD`; behind `password`, which may be prose, only what looks generated."""
    sure = match["head"].startswith("PASSWORD")
    return _masked(match, mark) if sure or looks_random(match["value"]) else match[0]


def _mask_said(text: str, mark: Mark) -> str:
    """Mask the word before `is the password`."""
    parts, position = [], 0
    for said in _sayings(text):
        stop = said.start()
        while stop > position and text[stop - 1] in "\"'`)»“”」 ":
            stop -= 1
        least = max(position, stop - _LONGEST_SAID)
        start = max(least, *(text.rfind(sign, least, stop) + 1 for sign in " \n"))
        if said["unspaced"]:  # a script without blanks has no word's beginning: what is not of it is the value
            start += len(text[start:stop].rstrip(_WORD_SIGNS))
        word = _LAST_WORD.search(text, start, stop)
        password = said["password"] or said["unspaced"]
        if word and (looks_scrambled(word[0]) or (password and looks_spoken(word[0]))):
            parts += [text[position : word.start()], mark(word[0])]
            position = word.end()
    return "".join((*parts, text[position:])) if parts else text


def _sayings(text: str) -> list[re.Match[str]]:
    """Return the places that say what a word is, in order."""
    found = []
    for word in _SAYING if text.isascii() else (*_SAYING, *_SAYING_UNSPACED):
        found += [said for at in places(text, word) if (said := _SAID.match(text, at))]
    return sorted(found, key=lambda said: said.start())


def _scrambled(match: re.Match[str], mark: Mark) -> str:
    return match["head"] + mark(match["value"]) if looks_scrambled(match["value"]) else match[0]


def _random(match: re.Match[str], mark: Mark) -> str:
    return match["head"] + mark(match["value"]) if looks_random(match["value"], least=6) else match[0]


def _mixed(match: re.Match[str], mark: Mark) -> str:
    """Mask a token with digits and letters, and of 40 characters no hash, which has no capitals."""
    value = match["value"]
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    hashed = len(value) == HASH and (value.lower() == value or value.upper() == value)
    return match["head"] + mark(value) if digits and letters and not hashed else match[0]


def _command(command: str, mark: Mark) -> str:
    command = _USER.sub(lambda match: _masked(match, mark), command)
    if command.startswith(_SHORT_TOOLS) and " -" in command:
        command = _SHORT.sub(lambda match: _short(match, mark, command), command)
    return _OPENSSL.sub(lambda match: _masked(match, mark), command) if command.startswith("openssl") else command


def _short(match: re.Match[str], mark: Mark, command: str) -> str:
    """Mask the value of a short option. To some programs `-p` is a port, a path or a project: those values are kept."""
    value = match["value"]
    flag = match["head"].strip().strip("\"'")
    glued = not match["head"].rstrip("\"'").endswith(" ")
    # `mysql -pWORD` has a password; apart from `-p`, the word is the name of a database.
    takes = {"mysql": glued and flag == "-p", "maria": glued and flag == "-p", "redis": flag == "-a"}
    for tool, fits in takes.items():
        if command.startswith(tool):
            return _masked(match, mark) if fits else match[0]
    if command.startswith(("docker", "podman")) and " login" not in command:
        return match[0]
    if flag in ("-a", "-P") and not command.startswith(("az", "sqlcmd", "zip", "unzip", "mosquitto")):
        return match[0]
    return match[0] if value.replace(":", "").replace(".", "").isdigit() or "/" in value else _masked(match, mark)


def _masked(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    return match[0] if is_placeholder(value) else match["head"] + mark(value)
