"""Secrets known by the program they are for: `curl -u user:password`, `mysql -ppassword`, `.netrc`, `.pgpass`, SQL.

Not here: `--password value`, which is an assignment (`assignments.py`); real parsing of commands.
"""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import MARK, Mark, lower_in_place, places, replace_matches
from codeagent_lsp.records.values import is_placeholder, looks_chosen, looks_random, looks_scrambled, looks_spoken

HASH = 40  # characters of a SHA-1 in hexadecimal
_BEHIND = 4  # blanks between the parts of a form may be as many line ends

_M = MARK.pattern
_V = rf"(?:{_M}|[^\s\"'`;|&<>])"
# In quotes it may have any sign.
_GIVEN = rf"(?P<value>(?<=[\"'])(?:{_M}|[^\s\"'\\$]){{4,65536}}+(?=[\"'])|{_V}{{4,65536}}+)"
_SENSITIVE_FILE = r"(?i:token|secret|passw|passphrase|cred(?:ential)?s|api.?key|private.{0,8}key|netrc|pgpass)"
_TOOLS = re.compile(
    r"(?:curl|wget|http|https|xh|mysql|mysqldump|mysqladmin|mariadb|mongosh?|redis-cli|sshpass|mosquitto_pub|mosquitto_sub|docker|podman|helm|"
    r"ldap\w{3,10}|smbclient|nexus|az|sqlcmd|rclone|skopeo|7z|zip|unzip|openssl|gpg|machine|etcdctl)\b[^\r\n]{1,65536}"
)
_USER = re.compile(
    r"(?P<head>(?:^|[\s\"'])(?:-u|--user|--proxy-user|-U|-a|--auth|--creds|--src-creds|--dest-creds)"
    r"(?:[\"'],)?[ =]?[\"']?"
    r"[^\s:\"'<>]{0,100}:)"
    rf"(?P<value>{_V}{{1,65536}}+)"
)
_SHORT = re.compile(rf"(?P<head>(?:^|[\s\"'])-(?:p|a|w|P)(?:[\"'],)?[ ]?[\"']?)(?P<value>(?!-){_V}{{4,65536}}+)")
_NETRC = re.compile(rf"(?P<head>login\s{{1,10}}\S{{1,200}}\s{{1,10}}password\s{{1,10}})(?P<value>{_V}{{1,65536}}+)")
_COOKIES = re.compile(rf"(?P<head>\s(?:-b|--cookie)[ =]?[\"']?[\w.-]{{1,64}}=)(?P<value>{_V}{{6,65536}}+)")
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
_PRINTS = (
    r"\b(?:echo|printf?)[ \t]{1,4}(?:-{1,2}\w{0,3}[ \t]{1,4}){0,2}"
    r"(?:(?:%s(?:\\n)?|[\"'][^\"'\n]{0,80}%s[^\"'\n]{0,20}[\"'])[ \t]{1,4}"
    r"(?:[\"']?[\w.@-]{1,64}[\"']?[ \t]{1,4})?)?[\"']?"
)
_PIPED = re.compile(
    rf"(?P<head>{_PRINTS}(?:[\w.-]{{1,64}}:)?){_GIVEN}"
    r"(?=[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]|(?:ch|smb|htp?)?passwd\b"
    r"|[^\r\n|]{0,200}?--(?:password-stdin|with-token|passphrase-fd)\b"
    r"|(?P<encodes>base64\b)|[\w-]{1,20}[ \t](?:create[ \t])?secrets?[ \t]"
    r"|vault[ \t](?:kv[ \t])?(?:put|write|login)\b|ConvertTo-SecureString"
    r"|(?P<container>docker[ \t]|podman[ \t])(?P<reads>[^\r\n|]{0,200}?(?:\blogin\b|secret|passw|token|cred))?))"
)
# What is written into a file whose name says what it holds, and what a script types when it is asked.
_INTO_FILE = re.compile(
    rf"(?P<head>{_PRINTS}){_GIVEN}"
    r"(?=[\"']?[ \t]{0,4}(?:\|[ \t]{0,4}(?:base64|gpg|age|openssl|tr)\b[^\n;|&>]{0,80})?"
    rf"(?:>{{1,2}}|\|[ \t]{{0,4}}(?:sudo[ \t])?tee\b)[^\n;|&]{{0,120}}{_SENSITIVE_FILE})"
)
_DOCUMENT = re.compile(  # the same as a document of several lines
    rf"(?P<head>\b(?:cat|tee)\b(?=[^\n]{{0,200}}?(?:>|\btee\b)[^\n]{{0,120}}{_SENSITIVE_FILE})[^\n]{{0,200}}?"
    r"<<-?[ \t]{0,4}\\?[\"']?(?P<word>\w{1,20})\b[^\n]{0,200}\n[ \t]{0,40})"
    rf"(?P<value>{_V}{{6,65536}}+)(?=[ \t]{{0,40}}\r?\n[ \t]{{0,40}}(?P=word)\b)"
)
_TYPED = re.compile(
    r"(?P<head>\b(?:exp_)?send[ \t](?:-\w[ \t])?(?:--[ \t])?[\"{](?:--[ \t])?)"
    rf"(?P<value>(?:(?!\\[rn][\"}}]|}}){_V}){{6,65536}}+)"
)
_SECURED = re.compile(
    r"(?P<head>[\"'])(?P<value>[^\s\"'$]{6,65536}+)(?=[\"'][ \t]{0,4}\|[ \t]{0,4}ConvertTo-SecureString)"
)
_FED_TO = re.compile(
    r"(?P<head>(?:--password-stdin|--with-token|\b(?:chpasswd|passwd|kinit|cryptsetup|smbpasswd)\b"
    rf"|\btee[ \t][^\n|;<]{{0,80}}{_SENSITIVE_FILE}"
    r"|\bsudo[ \t]+-S|htpasswd[ \t]+-\w*i|\bpass[ \t]+insert\b|\bsecret-tool[ \t]+store\b|\bkeyring[ \t]+set\b)"
    r"[^\n|;<]{0,120}<<(?:<[ \t]{0,4}[\"']?"
    r"|-?[ \t]{0,4}[\"']?\w{1,20}[\"']?[^\n]{0,40}\n[ \t]{0,40})(?:[\w.-]{1,64}:)?)"
    rf"(?P<value>{_M}|{_V}{{4,65536}}+)"
)
_FEEDING = ("passw", "tee ", "with-token", "kinit", "cryptsetup", "sudo", "pass insert", "secret-tool", "keyring")
_SAID = re.compile(
    r"(?:[ \t](?:is|as|ist|als|est|es|é|è|como|comme|come|som|jako|как)"
    r"|(?P<that>(?:[Tt]hat|[Tt]his|which|[Ii]t)(?:['’]s| is)|[Dd]as ist|[Cc]['’]est|[Ee]sa es|это))[ \t]"
    r"(?:(?:the|my|our|your|a|das|mein|dein|le|mon|la|mi)[ \t])?(?:\w{1,20}[ \t]){0,2}"
    r"(?:(?P<password>(?i:pass(?!ed|es|ing)|kennwort|mot de passe|contrase|senha|wachtwoord|lösenord|парол))"
    r"|(?i:secret|token|api.?key))"
    r"|[ \t]\((?:the[ \t])?(?:(?P<bracketed>(?i:pass|pw))|(?i:secret|token|api.?key))\w{0,8}\)"
    r"|(?:[がは]|是|作为|作為|[为為])(?P<unspaced>パスワード|暗証番号|密[码碼]|口令)"
)
_WORD_SIGNS = "".join(char for char in map(chr, range(33, 127)) if char not in "\"'()<>`")
_LAST_WORD = re.compile(r"[^\s\"'`(<>「«“”]{6,}\Z")
_LONGEST_SAID = 4_096  # characters of a word
_SAYING = (
    *(" is ", " as ", " ist ", " als ", " est ", " es ", " como ", " comme ", " come ", " som ", " jako "),
    *("that's ", "That's ", "that is ", "this is ", "This is ", "which is ", "it's ", "das ist ", "c'est ", "esa es "),
    *(" (pass", " (Pass", " (pw", " (the pass", " (token", " (secret", " (api", " (API"),
)
_SAYING_FOREIGN = (" é ", " è ", " как ", "это ", "that’s ", "it’s ", "c’est ", "がパスワード", "はパスワード")
_CHINESE = ("密码", "密碼", "口令")
_SAYING_UNSPACED = tuple(f"{verb}{word}" for verb in ("是", "作为", "作為", "为", "為") for word in _CHINESE)
_SECRET_WORDS = (
    "pass",
    "secret",
    "token",
    "key",
    "kennwort",
    "contrase",
    "senha",
    "wachtwoord",
    "парол",
    "パスワード",
    "暗証",
    *_CHINESE,
)
_PORT = re.compile(r":(?:\*|[1-9][0-9]{3,4}):")
# A user and the password behind a sign of the program's own: `sqlplus bob/…@db`, `smbclient -U bob%…`, and programs
# that take it as a word.
_AFTER_USER = re.compile(
    r"(?P<head>(?:\b(?:smbclient|rpcclient)[ \t][^\r\n]{0,200}?(?:-U|--user)[ =]?[\"']?[\w.\\-]{1,64}%"
    r"|\blftp[ \t][^\r\n]{0,200}?-u[ ]?[\"']?[\w.@-]{1,64},|\bxfreerdp[ \t][^\r\n]{0,200}?/p:"
    r"|\bnet[ \t]user[ \t][\w.\\-]{1,64}[ \t]|\bssh-keygen[ \t](?:[^\r\n]{0,120}?[ \t])?-[NP][ \t]"
    r"|\bSecureString\b[^\r\n]{0,200}?--value[ =]|\bConvertTo-SecureString[ \t](?:-String[ \t])?"
    r"|\bsnmp-server[ \t]community[ \t]|\bvault[ \t]login[ \t]"
    r"|\buser(?:add|mod)[ \t][^\r\n]{0,80}?-p[ \t]|\bopenssl[ \t][^\r\n]{0,120}?[ \t]-[kK][ \t]"
    r"|\bhtpasswd[ \t]+-\w*b\w*[ \t]+[^\s;|&]{1,200}[ \t]+[\w.@-]{1,64}[ \t]+"
    r"|\bnet[ \t]use[ \t](?:\w:[ \t])?\\\\\S{1,200}[ \t](?!/)"
    r"|\bput-parameter\b[^\r\n]{0,200}?--value[ =]|\bcargo[ \t]login[ \t](?:--registry[ =][\w-]{1,40}[ \t])?"
    r"|\bgem[ \t]push[ \t]--key[ \t]"
    r"|\bconfig[ \t]set[ \t]--secret[ \t][\w:.-]{1,80}[ \t]"
    r"|\bsnmp\w{2,12}[ \t](?:[^\r\n]{0,120}?[ \t])?-[cAX][ \t]|\bsp_addlogin[ \t][^\s',]{0,20}'[^'\r\n]{1,64}',[ \t]?N?"
    r"|\bsecurity[ \t]add-\w+-password[ \t][^\r\n]{0,200}?-w[ \t]|\bschtasks[ \t][^\r\n]{0,200}?/rp[ \t]"
    r"|\br[ow]community6?[ \t]|\b(?:tacacs|radius)-server[ \t]key[ \t](?:\d[ \t])?|\bisakmp[ \t]key[ \t](?:\d[ \t])?"
    r"|\bmc[ \t]alias[ \t]set[ \t]\S{1,64}[ \t]\S{1,200}[ \t]\S{1,128}[ \t]|\bansible-vault[ \t]encrypt_string[ \t]"
    r"|\bsecret[ \t][^\r\n]{0,200}?--from-literal=[\w.-]{1,64}="
    r"|--password-command[ =][\"']?(?:echo|printf)[ \t]|\bqpdf[ \t]--encrypt[ \t]|\bsqlcmd[ \t][^\r\n]{0,200}?/P[ \t]"
    r"|\bpoetry[ \t]config[ \t]http-basic\.\S{1,64}[ \t]\S{1,64}[ \t]|\biwconfig[ \t]\S{1,20}[ \t]key[ \t](?:s:)?"
    r"|\buser-secrets[ \t]set[ \t][\"']?[\w:.-]{1,100}[\"']?[ \t]|\bcloudflared[ \t]service[ \t]install[ \t]"
    r"|\b(?:dig|nsupdate)[ \t][^\r\n]{0,200}?-y[ \t](?:hmac-[\w-]{1,20}:)?[\w.-]{1,64}:|\brclone[ \t]obscure[ \t]"
    r"|\bsecret[ \t]set[ \t][^\r\n]{0,200}?(?:--value|--body|-b)[ =]?"
    r"|\brabbitmqctl[ \t](?:[^\r\n]{0,80}?[ \t])?(?:add|authenticate)_user[ \t][\"']?[\w.@-]{1,64}[\"']?[ \t]"
    r"|\bsigntool[ \t][^\r\n]{0,200}?[ \t]/p[ \t]|\bsamba-tool[ \t]user[ \t]\w{1,20}[ \t][\w.@-]{1,64}[ \t]"
    r"|\b(?:bundle|composer)[ \t]config[ \t](?:-\S{1,20}[ \t]|set[ \t]){0,3}\S{1,120}[ \t](?:[\w.-]{1,64}:)?"
    r"|\b(?:omniauth|provider)[ \t]:\w{1,40},[ \t]{1,4}"
    r"(?:\"[^\"\n]{1,160}\"|'[^'\n]{1,160}'|ENV\[[^\]\n]{1,60}\]),[ \t]{1,4}"
    r"|\bvault[ \t]operator[ \t]unseal[ \t]|\bEAP[ \t]|::add-mask::|\bcodecov\.io/bash[^\r\n]{0,80}?[ \t]-t[ \t]"
    r"|crypt(?:ed)?[ \t]with[ \t](?:the[ \t])?key[ \t]?[\[(]?|\"kty\"[ ]?:[ ]?\"oct\"[^}\n]{0,200}?\"k\"[ ]?:[ ]?"
    r"|password_maps[ \t]{0,4}=[ \t]{0,4}(?:static|inline):\{?[ \t]{0,4}(?:[\w.@-]{1,64}[:=][ \t]{0,4})?"
    r"|\buser[ \t]\S{1,64}[ \t](?:on|off)[ \t](?:[^\s>]\S{0,64}[ \t]){0,4}>|\blogin\([^)\n]{0,120}?\bkey[ \t]?=[ \t]?"
    r"|\"method\"[ ]?:[ ]?\"[\w.]{0,40}(?:login|[Aa]uth(?:enticate|orize)?|unlock\w{0,12})\"[^\n]{0,80}?"
    r"\"params\"[ ]?:[ ]?\[[ ]?(?:\"[^\"\n]{1,100}\"[ ]?,[ ]?){1,2}(?=\")"
    rf"|/user:[\w.\\-]{{1,64}}[ \t]|/pass:)[\"']?){_GIVEN}"
)
# What a program prints that was asked for a secret, on the line after the command.
_PRINTED_BY = re.compile(
    r"(?P<head>\b(?:get-secret-value|get-parameters?|secret[ \t]show|versions[ \t]access|kv[ \t]get|vault[ \t]read"
    r"|pass[ \t]show"
    r"|op[ \t](?:read|item[ \t]get)|bw[ \t]get|secret-tool[ \t]lookup|keyring[ \t]get"
    r"|find-(?:generic|internet)-password"
    r"|auth[ \t]token|print-access-token|get-access-token|get-login-password|config:get|secrets?[ \t]get"
    r"|terraform[ \t]output|sops[ \t]-d|base64[ \t](?:-[dD]|--decode))\b[^\r\n]{0,400}\r?\n[ \t]{0,20}[\"']?)"
    r"(?P<value>[^\s\"'<>]{12,65536}+)(?=[\"']?[ \t]*(?:\r?\n|\Z))"
)
_RESULT = re.compile(  # in the state of Terraform
    r"(?P<head>\"random_password\"[^}]{0,800}?\"result\"[ ]?:[ ]?\")(?P<value>[^\"\s]{6,4096}+)(?=\")"
)
_RESULT_LINES = 20
_DECODED_KEY = re.compile(  # bytes of a key, though the variable is only called `key`
    r"(?P<head>\b[kK]ey[ \t]?(?::[ \t]?\w{1,20}[ \t]?)?:?=[ \t]?[\w.]{0,30}"
    r"(?:from|from[hH]ex|unhexlify)\([ \t]?b?[\"'])"
    r"(?P<value>[^\s\"']{16,65536}+)(?=[\"'])"
)
_PRINTING = (
    *("get-secret-value", "get-parameter", "secret show", "versions access", "kv get", "vault read", "pass show"),
    *("op read", "op item", "bw get", "secret-tool", "keyring get", "find-generic-", "find-internet-", "auth token"),
    *("-access-token", "get-login-password", "config:get", "secret get", "secrets get", "terraform output"),
    *("sops -d", "base64 -d", "base64 -D", "base64 --decode"),
)
# Here an `@` is before the host, the last one of several.
_AFTER_USER_OF_HOST = re.compile(
    r"(?P<head>(?:\b(?:sqlplus|sqlldr|expdp|impdp)[ \t](?:-\w+[ \t])*[\w.-]{1,64}/|:thin:[\w.-]{1,64}/)[\"']?)"
    rf"(?P<value>(?:(?!@){_V}|@(?={_V}{{0,200}}@)){{6,65536}}+)"
)
_USERS_OF_HOSTS = ("sqlplus", "sqlldr", "expdp", "impdp", ":thin:")
_USERS = (
    *(
        "smbclient",
        "rpcclient",
        "vault login",
        "useradd",
        "usermod",
        "snmp",
        "sp_addlogin",
        "security add-",
        "schtasks",
    ),
    *(
        "--password-command",
        "community",
        "-server key ",
        "isakmp key ",
        "mc alias set ",
        "encrypt_string",
        "--from-literal",
        "qpdf --enc",
        "sqlcmd",
        "http-basic.",
        "iwconfig ",
        *("dig ", "nsupdate ", "rclone obscure ", "secret set ", "rabbitmqctl ", "password_maps", "login("),
        *(" on >", " off >", " ~*", " +@", 'login"', 'uth"', 'uthenticate"', 'uthorize"', "unlock"),
        *("signtool", "samba-tool", "bundle config", "composer config", "operator unseal", "EAP "),
        *("omniauth :", "provider :"),
        *("::add-mask::", "codecov.io/bash", "crypt with ", "crypted with ", '"kty"'),
        "user-secrets set",
        "cloudflared",
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
    r"(?P<head>(?:^(?:[\w.]{1,8}[ |:+>]{1,2}|[<>*|+-]{1,4}[ ])?|[\"'])(?:PASS|LOGIN[ ]\S{1,100}|AUTH)[ ]\"?)"
    rf"(?P<value>{_V}{{6,65536}}+)",
    re.MULTILINE,
)
_OPTIONS = ("-u", "-U", "--", "-b", "-p", "-P", "-a", "-w", "pass:")  # a command has one of them on its line
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
    """Return `text` with passwords masked by `mark` that are given to well-known programs, such as `curl -u`, are the
    user's in SQL, or are said to be one in a sentence.
    """
    # A form is looked for only where a word of it stands: most texts have none, and words are found ten times faster.
    if any(sign in text for sign in (" -", "\t-", "pass:", '"-', "'-")):
        options = places(text, *_OPTIONS)
        text = replace_matches(options, text, _TOOLS, lambda match: _command(match[0], mark))
    if "login" in text and "password" in text:
        text = _NETRC.sub(lambda match: _mask_match(match, mark), text)
    ports = (match.start() for match in _PORT.finditer(text))
    text = replace_matches(ports, text, _PGPASS, lambda match: _of_pgpass(match, mark))
    told = places(text, "PASS ", "LOGIN ", "AUTH ")
    text = replace_matches(told, text, _SPOKEN_TO_SERVER, lambda match: _mask_scrambled(match, mark))
    if "<<" in text and any(word in text for word in _FEEDING):
        fed = places(text, "<<")
        text = replace_matches(fed, text, _FED_TO, lambda match: _mask_match(match, mark), _BEHIND)
    users = places(text, *_USERS)
    text = replace_matches(users, text, _AFTER_USER, lambda match: _random(match, mark))
    decoded = places(text, "Buffer.from(", "fromhex(", "fromHex(", "unhexlify(")
    text = replace_matches(decoded, text, _DECODED_KEY, lambda match: _random(match, mark))
    results = places(text, '"random_password"')
    text = replace_matches(results, text, _RESULT, lambda match: _mask_match(match, mark), _RESULT_LINES)
    printing = places(text, *_PRINTING)
    text = replace_matches(printing, text, _PRINTED_BY, lambda match: _mask_scrambled(match, mark), 1)
    users = places(text, *_USERS_OF_HOSTS)
    text = replace_matches(users, text, _AFTER_USER_OF_HOST, lambda match: _random(match, mark))
    if "|" in text:
        piped = places(text, "echo ", "printf ", "print ")
        text = replace_matches(piped, text, _PIPED, lambda match: _mask_piped(match, mark), _BEHIND)
    written = places(text, "echo ", "printf ", "print ") if ">" in text or "tee " in text else ()
    text = replace_matches(written, text, _INTO_FILE, lambda match: _random(match, mark))
    documents = places(text, "<<") if "cat " in text or "tee " in text else ()
    text = replace_matches(documents, text, _DOCUMENT, lambda match: _mask_scrambled(match, mark), 2)
    secured = places(text, "ConvertTo-SecureString")
    text = replace_matches(secured, text, _SECURED, lambda match: _random(match, mark))
    if "expect" in text or "spawn " in text:
        text = replace_matches(places(text, "send "), text, _TYPED, lambda match: _random(match, mark))
    lower = lower_in_place(text)
    if any(word in lower for word in _SECRET_WORDS):
        text = _mask_said(text, mark)
    if "identified" in lower:
        identified = places(lower_in_place(text), "identified")
        text = replace_matches(identified, text, _IDENTIFIED, lambda match: _mask_match(match, mark), _BEHIND)
        bare = places(lower_in_place(text), "identified")
        text = replace_matches(bare, text, _IDENTIFIED_BARE, lambda match: _random(match, mark), _BEHIND)
    passwords = places(text, "PASSWORD", "password")
    text = replace_matches(passwords, text, _SQL_PASSWORD, lambda match: _of_sql(match, mark), _BEHIND)
    # The second time for a secret behind the mark that the first one made of its identifier.
    for _ in range(2):
        keys = places(text, "aws", "<secret:")
        text = replace_matches(keys, text, _AFTER_AWS, lambda match: _mask_mixed(match, mark), _BEHIND)
    for pattern in (_AFTER_TWILIO, _TWILIO_ID) if "twilio" in lower else ():
        named = places(lower_in_place(text), "twilio")
        text = replace_matches(named, text, pattern, lambda match: _mask_mixed(match, mark), _BEHIND)
    return text


def _mask_piped(match: re.Match[str], mark: Mark) -> str:
    """Mask what a program reads as a password; what a container reads may be anything."""
    if match["encodes"] and not (looks_scrambled(match["value"]) or looks_chosen(match["value"])):
        return match[0]
    # `echo … | docker exec` may feed any program.
    anything = match["container"] and match["reads"] is None and not looks_scrambled(match["value"])
    return match[0] if anything else _mask_match(match, mark)


def _of_pgpass(match: re.Match[str], mark: Mark) -> str:
    """Mask the last field of a line: surely if the port is a usual one of PostgreSQL."""
    value = match["value"]
    usual = match["port"] in ("*", "5432", "5433", "6432")
    return _mask_match(match, mark) if usual or looks_random(value, least=8) else match[0]


def _of_sql(match: re.Match[str], mark: Mark) -> str:
    """Mask the text behind `PASSWORD`; behind `password`, which may be prose, only what looks generated."""
    sure = match["head"].startswith("PASSWORD")
    return _mask_match(match, mark) if sure or looks_random(match["value"]) else match[0]


def _mask_said(text: str, mark: Mark) -> str:
    """Mask the word before `is the password`."""
    parts, position = [], 0
    for said in _sayings(text):
        stop = said.start()
        # In `…, that's the password` it is the word before the sentence.
        while stop > position and text[stop - 1] in ("\"'`)»“”」 ,;.:–—" if said["that"] else "\"'`)»“”」 "):
            stop -= 1
        least = max(position, stop - _LONGEST_SAID)
        start = max(least, *(text.rfind(sign, least, stop) + 1 for sign in " \n"))
        if said["unspaced"]:  # a script without blanks has no word's beginning: what is not of it is the value
            start += len(text[start:stop].rstrip(_WORD_SIGNS))
        word = _LAST_WORD.search(text, start, stop)
        password = said["password"] or said["bracketed"] or said["unspaced"]
        told = word and (looks_scrambled(word[0]) or looks_chosen(word[0]) or (password and looks_spoken(word[0])))
        if word and told:
            parts += [text[position : word.start()], mark(word[0])]
            position = word.end()
    return "".join((*parts, text[position:])) if parts else text


def _sayings(text: str) -> list[re.Match[str]]:
    """Return the places that say what a word is, in order."""
    found = []
    for word in _SAYING if text.isascii() else (*_SAYING, *_SAYING_FOREIGN, *_SAYING_UNSPACED):
        found += [said for at in places(text, word) if (said := _SAID.match(text, at))]
    return sorted(found, key=lambda said: (said.start(), said.end()))


def _mask_scrambled(match: re.Match[str], mark: Mark) -> str:
    return match["head"] + mark(match["value"]) if looks_scrambled(match["value"]) else match[0]


def _random(match: re.Match[str], mark: Mark) -> str:
    secret = looks_random(match["value"], least=6) and "://" not in match["value"]
    return match["head"] + mark(match["value"]) if secret else match[0]


def _mask_mixed(match: re.Match[str], mark: Mark) -> str:
    """Mask a token with digits and letters, and of 40 characters no hash, which has no capitals."""
    value = match["value"]
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    hashed = len(value) == HASH and (value.lower() == value or value.upper() == value)
    return match["head"] + mark(value) if digits and letters and not hashed else match[0]


def _command(command: str, mark: Mark) -> str:
    command = _USER.sub(lambda match: _mask_match(match, mark), command)
    if command.startswith(_SHORT_TOOLS) and any(sign in command for sign in (" -", '"-', "'-")):
        command = _SHORT.sub(lambda match: _short(match, mark, command), command)
    if command.startswith("curl"):
        command = _COOKIES.sub(lambda match: _random(match, mark), command)
    return _OPENSSL.sub(lambda match: _mask_match(match, mark), command) if command.startswith("openssl") else command


def _short(match: re.Match[str], mark: Mark, command: str) -> str:
    """Mask the value of a short option. To some programs `-p` is a port, a path or a project: those values are kept."""
    value = match["value"]
    flag = match["head"].strip().strip("\"'")
    glued = not match["head"].rstrip("\"'").endswith(" ")
    # `mysql -pWORD` has a password; apart from `-p`, the word is the name of a database.
    takes = {"mysql": glued and flag == "-p", "maria": glued and flag == "-p", "redis": flag == "-a"}
    for tool, fits in takes.items():
        if command.startswith(tool):
            return _mask_match(match, mark) if fits else match[0]
    if command.startswith(("docker", "podman")) and " login" not in command:
        return match[0]
    if flag in ("-a", "-P") and not command.startswith(("az", "sqlcmd", "zip", "unzip", "mosquitto")):
        return match[0]
    path = "/" in value and not looks_scrambled(value) and not command.startswith("sshpass")
    return match[0] if value.replace(":", "").replace(".", "").isdigit() or path else _mask_match(match, mark)


def _mask_match(match: re.Match[str], mark: Mark) -> str:
    value = match["value"]
    return match[0] if is_placeholder(value) else match["head"] + mark(value)
