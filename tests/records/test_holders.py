"""Secrets that what is around them tells, and what only looks like one there."""

from __future__ import annotations

import pytest

from codeagent_lsp.records.sanitizer import Sanitizer

PASSWORDS = ("Tr0ub4" + "dor&3x!", "hunter" + "22Blue!", "x7#Kp9" + "$mQ2!w")
TOKEN = "q8Zt" + "V3nK7" + "xLm2RbY"
FORMS = (
    "login: bob / {}",
    "Login: bob/{}",
    "credentials: admin / {}",
    "user/pass: bob / {}",
    "Zugang: bob / {}",
    "账号: bob / {}",
    "login: bob, {}",
    "Login is bob / {} for staging",
    "logins:\n- bob / {}\n",
    "PASSWORD=$(printf '{}')",
    "export DB_PASSWORD=`printf %s '{}'`",
    "PASSWORD=\"$(echo -n '{}')\"",
    "deploy --user bob -p'{}'",
    "sshpass -p'{}' ssh x",
    '[tokens]\nmax = 3\nalice = "{}"\n',
    '[secrets]\n# of the staging area\nmain = "{}"\n',
    "[passwords]\n\nroot = '{}'\n",
    '[auth.passwords]\nbob = "{}"\n',
    "stringData: {{a: '{}'}}",
    'stringData: {{a: x, b: "{}"}}',
    "stringData:\n  a: {}\n",
    "secrets:\n  # main\n  main: {}\n",
    "tokens:\n  ci: {}\n",
    '"secrets": {{"main": "{}"}}',
    '"passwords": {{"bob": "{}"}}',
    "pw {}",
)
TOKENS = (
    "curl -u bob:$(printf {})",
    "TOKEN=$(echo {})",
    "api_key = $(printf '%s' {})",
    "tool -p{}",
    "mytool -u bob -p{}",
    "mysql -u root -p{} db",
    "psql-wrap -p {}",
    "stringData: {{a: {}}}",
)


@pytest.mark.parametrize("form", FORMS)
def test_a_password(form: str) -> None:
    for secret in (*PASSWORDS, TOKEN):
        masked = Sanitizer(identities=False, homes=()).text(form.format(secret))
        assert secret not in masked and secret[:-1] not in masked, masked


@pytest.mark.parametrize("form", TOKENS)
def test_a_token(form: str) -> None:
    masked = Sanitizer(identities=False, homes=()).text(form.format(TOKEN))
    assert TOKEN[:-1] not in masked, masked


def test_no_more_than_the_secret_goes() -> None:
    text = f'[tokens]\nalice = "{TOKEN}"  # of Alice\n\n[limits]\nname = "abc{TOKEN[3:9]}"\n'
    masked = Sanitizer(identities=False, homes=()).text(text)
    before, _, after = text.partition(TOKEN)
    assert masked.startswith(before) and masked.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "existingSecret: hunter22",
        "existingSecretPasswordKey: postgres-password",
        "login: bob / see wiki",
        "Login: user / password",
        "login: bob / alice",
        "credentials: admin / admin panel",
        '[tokens]\nmax = 100\nkind = "bpe"\nunk = "<unk>"\n',
        '[tokens.gpt4]\nlimit = 4096\nname = "gpt-4-0613"\n',
        '[secrets]\nbackend = "vault"\npath = "kv/data/app2"\n',
        '[passwords]\nmin_length = 12\nhash = "argon2"\n',
        "tokens: {max: 4096, model: gpt-4o-mini2024}",
        '"secrets": {"provider": "aws-sm-v2"}',
        '"credentials": {"type": "array?", "items": "SetVirtualCredential"}',
        "secrets:\n  db_password:\n    file: ./db2.txt\n",
        "secrets:\n  token:\n    external: true\n",
        "secrets: inherit",
        "data:\n  a: hello\n",
        "docker run -p8080:80 x",
        "nmap -p1-65535 h",
        "perl -pi.bak -e 1",
        "gcc -pthread -pipe -pedantic-errors a.c",
        "pytest -pno:randomly2",
        "f(x) =\n    -pi*sigma**2/2 + 2*sigma**2",
        "TOKEN=$(cat token.txt)",
        "PASSWORD=$(printf '%s' \"$1\")",
        'token=$(echo "$line" | cut -d= -f2)',
        "PASSWORD=$(pwgen 12 1)",
        "r.idToken=await this.importArray(r)",
        "tokens = {\n  'root': [x],  # https://bind9.example/v9.18.14/chapter3.html#soa-rr\n}",
    ],
)
def test_what_is_no_secret(text: str) -> None:
    assert Sanitizer(identities=False, homes=()).text(text) == text
