"""`generate_commit`: what the model is asked, which answers are taken, and that nothing is committed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.tools.git.comparing import Change
from codeagent_lsp.tools.git.git_tools import INSTRUCTIONS, MAX_DIFF, fault_of, relevance, tidy
from tests.tools.fakes import Bench
from tests.tools.git.models import with_writer
from tests.tools.git.repos import commit, git, start

GOOD = "Say two in digits\n\nThe words were too long."


async def test_the_message_is_the_answer_and_nothing_is_committed(repo: Bench) -> None:
    commit(repo.root, "Earlier subject")
    repo.open("a.py", "one\n2\nthree\n")
    writer = with_writer(repo, f"\n{GOOD}  \n")
    before = git(repo.root, "rev-parse", "HEAD"), repo.disk()
    result = await repo.call("generate_commit")
    assert (result.text, result.data) == (GOOD, {"message": GOOD})
    assert before == (git(repo.root, "rev-parse", "HEAD"), repo.disk())
    ((instructions, text),) = writer.asked
    assert instructions == INSTRUCTIONS
    assert text.startswith("Earlier subjects:\n- Earlier subject\n- Begin\n\nChanges:\nM a.py +1 -1")
    assert "-two\n+2" in text


async def test_only_the_index(repo: Bench) -> None:
    repo.write("a.py", "index\n")
    git(repo.root, "add", "a.py")
    repo.write("a.py", "later\n")
    writer = with_writer(repo, GOOD, GOOD)
    assert (await repo.call("generate_commit", staged_only=True)).ok
    assert "+index" in writer.asked[0][1] and "later" not in writer.asked[0][1]
    git(repo.root, "reset", "-q")
    refused = await repo.call("generate_commit", staged_only=True)
    assert not refused.ok and "Nothing in git's index differs" in refused.text


async def test_a_bad_answer_is_asked_again_once_with_the_reason(repo: Bench) -> None:
    repo.write("a.py", "x\n")
    writer = with_writer(repo, "```\nFix\n```", "Fix it")
    assert (await repo.call("generate_commit")).text == "Fix it"
    assert "It cannot be used: It has a code fence." in writer.asked[1][1]
    with_writer(repo, '"Fix"', "x" * 73, "never asked")
    refused = await repo.call("generate_commit")
    assert not refused.ok and "73 characters, more than 72" in refused.text


async def test_without_a_model_or_without_changes(repo: Bench) -> None:
    assert "No model can be asked" in (await repo.call("generate_commit")).text
    with_writer(repo)
    assert "Nothing in the files differs" in (await repo.call("generate_commit")).text
    repo.write("a.py", "x\n")
    refused = await repo.call("generate_commit")
    assert not refused.ok and "could not be asked for a message" in refused.text


async def test_the_first_commit(tmp_path: Path) -> None:
    bench = Bench(start(tmp_path / "empty"))
    bench.write("a.py", "x\n")
    git(bench.root, "add", "a.py")
    writer = with_writer(bench, "Begin")
    assert (await bench.call("generate_commit")).text == "Begin"
    assert "(this is the first commit)" in writer.asked[0][1]


async def test_much_is_bounded_and_code_comes_first(repo: Bench) -> None:
    repo.write("aaa-lock.json", "{}\n" * 5000)
    repo.write("bin", b"\0")
    repo.write("big.txt", "filler line\n" * 9000)
    repo.write("z.py", "code\n")
    git(repo.root, "add", "-A")
    writer = with_writer(repo, GOOD)
    assert (await repo.call("generate_commit")).ok
    text = writer.asked[0][1]
    assert len(text) < MAX_DIFF + 1000 and "+code" in text and "filler" not in text
    assert text.index("z.py") < text.index("aaa-lock.json") and "A bin (binary" in text


async def test_secrets_are_not_described(repo: Bench) -> None:
    repo.write(".env", "TOKEN=1\n")
    git(repo.root, "add", "-A")
    writer = with_writer(repo, GOOD)
    assert not (await repo.call("generate_commit")).ok
    assert writer.asked == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Fix the parser", ""),
        ("Fix: “quotes” inside", ""),
        ("修复解析器\n\n原因", ""),
        ("x" * 72, ""),
        ("", "empty"),
        ("x" * 73, "73 characters"),
        ('"Fix"', "quotes"),
        ("`Fix`", "quotes"),
        ('"Fix"\n\nbody', "quotes"),
        ("Fix\nbody", "second line"),
        ("Fix\n\n```\nx\n```", "code fence"),
        ("Fix\x1b[2J", "control"),
        ("Fix\n\n" + "x" * 5000, "more than 4000"),
    ],
)
def test_what_a_message_is(message: str, fault: str) -> None:
    found = fault_of(message)
    assert fault in found and bool(found) is bool(fault)


def test_tidy() -> None:
    assert tidy("\n  Fix \n\n a\t\n") == "Fix\n\n a"


def test_relevance() -> None:
    paths = ("/w/yarn.lock", "/w/package-lock.json", "/w/go.sum", "/w/app.min.js", "/w/x.map")
    assert {relevance(Change(path, "M", "", "x")) for path in paths} == {2}
    assert relevance(Change("/w/lock.py", "M", "", "x")) == 0
    assert relevance(Change("/w/a.py", "D", "x", None)) == 1
    assert relevance(Change("/w/a", "M", None, None, False, "binary")) == 2
