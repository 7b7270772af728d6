"""A mark whose secret is not known any more is never written to a file that has it not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.tools.context import Redaction
from codeagent_lsp.tools.lost_marks import with_secrets
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


OTHERWISE = {
    "capitals": str.upper,
    "HTML": lambda mark: mark.replace("<", "&lt;").replace(">", "&gt;"),
    "an address": lambda mark: mark.replace("<", "%3C").replace(":", "%3A").replace(">", "%3E"),
    "JSON of Go": lambda mark: mark.replace("<", "\\u003c").replace(">", "\\u003e"),
    "the opening alone": lambda mark: mark.replace("<", "\\x3c"),
    "cut": lambda mark: mark[:11],
    "without its digits": lambda mark: mark[:8],
    "without its end": lambda mark: mark[:-1],
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


@pytest.mark.parametrize(
    "text", ["<secret:NAME> is a mark\n", "`<secret:…>`\n", "<SECRET:abcdef>\n", 'M = "<secret:"\n']
)
def test_words_about_marks_may_be_written(text: str) -> None:
    masking = Masking()
    redaction = Redaction(masking.hide, masking.reveal, masking.lost)
    assert with_secrets(redaction, "a.md", f"key = '{KEY}'\n", f"key = '{masking.hide(KEY)}'\n{text}").endswith(text)
