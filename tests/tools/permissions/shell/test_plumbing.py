"""A rule about a command of git covers what does the same work by another name, wherever that hides; what only looks,
or does something else, stays free.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from codeagent_lsp.tools.permissions.shell_policy import judge

SERVING = {
    "push": """
        send-pack o main|send-pack --all o|http-push https://h.invalid/r main|receive-pack /r|remote-https o u
        remote-http o u|remote-ext o u|remote-fd 3|remote-ftps o u|subtree push --prefix=a o main|svn dcommit
        p4 submit|lfs push o main|lfs pre-push o u|annex sync|annex copy --to o|cvsexportcommit x
    """,
    "fetch": "fetch-pack o|http-fetch u|remote-https o u|remote update|svn fetch|lfs fetch|upload-pack /r",
    "pull": "subtree pull --prefix=a o main|svn rebase|lfs pull",
    "commit": "commit-tree -m m x|fast-import|citool",
    "merge": "merge-recursive a -- b c|merge-resolve a -- b c|merge-octopus a -- b c|subtree merge x",
    "checkout": "checkout-index -a -f|read-tree -u -m HEAD|symbolic-ref HEAD refs/heads/x",
    "reset": "read-tree --reset -u HEAD|update-ref HEAD x",
    "branch": "update-ref refs/heads/x y",
    "tag": "update-ref refs/tags/x y",
    "add": "stage a|update-index --add a|update-index --cacheinfo 1,2,3",
}
WRAPPED = r"""
git §
git -C sub -c a.b=c --no-pager §
git-§
/usr/lib/git-core/git-§
git -c alias.x='§' x
git -c alias.y='§' -c alias.x=y x
git -c alias.x='!git §' x
git submodule foreach git §
git submodule --quiet foreach --recursive 'git §'
git submodule foreach -q 'git § || :'
git submodule--helper foreach git §
git for-each-repo --config=a.b §
git for-each-repo --config a.b -- §
git bisect run git §
git rebase -x'git §' main
git rebase --exe='git §' main
git fetch --upload-pack='git §;' .
git clone -u 'git §;' . x
git ls-remote --upload-pa 'git §;' .
git shell -c 'git §'
hub §
env A=1 git §
nohup git §
sudo -u x git §
sh -c 'git §'
echo x | xargs git §
find . -exec git § \;
(cd sub && git §) || true
python3 -c "import os; os.system('git §')"
A=1 git §
ssh h git-§
x() { git §; }; x
if git §; then :; fi
$(echo git) §
g\it §
""".strip("\n").split("\n")

LOOKS = (
    """
git symbolic-ref HEAD|git symbolic-ref --short HEAD|git update-index --refresh|git update-index -q --really-refresh
git read-tree -n HEAD|git status|git log --oneline|git remote -v|git remote show o|git rev-parse HEAD|git ls-files
git stash push|git stash|git grep -n push|git log --grep=push|git commit -m 'git push later'|git diff|git svn log
git bundle create x --all|git request-pull a b|git merge-base a b|git merge-tree a b c|git rebase main|git cherry-pick x
git clone -b x u|git archive HEAD|git submodule update --init|git submodule status|git bisect start|git write-tree
git hash-object a|git format-patch -1|git cat-file -p HEAD|git for-each-ref|git show-ref|git worktree list
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


def commands() -> Iterator[tuple[str, str]]:
    """Each way to do the work of a command, in each place where it may hide."""
    for name, forms in SERVING.items():
        for form in forms.replace("\n", "|").split("|"):
            if form.strip():
                yield from ((name, each.replace("§", form.strip())) for each in WRAPPED)


def test_it_is_denied_wherever_it_hides() -> None:
    rows = list(commands())
    assert len(rows) > 1_400
    chosen = rows[:: max(1, len(rows) // 150)]
    assert got_through(chosen) == []


@pytest.mark.slow
def test_each_is_denied_in_each_place() -> None:
    assert got_through(list(commands())) == []


def got_through(rows: list[tuple[str, str]]) -> list[str]:
    return [text for name, text in rows if judge(text, allow=("*",), deny=(f"git {name} *",)).decision != "deny"]


def test_a_rule_that_asks_covers_it_as_well() -> None:
    for form in ("git send-pack o", "git -c alias.x=http-push x u"):
        assert judge(form, allow=("*",), ask=("git push *",)).decision == "ask"


def test_the_options_of_a_rule_count() -> None:
    deny = ("git push --force*",)
    assert judge("git send-pack --force o", allow=("*",), deny=deny).decision == "deny"
    assert judge("git send-pack o", allow=("*",), deny=deny).decision == "allow"


def test_what_only_looks_is_free() -> None:
    deny = tuple(f"git {name} *" for name in ("push", "fetch", "pull", "merge", "checkout", "reset", "add", "tag"))
    assert [text for text in LOOKS if judge(text, allow=("*",), deny=deny).decision != "allow"] == []


def test_an_allow_rule_covers_only_what_it_names() -> None:
    """To serve a command is a reason to deny, and never one to allow."""
    for form in ("git send-pack o", "git-send-pack o", "hub push", shlex.join(("git", "-c", "alias.x=push", "x"))):
        assert judge(form, allow=("git push *",)).decision == "ask"
