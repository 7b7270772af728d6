"""Secrets in the frames of `outside_frames.txt`, spellings of many languages, programs and formats, with values made
anew of every length and alphabet: none is left, and hiding twice changes nothing. What looks alike stays.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.values import looks_scrambled

LEFT = 8  # characters of a secret in a row that must not be seen
LETTERS = string.ascii_letters + string.digits
ALPHABETS = (LETTERS, string.digits + "abcdef", string.ascii_lowercase + string.digits, LETTERS + "+/", LETTERS + "-_")


def _sections() -> dict[str, list[str]]:
    """Return the frames by their language: `§` is the secret, `§1` and `§2` its halves, `⏎` the end of a line."""
    lines = iter((Path(__file__).parent / "outside_frames.txt").read_text("utf-8").splitlines())
    return {line.removeprefix("## "): list(takewhile(bool, lines)) for line in lines if line}


SECTIONS = _sections()


def value(chosen: random.Random, alphabet: str, length: int) -> str:
    """Return what a program could have made; the one of a hundred that looks like words or a number is left out."""
    while True:
        made = "".join(chosen.choice(alphabet) for _ in range(length - 2))
        if looks_scrambled(secret := f"{chosen.choice(LETTERS)}{made}{chosen.choice(string.digits)}"):
            return secret


def leaks(frame: str, lengths: tuple[int, ...], seed: int) -> Iterator[str]:
    for alphabet in ALPHABETS[: None if len(lengths) > 1 else 1]:
        for length in lengths:
            chosen = random.Random(f"{frame}{alphabet}{length}{seed}")
            secret = value(chosen, alphabet, length)
            halves = secret[: length // 2], secret[length // 2 :]
            text = frame.replace("§1", halves[0]).replace("§2", halves[1]).replace("§", secret).replace("⏎", "\n")
            masking = Masking()
            masked = masking.hide(text)
            if any(secret[at : at + LEFT] in masked for at in range(length - LEFT + 1)):
                yield f"{length}: {masked}"
            if masking.hide(masked) != masked:
                yield f"twice: {masked}"
            if masking.reveal(masked) != text:
                yield f"not revealed: {masked}"


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_no_frame_leaves_a_secret(section: str) -> None:
    assert [each for frame in SECTIONS[section][::2] for each in leaks(frame, (32,), 1)] == []


@pytest.mark.slow
@pytest.mark.parametrize("section", SECTIONS)
def test_nor_at_any_length(section: str) -> None:
    lengths = (16, 24, 64, 4_000)
    assert [each for frame in SECTIONS[section] for each in leaks(frame, lengths, 2)] == []


def test_there_are_frames_of_many_languages() -> None:
    assert len(SECTIONS) >= 12
    assert sum(map(len, SECTIONS.values())) >= 200


PLAIN = r"""
import RefreshRuntime from "http://localhost:3000/@react-refresh"
proxy http://registry:port/npm/scoped/@types/node2
max_tokens of all-MiniLM-L6-v2 and Qwen3-0.6B-FP8
token licences: GPL-3.0-or-later, LGPLv3+_or_GPLv2+
community: "A group of 2024 people"
<input type="hidden" name="csrf_token" value="{{ csrf_token() }}">
That's the password field of version 2.10, it's the token for ages.
The second argument (password) is optional since Python3.12 (token).
FOREIGN_KEY=user_id_2024_name
WS_KEY = b"00000000-E914-47DA-95CA-C5AB0DC85B11"
printf '%s\n' "$name" > token_names.txt
cat > tokens.txt <<EOF⏎identifiers2⏎EOF
echo "https://example.com/a1?b=1&c=2" | tee tokens.txt
if (strcmp(password, "password2") == 0) {}
curl -b cookies.txt -H "Accept: text/html" localhost
kind: ConfigMap⏎data: {mode: production2024, region: eu-central-1}
snmpwalk -v2c -c public localhost
spawn ssh host⏎expect "assword:"⏎send "$password\r"
qpdf --encrypt user owner 256 -- a b
github.com/golang-jwt/jwt/v5 v5.2.0/go.mod h1:pqrtFR0X4osieyHYxtmOUWsAWrfe1Q5UVIyoH402zdk=
CACHE_KEY = 'user:settings:v2'
smtp_sasl_password_maps = hash:/etc/postfix/sasl_passwd
login: jane.doe2024
--- PASS: TestLogin2 (0.01s)
> PASS src/a.test.ts2
secret = Secret.from_name("db-password-v2")
token = Token.from("utf-8")
the user is on > 2 screens
password: reader.readString(),⏎age: reader.readUInt8(),
the token of the repository⏎b5f1c0e4a1d2938475665748392a1b0c9d8e7f60
where the key is made⏎src/AuthTokenProvider2/KeyV3Factory.ts
the wifi pass again?⏎no idea
base64 -d < a.b64⏎decoded_words_of_file_2
terraform output -raw region⏎eu-central-1
a.get("token", {"max": 4096}, "utf-8", "gpt-4o-mini-2024")
parola_regex = "words2only"
login("test2user") and login(user="jane.doe2024")
Client("marta@example.com", "Marta Example 2024")
key = Buffer.from("utf-8-text-2")
"""


@pytest.mark.parametrize("text", PLAIN.strip("\n").split("\n"))
def test_what_only_looks_alike_stays(text: str) -> None:
    text = text.replace("⏎", "\n")
    assert Masking().hide(text) == text


def test_codes_that_stand_below_each_other_are_all_hidden() -> None:
    chosen = random.Random(7)
    codes = [value(chosen, string.ascii_lowercase + string.digits, 16) for _ in range(10)]
    hidden = Masking().hide("Your backup codes:\n\n" + "".join(f"  {code}\n" for code in codes) + "\nKeep them.\n")
    assert not [code for code in codes if code in hidden]
    assert hidden.startswith("Your backup codes:\n") and hidden.endswith("\nKeep them.\n")
