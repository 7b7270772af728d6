"""A mark whose secret is not known any more is never written to a file that has it not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.tools.context import Redaction
from codeagent_lsp.tools.lost_marks import mark_looked_for, with_secrets
from tests.tools.fakes import Bench

KEY = "ghp_" + "aB3dE5gH7j" * 4


def bench_with(tmp_path: Path, masking: Masking) -> Bench:
    bench = Bench(tmp_path)
    bench.add((Redaction, Redaction(masking.hide, masking.reveal, masking.lost)))
    return bench


async def test_a_mark_of_an_earlier_process_is_refused_until_the_file_is_read_again(tmp_path: Path) -> None:
    masking, earlier = Masking(), Masking().hide(KEY)
    bench = bench_with(tmp_path, masking)
    bench.write("settings.ini", f"mode = 1\nkey = {KEY}\n")
    refused = await bench.call("write_file", path="settings.ini", content=f"mode = 2\nkey = {earlier}\n")
    assert refused.status == "retry"
    assert "Read the file again" in refused.text
    assert not bench.changeset
    now = masking.hide(KEY)
    assert (await bench.call("write_file", path="settings.ini", content=f"mode = 2\nkey = {now}\n")).ok
    assert bench.text("settings.ini") == f"mode = 2\nkey = {KEY}\n"


async def test_a_mark_that_is_the_file_s_own_text_may_be_written(tmp_path: Path) -> None:
    mark = Masking().hide(KEY)
    bench = bench_with(tmp_path, Masking())
    bench.write("notes.md", f"masked as {mark}\n")
    assert (await bench.call("write_file", path="notes.md", content=f"It is masked as {mark}.\n")).ok


def test_a_text_that_is_staged_gets_its_secrets_back() -> None:
    masking = Masking()
    text = f"TOKEN = '{KEY}'\nlevel = 1\n"
    seen = masking.hide(text)
    redaction = Redaction(masking.hide, masking.reveal, masking.lost)
    assert KEY not in seen
    assert with_secrets(redaction, "conf.py", text, seen.replace("level = 1", "level = 2")) == (
        text.replace("level = 1", "level = 2")
    )
    lost = "TOKEN = '<secret:000000>'\n"
    with pytest.raises(EditRefused, match="not known any more"):
        with_secrets(redaction, "conf.py", text, lost)
    assert with_secrets(redaction, "conf.py", lost, f"{lost}x = 1\n") == f"{lost}x = 1\n"


LOOKS = """
grep -n '§' conf.py
cd a && rg "token|§" .
git log -S§ --oneline
git -C a grep '§'
sed -i 's/§/new/' conf.py
awk '/§/ {print}' a
cat conf.py | grep §
if [[ "$x" == "§" ]]; then echo; fi
echo '§' > a; egrep -c '§' a
perl -ne 'print if /§/' a
"""
DOES_NOT = """
echo "TOKEN = '§'" > conf.py
cat > conf.py <<'EOF'¶x = grep('§')¶EOF
grep x a; echo § > b
curl -H 'Authorization: §' http://localhost
printf '§' | grep x
"""


def _commands(table: str) -> list[str]:
    return [line.replace("¶", "\n") for line in table.strip().split("\n")]


@pytest.mark.parametrize(
    ("command", "is_told"),
    [*((each, True) for each in _commands(LOOKS)), *((each, False) for each in _commands(DOES_NOT))],
)
def test_a_command_that_looks_for_a_mark_is_told_that_it_finds_nothing(command: str, is_told: bool) -> None:
    masking = Masking()
    mark, redaction = masking.hide(KEY), Redaction(masking.hide, masking.reveal, masking.lost)
    note = mark_looked_for(redaction, {"command": command.replace("§", mark)}, is_command=True)
    assert bool(note) == is_told
    assert not note or (mark in note and "stands for a secret" in note)
    strange = {"command": command.replace("§", "<secret:000000>")}
    assert mark_looked_for(redaction, strange, is_command=True) == ""


async def test_a_search_for_a_mark_is_told_that_it_finds_nothing(tmp_path: Path) -> None:
    masking = Masking()
    bench = bench_with(tmp_path, masking)
    bench.write("settings.ini", f"mode = 1\nkey = {KEY}\n")
    mark = masking.hide(KEY)
    result = await bench.call("grep", pattern=f"key = {mark}")
    assert f"{mark} stands for a secret" in result.text
    result = await bench.call("grep", pattern="key = ")
    assert (mark in result.text, "stands for a secret" in result.text) == (True, False)
    written = await bench.call("edit_file", path="settings.ini", old_str=f"key = {mark}", new_str=f"token = {mark}")
    assert written.ok
    assert "stands for a secret" not in written.text


OTHERWISE = {
    "capitals": str.upper,
    "HTML": lambda mark: mark.replace("<", "&lt;").replace(">", "&gt;"),
    "an address": lambda mark: mark.replace("<", "%3C").replace(":", "%3A").replace(">", "%3E"),
    "JSON of Go": lambda mark: mark.replace("<", "\\u003c").replace(">", "\\u003e"),
    "the opening alone": lambda mark: mark.replace("<", "\\x3c"),
    "cut": lambda mark: mark[:11],
    "without its digits": lambda mark: mark[:8],
    "without its end": lambda mark: mark[:-1],
    "without its beginning": lambda mark: mark[1:],
    "without its signs": lambda mark: mark[1:-1],
    "escaped signs": lambda mark: f"\\{mark[:-1]}\\>",
    "the word alone": lambda mark: "<secret>",
    "other brackets": lambda mark: "[secret]",
    "stars": lambda mark: "***",
    "many stars": lambda mark: "*" * 16,
    "what others write": lambda mark: "[REDACTED]",
}

INSTEAD = {
    "a name": "YOUR_API_KEY",
    "the environment": "' + os.environ['TOKEN'] + '",
    "nothing": "",
    "another": "changeme",
}


@pytest.mark.parametrize("other", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_a_mark_in_another_spelling_is_refused(other: Callable[[str], str]) -> None:
    masking = Masking()
    text = f"TOKEN = '{KEY}'\nlevel = 1\n"
    seen, mark = masking.hide(text), masking.hide(KEY)
    redaction = Redaction(masking.hide, masking.reveal, masking.lost)
    with pytest.raises(EditRefused, match="mark"):
        with_secrets(redaction, "conf.py", text, seen.replace(mark, other(mark)))
    kept = seen + f"# {other(mark)}\n"  # the file's own text
    assert with_secrets(redaction, "conf.py", text + f"# {other(mark)}\n", kept) == text + f"# {other(mark)}\n"


@pytest.mark.parametrize("instead", INSTEAD.values(), ids=INSTEAD.keys())
def test_a_secret_may_be_taken_out(instead: str) -> None:
    masking = Masking()
    text = f"TOKEN = '{KEY}'\nlevel = 1\n"
    redaction = Redaction(masking.hide, masking.reveal, masking.lost)
    assert with_secrets(redaction, "conf.py", text, text.replace(KEY, instead)) == text.replace(KEY, instead)


@pytest.mark.parametrize(
    "text",
    [
        "<secret:NAME> is a mark\n",
        "`<secret:…>`\n",
        "<SECRET:abcdef>\n",
        'M = "<secret:"\n',
        "a\n\n***\n\nb\n",
        "**bold** *x*\n",
        "[redacted]\n",
    ],
)
def test_words_about_marks_may_be_written(text: str) -> None:
    masking = Masking()
    redaction = Redaction(masking.hide, masking.reveal, masking.lost)
    assert with_secrets(redaction, "a.md", f"key = '{KEY}'\n", f"key = '{masking.hide(KEY)}'\n{text}").endswith(text)
