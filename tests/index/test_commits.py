"""Past commits as evidence: files that share no word with a request are found by what was said of them."""

from __future__ import annotations

from codeagent_lsp.index.commits import MOST_FILES, PastCommit, PastCommits, commits_of
from codeagent_lsp.index.words import question


def found(*commits: tuple[str, tuple[str, ...]], asked: str) -> list[str]:
    scores = PastCommits(PastCommit(*each) for each in commits).files(question(asked))
    return sorted(scores, key=lambda path: -scores[path])


def test_a_file_is_found_by_what_was_said_of_it() -> None:
    commits = (
        ("Round amounts to cents", ("billing/money.py",)),
        ("Bump the version", ("setup.cfg",)),
        ("修复购物车里含税价格的计算", ("shop/taxes.py", "shop/cart.py")),
    )
    assert found(*commits, asked="含税价格不对") == ["shop/taxes.py", "shop/cart.py"]
    assert found(*commits, asked="The amounts are rounded wrongly") == ["billing/money.py"]
    assert found(*commits, asked="Something else entirely") == []


def test_the_nearer_commit_and_the_smaller_one_count_more() -> None:
    commits = (
        ("Login page: keep the name", ("web/login.ts",)),
        ("Login, logout and profile page", ("web/login.ts", "web/logout.ts", "web/profile.ts", "web/style.css")),
        ("Page sizes", ("pdf/page.ts",)),
    )
    assert found(*commits, asked="the login page forgets the name")[0] == "web/login.ts"


def test_commits_of_many_files_and_of_none_say_nothing() -> None:
    many = tuple(f"{number}.py" for number in range(MOST_FILES + 1))
    assert found(("Reformat everything", many), ("Reformat nothing", ()), asked="reformat") == []
    assert PastCommits().files(question("anything")) == {}


def test_the_log_of_git_is_read_with_any_names() -> None:
    log = "\x01One\x02\na b.py\0sub/café.py\0\0\x01Two, empty\x02\0\x01Three\x02\nx\0"
    assert commits_of(log, "api/") == [
        PastCommit("One", ("api/a b.py", "api/sub/café.py")),
        PastCommit("Two, empty", ()),
        PastCommit("Three", ("api/x",)),
    ]
    assert commits_of("") == []
