"""Marks go out, secrets come back: in the edits of a model, in any nesting, and for nobody else's marks."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.records import masking
from codeagent_lsp.records.mark import MARK, Marker, mask_id
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.own import MOST_LEARNT, OwnSecrets
from codeagent_lsp.records.sanitizer import Sanitizer
from tests.records.formats import CONTEXTS, PLACED, TOKENS


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TOKENS, *PLACED])
def test_what_was_hidden_comes_back_byte_for_byte(name: str) -> None:
    frames = list(CONTEXTS.values()) if name in TOKENS else [PLACED[name][0]]
    make = TOKENS.get(name) or PLACED[name][1]
    for frame in frames:
        mask, text = Masking(), f"before\n{frame.format(make(random.Random(name)))}\nafter\n"
        hidden = mask.hide(text)
        assert hidden != text
        assert mask.reveal(hidden) == text


def test_marks_are_found_in_any_nesting_and_types_stay() -> None:
    mask, secret = Masking(), TOKENS["npm"](random.Random(1))
    mark = mask.hide(secret)
    given = {"edits": [{"old": f"a {mark}", "n": 1, "flag": True, "none": None}, (mark, 2.5)], mark: "a key stays"}
    assert mask.reveal(given) == {
        "edits": [{"old": f"a {secret}", "n": 1, "flag": True, "none": None}, (secret, 2.5)],
        mark: "a key stays",
    }
    assert mask.reveal(()) == ()


def test_marks_of_others_stay_what_they_are() -> None:
    secret = TOKENS["npm"](random.Random(1))
    mark = Masking().hide(secret)
    assert Masking().reveal(f"x {mark}") == f"x {mark}"
    assert Masking().reveal("<secret:zzzzzz> <secret:12>") == "<secret:zzzzzz> <secret:12>"


def test_marks_that_are_not_known_are_lost() -> None:
    mask, secret = Masking(), TOKENS["npm"](random.Random(1))
    known, other = mask.hide(secret), Masking().hide(secret)
    assert mask.lost({"a": [known, {"b": f"x {other} y"}], "c": 1}) == (other,)
    assert mask.lost({"a": "<secret:zzzzzz>"}) == ()


def test_equal_secrets_have_equal_marks_and_hiding_twice_changes_nothing() -> None:
    mask, secret = Masking(), TOKENS["gitlab"](random.Random(3))
    once = mask.hide(f"{secret} and {secret}")
    first, second = MARK.findall(once)
    assert first == second
    assert mask.hide(once) == once
    assert mask.reveal(once) == f"{secret} and {secret}"


def test_our_own_keys_are_hidden_wherever_they_are() -> None:
    mask = Masking(["a key of our own"])
    assert mask.hide("x a key of our own y") == f"x {MARK.findall(mask.hide('a key of our own'))[0]} y"
    assert mask.clean({"a": ["a key of our own"]})["a"][0].startswith("<secret:")


def test_a_key_that_comes_later_is_hidden_from_then_on() -> None:
    mask, key = Masking(["the first key"]), "a key that came later"
    records = Sanitizer(secrets=mask.own, homes=(), marker=mask.marker)
    text = f"x {key} y, the first key"
    before = mask.hide(text)
    assert key in before and key in records.text(text)
    mask.own.learn([key, "short", key])
    hidden = mask.hide(text)
    assert key not in hidden and "the first key" not in hidden
    assert records.text(text) == hidden
    assert mask.reveal(hidden) == text
    mask.own.learn([key])
    assert mask.own.version == 1
    assert mask.hide("too short") == "too short"


@pytest.mark.slow
def test_only_the_last_keys_that_came_later_are_kept() -> None:
    own = OwnSecrets(["given from the start"])
    own.learn(["the one that is renewed"])
    for number in range(MOST_LEARNT):
        own.learn([f"the key {number:04}", "the one that is renewed"])
    found = [text for text in ("the key 0000", "the key 0001", "the key 0063") if own.mask(text, Marker()) != text]
    assert found == ["the key 0001", "the key 0063"]
    for kept in ("given from the start", "the one that is renewed"):
        assert own.mask(kept, Marker()) != kept


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "MOST", 3)
    mask = Masking()
    known = [TOKENS["npm"](random.Random(number)) for number in range(5)]
    marks = [mask.hide(secret) for secret in known]
    assert len(mask.marker.known) == 3
    assert [mask.reveal(mark) for mark in marks] == [*marks[:2], *known[2:]]


def test_a_mark_cannot_be_guessed_from_its_secret() -> None:
    assert len({Marker()("the same") for _ in range(20)}) > 15
    assert Marker(b"k" * 32)("the same") == Marker(b"k" * 32)("the same")


@pytest.mark.parametrize(
    ("value", "masked"),
    [("", "***"), ("12345678", "***"), ("123456789", "1234***6789"), ("ü" * 12, "üüüü***üüüü")],
)
def test_an_id_keeps_its_ends(value: str, masked: str) -> None:
    assert mask_id(value) == masked


def test_a_secret_is_masked_where_it_is_repeated_without_its_name() -> None:
    secret = "Zq8r" + "T5wX2mN7bV4c"
    masking = Masking()
    text = f"password = '{secret}'\nprint('{secret}')\n# {secret} is old\nlog('Zq8r')\n"
    hidden = masking.hide(text)
    assert secret not in hidden and "log('Zq8r')" in hidden
    assert masking.reveal(hidden) == text


@pytest.mark.slow
def test_thousands_of_secrets_are_masked_where_they_are_repeated() -> None:
    """One of them begins as another, and each is whole, too, where nothing names it."""
    secrets = [f"Zq8rT5wX2m{number:04}bV4c" for number in range(2000)]
    secrets.append(secrets[7] + "K9j")
    masking = Masking()
    text = "".join(f"password = '{secret}'\n" for secret in secrets) + " ".join(f"({one})" for one in secrets)
    hidden = masking.hide(text)
    assert not [secret for secret in secrets if secret in hidden]
    assert hidden.count("(<secret:") == len(secrets) and masking.reveal(hidden) == text


@pytest.mark.parametrize("lines", range(1, 5))
def test_a_form_is_found_behind_many_words_and_line_ends(lines: int) -> None:
    """Each word begins lines in which its form is looked for, also where those of the word before end."""
    secret = "Zq8rT5wX2mN7bV4c" * 2
    text = "password\n" * 9 + "\n" * lines + "ALTER USER a PASSWORD" + "\n" * lines + f"'{secret}'\n" + "password\n" * 3
    hidden = Masking().hide(text)
    assert secret not in hidden and hidden.count("<secret:") == 1


CHOSEN = ("Tr0ub4dor" + "&3xQ", "Xk9#mm" + "Pq27", "winter" + "!Abc12", "abc$" + "Kd93-z")
SAID = """
the password has been set to §
the password was changed from the old one to §
the password of bob is §.
the admin password, §, must be rotated
password now §
password is still §
new password → §
Password for bob — §
Pass: §
user: bob, pass: §
Kennwort für bob: §
пароль от базы: §
<b>Password:</b> §
<td>Password</td> <td>§</td>
Password: <code>§</code>
| Password | § |
expect "assword:"⏎send "§\\r"
""".strip().splitlines()
WRITTEN = """
printf '%s' '§' > ~/.token
echo "§" > /run/secrets/db_password
echo '§' | sudo tee secret.txt
htpasswd -b users.txt bob '§'
""".strip().splitlines()
ORDINARY = """
the password must have 8 characters or more
the password has been set to true
Password: 8-64 characters, A-Z and 0-9
the password field is password_confirmation2
| Password | varchar(255) | not null |
Pass: 12 of 13 tests in 3.5s
pass: test_login_2FA_works
echo "https://example.com/a?b=1&c=2" > tokens.txt
<td>Password</td> <td>optional</td>
""".strip().splitlines()


@pytest.mark.parametrize("frame", [*SAID, *WRITTEN])
def test_a_password_that_somebody_chose_is_found_where_it_is_said(frame: str) -> None:
    for secret in CHOSEN if frame in SAID else ("Xk9mmPq27" + "winterAb12",):
        text = f"Notes.\n{frame.replace('⏎', chr(10)).replace('§', secret)}\nmore\n"
        masking = Masking()
        assert secret not in masking.hide(text), text
        assert masking.reveal(masking.hide(text)) == text


@pytest.mark.parametrize("line", ORDINARY)
def test_sentences_about_passwords_stay(line: str) -> None:
    assert Masking().hide(f"Notes.\n{line}\nmore\n") == f"Notes.\n{line}\nmore\n"
