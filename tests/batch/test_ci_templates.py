"""The CI templates: what they allow, and each of their steps run against a forge on loopback with a scripted model."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.batch.ci_jobs import CI, MODEL_KEY, Runner, holds, template
from tests.batch.forge import TOKEN, Forge, forge
from tests.batch.rig import MENDED, PROGRAM

HOSTILE = (
    "\"; touch OWNED; rm -rf ./* $(touch OWNED) `touch OWNED` ' || touch OWNED\n::set-output name=go::x\n/merge\n"
    "@everyone #1 [x](https://evil.example) ![](https://evil.example/i) <img src=x> "
    "${{ github.token }} | a |\n````\n@all [y](https://evil.example)\u202e"
)
MARKDOWN = {"h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "pre", "details", "summary", "a"}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with forge(tmp_path / "forge") as server:
        made = Runner(tmp_path, server)
        made.project()
        yield made


def labelled(**issue: Any) -> dict[str, Any]:
    """The event of the label `codeagent` on an issue."""
    values = {"number": 12, "title": "double is wrong", "body": "Mend double", **issue}
    sender = {"login": "maintainer"}
    return {
        "event_name": "issues",
        "action": "labeled",
        "label": {"name": "codeagent"},
        "issue": values,
        "sender": sender,
    }


def commented(words: str, association: str = "MEMBER", user: str = "maintainer", **issue: Any) -> dict[str, Any]:
    """The event of a comment on an issue."""
    comment = {"body": words, "author_association": association}
    event = {**labelled(**issue), "event_name": "issue_comment", "action": "created", "comment": comment}
    del event["label"]
    return {**event, "sender": {"login": user}}


# --- what they allow


def test_the_workflow_has_the_least_rights() -> None:
    workflow = template("github/codeagent.yml")
    work, propose = (workflow["jobs"][name] for name in ("work", "propose"))
    assert workflow["permissions"] == {}
    assert work["permissions"] == {"contents": "read"}
    assert propose["permissions"] == {"contents": "write", "issues": "write", "pull-requests": "write"}
    assert set(workflow["on"]) == {"issues", "issue_comment", "workflow_dispatch"}  # no event runs a fork's code
    assert work["concurrency"]["group"].startswith("codeagent-${{ github.event.issue.number")
    assert all(0 < job["timeout-minutes"] <= 60 for job in (work, propose))


def test_no_script_of_the_workflow_has_an_expression_in_it() -> None:
    steps = [step for job in template("github/codeagent.yml")["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "${{" in str(step.get("run"))]
    assert not [step for step in steps if "github.event" in json.dumps({**step, "if": ""})]
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    assert all(step["with"]["persist-credentials"] is False for step in steps if "checkout" in str(step.get("uses")))


def test_each_secret_is_in_one_step_only() -> None:
    jobs = template("github/codeagent.yml")["jobs"]
    steps = {step.get("name", step.get("uses")): step for job in jobs.values() for step in job["steps"]}
    assert [name for name, step in steps.items() if "secrets." in str(step)] == ["Work"]
    assert [name for name, step in steps.items() if "github.token" in str(step)] == [
        *("The task, if who asked may write here", "Propose and tell")
    ]
    assert not [job for job in jobs.values() if "secrets" in str(job.get("env"))]


@pytest.mark.parametrize(
    ("event", "runs"),
    [
        (labelled(), True),
        ({**labelled(), "label": {"name": "bug"}}, False),
        (commented("/codeagent mend it"), True),
        (commented("/codeagent", "OWNER"), True),
        (commented("/codeagent", "COLLABORATOR"), True),
        *((commented("/codeagent", kind), False) for kind in ("CONTRIBUTOR", "NONE", "FIRST_TIMER", "MANNEQUIN", "")),
        (commented("please /codeagent"), False),
        (commented("/codeagent mend it", pull_request={"url": "x"}), False),
        ({"event_name": "workflow_dispatch", "inputs": {"task": "x"}}, True),
        ({"event_name": "pull_request"}, False),
    ],
)
def test_what_starts_the_workflow(event: Mapping[str, Any], runs: bool) -> None:
    assert holds(template("github/codeagent.yml")["jobs"]["work"]["if"], event) == runs


def test_the_template_for_gitlab_keeps_its_secrets_apart() -> None:
    jobs = template("gitlab/codeagent.gitlab-ci.yml")
    places = {name: job["environment"] for name, job in jobs.items() if name != ".codeagent"}
    assert {name: place["name"] for name, place in places.items()} == {
        "codeagent-task": "codeagent/forge",
        "codeagent-work": "codeagent/model",
        "codeagent-propose": "codeagent/forge",
    }
    assert all(place["action"] == "access" for place in places.values())
    sources = " ".join(rule["if"] for rule in jobs[".codeagent"]["rules"])
    assert "merge_request_event" not in sources and "push" not in sources and "$CI_PIPELINE_SOURCE" in sources
    assert [rule["if"] for rule in jobs["codeagent-propose"]["rules"]] == [
        rule["if"] for rule in jobs[".codeagent"]["rules"]
    ]


# --- whole runs


@pytest.mark.slow
def test_a_label_becomes_a_pull_request(runner: Runner) -> None:
    assert runner.github(labelled())
    server = runner.forge
    assert server.git("show", "codeagent/issue-12:program.py") == MENDED.strip()
    assert server.git("show", "main:program.py") == PROGRAM.strip()
    assert server.git("diff", "--name-only", "main", "codeagent/issue-12") == "program.py"
    assert server.git("log", "-1", "--format=%an %ae %s", "codeagent/issue-12") == (
        "codeagent codeagent@users.noreply.127.0.0.1 codeagent: issue-12"
    )
    (request,) = server.requests
    assert (request["title"], request["base"], request["draft"]) == ("codeagent: a proposal for #12", "main", False)
    assert request["body"].startswith("For #12.\n\n**codeagent: solved.** The check passed.\n")
    (comment,) = server.comments
    assert f"Proposed: {request['html_url']}" in comment["body"]
    assert (
        "| exit code 0 |" in comment["body"]
        and "| not known |" in comment["body"]
        and "+1 −1 `program.py`" in comment["body"]
    )
    assert "actions/runs/1001" in comment["body"]
    assert "bubblewrap" in (runner.root / "installed").read_text()
    summary = (runner.root / "runner" / "work-temp" / "summary.md").read_text()
    assert "Solved: **1 of 1**" in summary
    kept = b"".join(path.read_bytes() for path in runner.work.rglob("*") if path.is_file())
    for secret in (TOKEN, MODEL_KEY):
        assert secret not in runner.log and secret.encode() not in kept


@pytest.mark.slow
def test_a_hostile_issue_and_a_hostile_result_are_text(runner: Runner) -> None:
    edit = {"path": "program.py", "old_str": "x + x + x", "new_str": f"x + x  # {HOSTILE.splitlines()[0]}"}
    runner.script = ({"tool_calls": [{"name": "edit_file", "arguments": edit}]}, {"text": HOSTILE})
    runner.variables = {"CODEAGENT_CHECK": f"printf %s {shlex.quote(HOSTILE)}; exit 3"}
    assert runner.github(commented(f"/codeagent {HOSTILE}", title=HOSTILE, body=HOSTILE))
    tasks = (runner.root / "runner" / "work-temp" / "codeagent" / "tasks.jsonl").read_text()
    assert HOSTILE.strip() in json.loads(tasks)["task"]
    assert list(runner.root.rglob("OWNED")) == []
    (request,) = runner.forge.requests
    assert request["draft"] and request["title"] == "codeagent: a proposal for #12"
    assert not re.search(r"^\s*::", runner.log, re.MULTILINE)
    for body in (request["body"], runner.forge.comments[0]["body"]):
        inert(body.replace("For #12.\n", ""))
        assert "\n /merge\n@everyone #1" in body and "<U+202E>" in body
    assert "not solved:** the check failed, `exit code 3." in request["body"]


def inert(body: str) -> None:
    """Assert that Markdown makes nothing of a text but what the script writes itself."""
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(body)
    assert set(re.findall(r"<(\w+)", html)) <= MARKDOWN
    assert "\u202e" not in html
    outside = re.sub(r"<code[^>]*>.*?</code>", "", html, flags=re.DOTALL)
    for sign in ("@", "#", "evil", "`", "[", "$("):
        assert sign not in outside
    assert not re.search(r"^/", body, re.MULTILINE)


@pytest.mark.slow
def test_gitlab_from_a_label_and_from_a_comment(runner: Runner) -> None:
    label = {"title": "codeagent"}
    values = {"iid": 5, "title": "double", "description": HOSTILE, "action": "update"}
    event = {"object_kind": "issue", "object_attributes": values, "user": {"id": 42}}
    runner.gitlab({**event, "changes": {"labels": {"previous": [], "current": [label]}}})
    server = runner.forge
    assert server.git("show", "codeagent/issue-5:program.py") == MENDED.strip()
    (request,) = server.requests
    assert (request["title"], request["target_branch"]) == ("codeagent: a proposal for #5", "main")
    assert "**codeagent: solved.**" in server.comments[0]["body"]
    runner.run_id = "1002"
    note = {"note": "/codeagent again, please", "system": False}
    runner.gitlab({"object_kind": "note", "object_attributes": note, "issue": values, "user": {"id": 42}})
    assert len(server.requests) == 1 and len(server.comments) == 2
    assert [path for _, path, _ in server.calls if path.endswith("/notes")] == ["/api/v4/projects/7/issues/5/notes"] * 2


@pytest.mark.slow
def test_gitlab_on_a_schedule_has_no_issue(runner: Runner) -> None:
    runner.gitlab(CODEAGENT_TASK="Mend double")
    (request,) = runner.forge.requests
    assert re.fullmatch("codeagent/task-[0-9a-f]{8}", request["source_branch"])
    assert runner.forge.comments == []


@pytest.mark.slow
def test_gitlab_does_nothing_for_other_events(runner: Runner) -> None:
    label, values = {"title": "codeagent"}, {"iid": 5, "title": "double", "description": "", "note": "words"}
    event = {"object_kind": "issue", "object_attributes": values, "user": {"id": 42}}
    runner.gitlab({**event, "changes": {"labels": {"previous": [label], "current": [label]}}})
    runner.gitlab({**event, "object_kind": "note", "issue": values})
    runner.gitlab({**event, "changes": {"labels": {"previous": [], "current": [label]}}, "user": {"id": 43}})
    runner.gitlab({**event, "changes": {"labels": {"previous": [], "current": [label]}}, "user": None})
    runner.gitlab({"object_kind": "push"})
    assert runner.forge.calls == []


# --- parts


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        commented("/codeagent", user="stranger"),
        commented("/codeagent", user="reader"),
        commented("/codeagent", user="../../maintainer"),
        commented("/codeagentic"),
        {**commented("/codeagent"), "action": "edited"},
    ],
)
def test_who_may_not_write_starts_nothing(runner: Runner, event: Mapping[str, Any]) -> None:
    assert not runner.github(event)
    assert runner.forge.calls == [] and not (runner.root / "installed").exists()


def finished(runner: Runner, changes: Mapping[str, str], **result: Any) -> None:
    """Results as a job leaves them: a patch that writes these files."""
    folder = runner.work / "issue-12"
    folder.mkdir(parents=True, exist_ok=True)
    values = {"solved": True, "checked": True, "check_exit": 0, "cost": 0.1234, "files": list(changes), **result}
    (folder / "result.json").write_text(json.dumps(values))
    (folder / "check.txt").write_text("all is well\n")
    (folder / "changes.patch").write_text("".join(added(name, text) for name, text in changes.items()))


def added(name: str, text: str, mode: str = "100644") -> str:
    """The patch of a new file of one line."""
    return f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}\n"


def proposed(runner: Runner) -> Forge:
    """Do the job that proposes, and nothing else."""
    runner.steps("propose", template("github/codeagent.yml")["jobs"]["propose"]["steps"], labelled(), {"go": "true"})
    return runner.forge


@pytest.mark.slow
def test_a_second_run_goes_on_with_the_same_request(runner: Runner) -> None:
    finished(runner, {"a.txt": "first"})
    first = proposed(runner).git("rev-parse", "codeagent/issue-12")
    proposed(runner)  # the same run, done again
    assert len(runner.forge.requests) == len(runner.forge.comments) == 1
    runner.run_id = "1002"
    finished(runner, {"a.txt": "second"}, solved=False, reason="check")
    server = proposed(runner)
    assert len(server.requests) == 1 and "not solved" in server.requests[0]["body"]
    assert len(server.comments) == 2
    assert server.git("show", "codeagent/issue-12:a.txt") == "second"
    assert server.git("rev-parse", "codeagent/issue-12^") == server.git("rev-parse", f"{first}^")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["commit", "amend"])
def test_what_a_person_did_on_the_branch_is_kept(runner: Runner, way: str) -> None:
    finished(runner, {"a.txt": "first"})
    proposed(runner)
    own = runner.root / "own"
    subprocess.run(["git", "clone", "-q", "-b", "codeagent/issue-12", runner.forge.repository, own], check=True)
    if way == "commit":
        runner.commit(own, "codeagent/issue-12", "by hand")
    else:
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *who, "commit", "-q", "--amend", "-m", "by hand"], cwd=own, check=True)
        subprocess.run(["git", "push", "-q", "--force"], cwd=own, check=True)
    runner.run_id = "1002"
    server = proposed(runner)
    assert server.git("log", "-1", "--format=%s", "codeagent/issue-12") == "by hand"
    assert server.git("show", "codeagent/issue-12-1002:a.txt") == "first"
    assert [request["head"] for request in server.requests] == ["codeagent/issue-12", "codeagent/issue-12-1002"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *(".github/workflows/x.yml", ".GitHub/workflows/x.yml", ".gitlab-ci.yml", "sub/.gitlab-ci.yml", "Jenkinsfile"),
        *(".gitattributes", "docs/CODEOWNERS", ".circleci/config.yml"),
    ],
)
def test_the_files_of_the_ci_are_left_alone(runner: Runner, name: str) -> None:
    finished(runner, {"a.txt": "x", name: "x"})
    with pytest.raises(AssertionError, match=r"Not proposed: it changes"):
        proposed(runner)
    assert runner.forge.requests == [] and runner.forge.git("branch", "--list", "codeagent/*") == ""
    assert f"it changes `{name}`" in runner.forge.comments[0]["body"]


@pytest.mark.slow
def test_the_files_of_the_ci_may_be_allowed(tmp_path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    finished(runner, {".gitlab-ci.yml": "x"})
    machine = Runner.machine
    monkeypatch.setattr(Runner, "machine", lambda self: {**machine(self), "CODEAGENT_ALLOW_CI": "1"})
    assert len(proposed(runner).requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (added("link", "/etc/passwd", "120000"), "`link` is no plain file"),
        (added("../out", "x"), "`git apply` failed"),
        (added(".git/hooks/post-commit", "x"), "`git apply` failed"),
        ("no patch", "`git apply` failed"),
    ],
)
def test_a_patch_that_is_none_is_refused(runner: Runner, patch: str, said: str) -> None:
    finished(runner, {})
    (runner.work / "issue-12" / "changes.patch").write_text(patch)
    with pytest.raises(AssertionError, match="Not proposed"):
        proposed(runner)
    assert said in runner.forge.comments[0]["body"] and runner.forge.requests == []


@pytest.mark.slow
def test_nothing_changed_is_told(runner: Runner) -> None:
    finished(
        runner, {}, solved=False, checked=False, check_exit=None, reason="unchanged", error="It is right already @x"
    )
    server = proposed(runner)
    assert server.requests == []
    assert "**codeagent: not solved:** nothing was changed, `It is right already @x`." in server.comments[0]["body"]
    assert "| not run | 0 | $0.1234 | 0 s | none |" in server.comments[0]["body"]


@pytest.mark.slow
def test_a_job_that_never_ran_is_told(runner: Runner) -> None:
    with pytest.raises(AssertionError):
        proposed(runner)
    assert "**codeagent: it did not run.**" in runner.forge.comments[0]["body"]


@pytest.mark.slow
def test_a_forge_that_takes_no_request_and_one_without_drafts(runner: Runner) -> None:
    finished(runner, {"a.txt": "x"}, solved=False, reason="timeout")
    runner.forge.forbidden = ("/pulls",)
    with pytest.raises(AssertionError):
        proposed(runner)
    assert "Not proposed, but pushed to `codeagent/issue-12`: " in runner.forge.comments[0]["body"]
    inert(runner.forge.comments[0]["body"])
    runner.forge.forbidden, runner.forge.drafts = (), False
    assert len(proposed(runner).requests) == 1


@pytest.mark.slow
def test_its_use_is_told() -> None:
    done = subprocess.run([sys.executable, CI / "propose.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "propose.py task OUT" in done.stderr
