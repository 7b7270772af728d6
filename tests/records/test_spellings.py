"""A secret of any length is masked whole, with one mark, in every spelling; words of forms in any language are kept."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.masking import Masking
from tests.records.formats import ALNUM, HEX, chars
from tests.records.spellings import SPELLINGS, spellings, written

LENGTHS = (16, 257, 4000)
LEFT = 6  # characters of a secret that may not be read anywhere

_CHARACTERS_LEFT = re.compile(r"(?:'.', ){3}|(?:[0-9]+, ){4}")

LABELS = """
{"password": "Passwort", "token": "Jeton", "secret": "Geheimnis"}
{"forgot_password": "Passwort vergessen?", "newPassword": "Neues Passwort"}
{"password": "Mot de passe", "confirmPassword": "Confirmer le mot de passe"}
{"password": "contraseña", "password_again": "Repite la contraseña"}
{"password": "密码", "apiKey": "API 密钥", "token": "令牌"}
{"password": "パスワード", "enterPassword": "パスワードを入力してください"}
{"password": "비밀번호", "secret": "비밀"}
{"password": "Пароль", "wrongPassword": "Неверный пароль"}
{"password": "heslo", "apiKey": "API Key"}
"passwordLabel": "Passwort",
password: Passwort
password: "Kennwort"
  password: "Mot de passe"
  token: "Zugangstoken"
password=Passwort
password = Wachtwoord
"password" = "Passwort";
msgid "Password"⏎msgstr "Passwort"
msgid "Enter password:"⏎msgstr "Passwort eingeben:"
<string name="password">Passwort</string>
<string name="password_hint">Ihr Passwort</string>
<trans-unit id="password"><source>Password</source><target>Passwort</target></trans-unit>
<label for="password">Passwort</label>
'password' => 'Kennwort',
'password' => 'Das Passwort muss mindestens acht Zeichen haben.',
"password": "Your password",
"password": "Password must have 8 characters"
commit 9fceb02d0ae598e95dc970b74767f19372d61af8 # password form
if "sha256:0a1b2c3d" == token:
case 'x': return KEYWORD_ARG1; // token
const tokens = { keyword: "KW_1", ident: "ID_2" }
cache:⏎  key: v1-deps-2024
api:⏎  key: name
#[serde(default = "default_token_v2")]⏎token: String,
openssl req -x509 -newkey rsa:4096 -keyout key.pem
vault login -method=userpass
smbclient -U bob%$PASS //s/x
la clave es el tiempo
キーボード: 日本語配列
"\\u5bc6\\u7801": "\\u8bf7\\u8f93\\u5165\\u5bc6\\u7801"
"PASSWORD" = "new"
{"clé": "Clé d'accès", "cleSecrete": "Clé secrète"}
Clé API : à demander à l'équipe
La clé est unique dans la table.
Der Schlüssel ist eindeutig.
{"凭证": "凭证管理", "授权码": "请输入授权码", "激活码": "激活码不能为空", "通行证": "请先登录"}
私钥不能为空
비번을 입력하세요
请不要用姓名作为密码
[secrets]⏎path = config/secrets.toml
[tokens]⏎max = 4096⏎kind = bearer⏎theme = "dark-blue"
[credentials]⏎helper = cache⏎user = somebody
net user administrator /active:yes
ssh-keygen -t ed25519 -N "" -f key
http -a bob: https://example.com
snmp-server community public RO
""".strip()


@pytest.mark.slow
@pytest.mark.parametrize("alphabet", [ALNUM, HEX], ids=["letters", "hex"])
@pytest.mark.parametrize("kind", SPELLINGS)
def test_nothing_is_left_of_a_secret_of_any_length(kind: str, alphabet: str) -> None:
    left = []
    for frame in (frame for other, frame in spellings() if other == kind):
        for length in LENGTHS:
            secret = chars(random.Random(f"{frame} {length}"), alphabet, length)
            text = f"x = 1\n{written(frame, secret)}\ny = 2\n"
            masking = Masking()
            hidden = masking.hide(text)
            marks = MARK.findall(hidden)
            if len(marks) != 1 or _is_left(secret, hidden) or masking.reveal(hidden) != text:
                left.append((frame, length, hidden[:200]))
    assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("change", [("\n", "\r\n"), ("    ", "\t")], ids=["CRLF", "tabs"])
def test_line_ends_and_an_indentation_by_tabs_hide_nothing(change: tuple[str, str]) -> None:
    left = []
    for _, frame in spellings():
        secret = chars(random.Random(frame), ALNUM, 40)
        text = f"x = 1\n{written(frame, secret)}\ny = 2\n".replace(*change)
        masking = Masking()
        hidden = masking.hide(text)
        if _is_left(secret, hidden) or masking.reveal(hidden) != text:
            left.append((frame, hidden[:200]))
    assert left == []


def test_there_are_as_many_spellings_as_promised() -> None:
    assert len(list(spellings())) >= 400 and len(SPELLINGS) >= 12


@pytest.mark.parametrize("around", [lambda text: text, lambda text: f"x\n{text}\ny", lambda text: f"12|{text}"])
def test_the_words_of_a_form_are_no_secrets(around: Callable[[str], str]) -> None:
    masking = Masking()
    texts = [text.replace("⏎", "\n") for text in LABELS.split("\n")]
    changed = [text for text in texts if masking.hide(around(text)) != around(text)]
    assert changed == []


def _is_left(secret: str, hidden: str) -> bool:
    rest = MARK.sub("\0", hidden)
    return any(secret[at : at + LEFT] in rest for at in range(len(secret) - LEFT + 1)) or bool(
        _CHARACTERS_LEFT.search(rest)
    )
