"""No secret survives, wherever it stands; what only looks like one is kept; twice is the same as once."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.records.mark import MARK
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.sanitizer import Sanitizer
from tests.examples import examples
from tests.records.formats import ALNUM, CONTEXTS, PLACED, TOKENS, chars, quoted
from tests.records.lookalikes import everything

ROUNDS = 5  # made-up secrets per format and context

sanitizer = Sanitizer(homes=())


def survives(secret: str, text: str) -> bool:
    """Whether 8 characters of `secret` in a row, or all of a shorter one, are left in `text`."""
    text = MARK.sub("\0", text)
    pieces = {secret[start : start + 8] for start in range(max(1, len(secret) - 7))}
    return any(piece in text for piece in pieces if not piece.isspace() and not re.fullmatch(r"[-A-Z ]+", piece))


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_found_wherever_it_stands(name: str) -> None:
    for number in range(ROUNDS):
        secret = TOKENS[name](random.Random(f"{name} {number}"))
        for context, frame in CONTEXTS.items():
            text = sanitizer.sanitize(frame.format(secret))
            assert not survives(secret, text), (context, frame.format(secret), text)
            before, after = (part.replace("{{", "{").replace("}}", "}") for part in frame.split("{}"))
            assert text.startswith(before) and text.endswith(after), (context, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACED)
def test_a_secret_is_found_by_its_place(name: str) -> None:
    frame, make = PLACED[name]
    for number in range(ROUNDS):
        secret = make(random.Random(f"{name} {number}"))
        text = frame.format(secret)
        for around in ("{}", "before\n{}", "\t{}\nafter", "said:\n```\n{}\n```"):
            clean = sanitizer.sanitize(around.format(text))
            assert not survives(secret, clean), (around.format(text), clean)


MARGINS: dict[str, Callable[[int], str]] = {
    "read": lambda number: f"{number}|",
    "grep": lambda number: f"src/some/where/a_file.py:{number}:",
    "grep, beside": lambda number: f"src/a.py-{number}-",
    "diff": lambda number: "+",
}


@pytest.mark.slow
@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", PLACED)
def test_a_secret_is_found_by_its_place_in_lines_as_tools_give_them(name: str, margin: str) -> None:
    frame, make = PLACED[name]
    for number in range(5):
        secret = make(random.Random(f"{name} {number}"))
        lines = f"before\n{frame.format(secret)}\nafter".split("\n")
        clean = sanitizer.sanitize("\n".join(MARGINS[margin](98 + at) + line for at, line in enumerate(lines)))
        for part in secret.split("\n"):
            assert not survives(part, clean), clean


@pytest.mark.parametrize("margin", MARGINS)
def test_look_alikes_stay_in_lines_as_tools_give_them(margin: str) -> None:
    lines = "\n".join(everything()).split("\n")
    text = "\n".join(MARGINS[margin](number) + line for number, line in enumerate(lines, 1))
    assert sanitizer.sanitize(text) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TOKENS, *PLACED])
def test_twice_is_the_same_as_once(name: str) -> None:
    rng = random.Random(name)
    frames = list(CONTEXTS.values()) if name in TOKENS else [PLACED[name][0]]
    make = TOKENS.get(name) or PLACED[name][1]
    for frame in frames:
        once = sanitizer.sanitize(frame.format(make(rng)))
        assert sanitizer.sanitize(once) == once


def test_there_are_as_many_formats_as_promised() -> None:
    assert len(TOKENS) >= 30 and len(CONTEXTS) >= 6 and len(everything()) >= 100


@pytest.mark.parametrize("text", everything())
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert sanitizer.sanitize(text) == text
    assert sanitizer.sanitize(f"first\n{text}\nlast") == f"first\n{text}\nlast"


def test_all_look_alikes_together_stay() -> None:
    text = "\n".join(everything())
    assert sanitizer.sanitize(text) == text


def test_a_secret_in_a_quoted_url_is_found() -> None:
    secret = TOKENS["github personal"](random.Random(3))
    text = "https://example.com/?next=https%3A%2F%2Fexample.com%2F%3Ft%3D" + quoted(secret)
    assert not survives(secret, sanitizer.sanitize(text))


@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\ufeff"])
def test_unseen_characters_in_a_name_hide_nothing(unseen: str) -> None:
    secret = chars(random.Random(1), ALNUM, 24)
    assert not survives(secret, sanitizer.sanitize(f'api{unseen}_key="{secret}"'))
    assert sanitizer.sanitize(f"co{unseen}operate") == f"co{unseen}operate"


def test_a_hash_behind_the_name_of_a_service_stays() -> None:
    for text in (f"aws commit {'0123456789abcdef' * 2}01234567", f"twilio {'a' * 32}"):
        assert sanitizer.sanitize(text) == text


def test_equal_secrets_get_equal_marks_and_others_do_not() -> None:
    one, other = (TOKENS["gitlab"](random.Random(seed)) for seed in (1, 2))
    text = sanitizer.sanitize(f"{one} {other} {one} token={one}")
    first, second, third, fourth = MARK.findall(text)
    assert first == third == fourth != second


def test_marks_of_two_sanitizers_cannot_be_compared() -> None:
    secret = TOKENS["gitlab"](random.Random(1))
    marks = {Sanitizer().sanitize(secret) for _ in range(4)}
    assert len(marks) > 1


def test_our_own_keys_are_found_in_every_writing() -> None:
    own = "/k:" + chars(random.Random(5), 'abcdefgh+/="012', 25) + "é"
    sane = Sanitizer(secrets=[own], homes=())
    data = own.encode()
    writings = [
        own,
        own[::-1],
        data.hex(),
        data.hex().upper(),
        quoted(own),
        json.dumps(own),
        json.dumps({"a": json.dumps(own)}),
    ]
    for shift in range(4):
        padded = b"u" * shift + data + b"tail"
        writings += [base64.b64encode(padded).decode(), base64.urlsafe_b64encode(padded).decode()]
    masking = Masking([own])
    for writing in writings:
        clean = sane.sanitize(f"x {writing} y")
        assert len(MARK.findall(clean)) == 1, (writing, clean)
        assert masking.reveal(masking.hide(f"x {writing} y")) == f"x {writing} y", "what stood there is put back"


def test_a_short_key_of_ours_does_not_eat_the_text() -> None:
    assert Sanitizer(secrets=["none", ""]).sanitize("none of this") == "none of this"


def test_switched_off_everything_stays() -> None:
    value = {"password": TOKENS["npm"](random.Random(1)), "path": "/home/somebody/x"}
    assert Sanitizer(enabled=False).sanitize(value) is value


def test_paths_are_shortened_in_records_and_kept_for_a_model() -> None:
    path = "/home/somebody/a/b/c.py"
    assert sanitizer.sanitize(f'File "{path}", line 3') == 'File "~/a/b/c.py", line 3'
    assert (
        sanitizer.sanitize("at /opt/one/two/three/four/five/six/seven/eight/nine.py:7")
        == "at /opt/one/…/seven/eight/nine.py:7"
    )
    assert sanitizer.sanitize(r"C:\Users\Somebody\x.txt") == r"C:~\x.txt"
    assert sanitizer.sanitize("/srv/me/x") == "/srv/me/x"
    assert Sanitizer(homes=["/srv/me"]).sanitize("/srv/me/x /srv/meow") == "~/x /srv/meow"
    model = sanitizer.for_model()
    secret = TOKENS["npm"](random.Random(1))
    assert model.sanitize(path) == path
    assert model.sanitize(f"{path} {secret}") == f"{path} {sanitizer.sanitize(secret)}"


def test_a_private_key_cut_at_either_end_is_found() -> None:
    pem = PLACED["pem"][1](random.Random(9))
    for cut in range(60, len(pem), 37):
        assert not survives(pem[40:cut], sanitizer.sanitize(f"x\n{pem[:cut]}")), cut
    for cut in range(40, len(pem) - 60, 37):
        clean = sanitizer.sanitize(pem[cut:])
        assert not survives(pem[cut:-40], clean), clean


def test_certificates_and_text_around_keys_stay() -> None:
    pem = PLACED["pem"][1](random.Random(9))
    clean = sanitizer.sanitize(f"before\n{pem}\nafter it all")
    assert clean.startswith("before\n<secret:") and clean.endswith(">\nafter it all")


@settings(max_examples=examples(150), deadline=None)
@given(st.text(alphabet=st.sampled_from("tokenpassword=:\"'\\ \n/-<>@.{}A1é，"), max_size=200))
def test_any_text_is_cleaned_without_an_error_and_only_once(text: str) -> None:
    once = sanitizer.sanitize(text)
    assert sanitizer.sanitize(once) == once


@settings(max_examples=examples(100), deadline=None)
@given(before=st.text(max_size=30), after=st.text(max_size=30), seed=st.integers(0, 10**6))
def test_no_surroundings_save_a_token(before: str, after: str, seed: int) -> None:
    rng = random.Random(seed)
    secret = TOKENS[rng.choice(sorted(TOKENS))](rng)
    assert not survives(secret, sanitizer.sanitize(f"{before} {secret} {after}"))


@pytest.mark.parametrize("margin", ["", "{}|"])
@pytest.mark.parametrize(
    "frame", ["{begin}\n{key}\n{end}", "{begin}\n{key}", "{key}\n{end}", "A = '{begin}'\n{begin}\n{key}"]
)
def test_a_private_key_is_found_whole_cut_and_behind_a_constant(frame: str, margin: str) -> None:
    rng = random.Random(frame)
    lines = [chars(rng, ALNUM, 64) for _ in range(4)]
    kind = "PRIVATE " + "KEY-----"
    text = frame.format(begin=f"-----BEGIN {kind}", end=f"-----END {kind}", key="\n".join(lines))
    text = "\n".join(margin.format(number) + line for number, line in enumerate(text.split("\n"), 1))
    assert not any(survives(line, sanitizer.sanitize(text)) for line in lines)


UNSEEN = ("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad")
HIDDEN_NAMES = (
    'api{0}_key="§"',
    'pass{0}word = "§"',
    "to{0}k{0}en: §1{0}b",
    "# co{0}operate, re{0}enter\n\nsec{0}ret = '§' # na{0}me, la{0}ter",
    "DB_PASS{0}WORD=§\nx{0}y = 1\nto{0}ken = §9{0}z",
    'a{0}b\nAuthor{0}ization: Bearer §\nc{0}d password="§x" e{0}f',
    'pass{0}word = "§" + "{0}x{0}" and pass{0}word = "§{0}q"',
)


@pytest.mark.parametrize("unseen", UNSEEN)
@pytest.mark.parametrize("frame", HIDDEN_NAMES)
def test_every_unseen_character_around_a_mark_stays(frame: str, unseen: str) -> None:
    secret = chars(random.Random(frame), ALNUM, 20)
    text = frame.format(unseen).replace("§", secret)
    masking = Masking()
    hidden = masking.hide(text)
    assert not survives(secret, hidden) and masking.reveal(hidden) == text
    assert masking.hide(hidden) == hidden
    stored = sanitizer.sanitize(text)
    assert not survives(secret, stored)
    outside = sum(part.count(unseen) for part in frame.format(unseen).split("§"))
    assert MARK.sub("", stored).count(unseen) >= outside - 2 * frame.count("§") and unseen in stored


@given(
    st.lists(
        st.sampled_from(("pass", "word", "=", '"', "\u200b", "x9", "Zx81kQp0Lm4v", "\n", " ", "api_key", "-", "a"))
    )
)
@settings(max_examples=examples(60))
def test_hidden_texts_with_unseen_characters_are_revealed_whole(parts: list[str]) -> None:
    masking = Masking()
    text = "".join(parts)
    assert masking.reveal(masking.hide(text)) == text
