"""From an issue to a proposed change, in a CI job of GitHub or GitLab; nothing but Python 3.11 and git is needed.

    propose.py task OUT      the event of this job -> OUT/tasks.jsonl, for `codeagent-lsp batch --out OUT/results`
    propose.py propose OUT   OUT/results -> a branch, a pull or merge request, a comment

Both read the event anew. No text of it reaches a shell, a title or a commit; in comments, what comes from outside
stands in code. Only who may write to the repository can start it. `task` needs no right to write, `propose` no model,
so they belong in different jobs. The settings are environment variables: see docs/ci.md of codeagent-lsp.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit, urlunsplit

LABEL = COMMAND = "codeagent"
MOST_TASK, MOST_OUTPUT, SECONDS = 20_000, 3000, 60
WRITERS, DEVELOPER = ("admin", "maintain", "write"), 30
GUARDED = re.compile(
    r"""(.*/)?(
        \.github/.* | \.gitlab/.* | \.gitea/.* | \.forgejo/.* | \.circleci/.* | \.buildkite/.* | \.woodpecker/.*
        | \.gitlab-ci[^/]* | \.(travis|drone|appveyor|cirrus|woodpecker)\.ya?ml | appveyor\.ya?ml | jenkinsfile[^/]*
        | azure-pipelines[^/]* | bitbucket-pipelines\.yml | \.gitmodules | \.gitattributes | codeowners
    )""",
    re.IGNORECASE | re.VERBOSE,
)
REASONS = {
    "folder": "its folder could not be made",
    "setup": "the setup failed",
    "model": "the model could not be used",
    "timeout": "its time was over",
    "budget": "its budget was spent",
    "unchanged": "nothing was changed",
    "stopped": "the agent stopped",
    "check": "the check failed",
    "unchecked": "the check could not run",
    "crash": "its process died",
}


class Refused(Exception):
    """Raised if a change cannot be proposed; the message says why."""


@dataclass(frozen=True)
class Request:
    """What is asked for: the task, the issue it comes from (0 for none), and who asked ('' for who can start jobs)."""

    text: str
    issue: int = 0
    user: str = ""

    @property
    def name(self) -> str:
        """Return the id of the task, which is also the end of its branch."""
        return f"issue-{self.issue}" if self.issue else f"task-{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"


class Forge(Protocol):
    """Port: the server that has the repository. `user` is the name that git gives with its token."""

    user: str
    token: str

    def asked(self) -> Request | None: ...
    def may_write(self, user: str) -> bool: ...
    def propose(self, branch: str, base: str, title: str, body: str, *, draft: bool) -> str: ...
    def comment(self, issue: int, mark: str, body: str) -> None: ...


class GitHub:
    """GitHub, by the variables of its Actions."""

    user = "x-access-token"

    def __init__(self) -> None:
        self.token = os.environ.get("GITHUB_TOKEN", "")
        self._repository = os.environ["GITHUB_REPOSITORY"]
        self._api = Api(f"{os.environ['GITHUB_API_URL']}/repos/{self._repository}", f"Bearer {self.token}")

    def asked(self) -> Request | None:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        issue, user = event.get("issue") or {}, event["sender"]["login"]
        if os.environ["GITHUB_EVENT_NAME"] == "workflow_dispatch":
            return Request(event["inputs"]["task"])
        if not issue or issue.get("pull_request"):
            return None
        if event.get("action") == "labeled" and event["label"]["name"] == LABEL:
            return Request(task_text(issue["title"], issue["body"], ""), issue["number"], user)
        words = command_words((event.get("comment") or {}).get("body")) if event.get("action") == "created" else None
        return (
            None if words is None else Request(task_text(issue["title"], issue["body"], words), issue["number"], user)
        )

    def may_write(self, user: str) -> bool:
        found = self._api.get(f"/collaborators/{quote(user, safe='')}/permission") or {}
        return found.get("permission") in WRITERS

    def propose(self, branch: str, base: str, title: str, body: str, *, draft: bool) -> str:
        head = f"{self._repository.partition('/')[0]}:{branch}"
        open_ones = self._api.get(f"/pulls?state=open&head={quote(head, safe='')}")
        if open_ones:
            return str(self._api.send("PATCH", f"/pulls/{open_ones[0]['number']}", {"body": body})["html_url"])
        values = {"head": branch, "base": base, "title": title, "body": body}
        try:
            return str(self._api.send("POST", "/pulls", {**values, "draft": draft})["html_url"])
        except ApiError as error:
            if not draft or error.status != 422:  # private repositories of free accounts have no drafts
                raise
            return str(self._api.send("POST", "/pulls", values)["html_url"])

    def comment(self, issue: int, mark: str, body: str) -> None:
        for old in self._api.get(f"/issues/{issue}/comments?per_page=100") or []:
            if mark in str(old.get("body")) and (old.get("user") or {}).get("type") == "Bot":
                self._api.send("PATCH", f"/issues/comments/{old['id']}", {"body": body})
                return
        self._api.send("POST", f"/issues/{issue}/comments", {"body": body})


class GitLab:
    """GitLab, by the variables of its CI; the token is one of the project, because a job's own cannot comment."""

    user = "oauth2"

    def __init__(self) -> None:
        self.token = os.environ.get("CODEAGENT_GITLAB_TOKEN", "")
        project = f"{os.environ['CI_API_V4_URL']}/projects/{os.environ['CI_PROJECT_ID']}"
        self._api = Api(project, f"Bearer {self.token}")

    def asked(self) -> Request | None:
        if os.environ.get("CODEAGENT_TASK"):
            return Request(os.environ["CODEAGENT_TASK"], int(os.environ.get("CODEAGENT_ISSUE") or 0))
        payload = os.environ.get("TRIGGER_PAYLOAD")  # the path of what a webhook sent
        event = json.loads(Path(payload).read_text(encoding="utf-8")) if payload else {}
        values = event.get("object_attributes") or {}
        user = str((event.get("user") or {}).get("id") or 0)
        if event.get("object_kind") == "issue" and self._labelled(event):
            return Request(task_text(values["title"], values["description"], ""), values["iid"], user)
        if event.get("object_kind") == "note" and event.get("issue") and not values.get("system"):
            issue, words = event["issue"], command_words(values.get("note"))
            if words is not None:
                return Request(task_text(issue["title"], issue["description"], words), issue["iid"], user)
        return None

    def may_write(self, user: str) -> bool:
        found = self._api.get(f"/members/all/{quote(user, safe='')}") or {}
        return found.get("state") == "active" and found.get("access_level", 0) >= DEVELOPER

    def propose(self, branch: str, base: str, title: str, body: str, *, draft: bool) -> str:
        named = {"title": f"Draft: {title}" if draft else title, "description": body}
        open_ones = self._api.get(f"/merge_requests?state=opened&source_branch={quote(branch, safe='')}")
        if open_ones:
            return str(self._api.send("PUT", f"/merge_requests/{open_ones[0]['iid']}", named)["web_url"])
        values = {"source_branch": branch, "target_branch": base, "remove_source_branch": True, **named}
        return str(self._api.send("POST", "/merge_requests", values)["web_url"])

    def comment(self, issue: int, mark: str, body: str) -> None:
        for old in self._api.get(f"/issues/{issue}/notes?per_page=100") or []:
            if mark in str(old.get("body")) and "bot" in str((old.get("author") or {}).get("username")):
                self._api.send("PUT", f"/issues/{issue}/notes/{old['id']}", {"body": body})
                return
        self._api.send("POST", f"/issues/{issue}/notes", {"body": body})

    @staticmethod
    def _labelled(event: Mapping[str, Any]) -> bool:
        """Return whether this very event set the label."""
        change = (event.get("changes") or {}).get("labels") or {}
        had = {label["title"] for label in change.get("previous") or ()}
        has = {label["title"] for label in change.get("current") or ()}
        return LABEL in has - had


class ApiError(Exception):
    """Raised if the forge refuses a call."""

    def __init__(self, call: str, status: int, said: str) -> None:
        super().__init__(f"{call}: {status} {said}")
        self.status = status


class Api:
    """Calls below one address, with a token that no redirect takes elsewhere."""

    def __init__(self, address: str, authorization: str) -> None:
        self._address = address
        self._headers = {"Authorization": authorization, "Content-Type": "application/json", "User-Agent": COMMAND}
        self._opener = urllib.request.build_opener(_NoRedirect)

    def get(self, path: str) -> Any:
        """Return what is there; None for nothing."""
        try:
            return self.send("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        call = urllib.request.Request(self._address + path, data, self._headers, method=method)  # noqa: S310 - ours
        try:
            with self._opener.open(call, timeout=SECONDS) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise ApiError(f"{method} {path}", error.code, code(error.read(300).decode(errors="replace"))) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def command_words(body: str | None) -> str | None:
    """Return what follows `/codeagent` at the beginning of a comment; None if it does not begin so."""
    found = re.match(rf"/{COMMAND}(?:\s+(.*))?$", (body or "").strip(), re.DOTALL)
    return (found[1] or "").strip() if found else None


def task_text(title: str | None, body: str | None, words: str) -> str:
    """Return the task of an issue, and of a comment on it."""
    parts = (words, title, body)
    return "\n\n".join(part.strip() for part in parts if part and part.strip()).replace("\0", "")[:MOST_TASK]


def write_task(forge: Forge, out: Path) -> int:
    """Write the file of tasks, if there is one and who asked may ask; return the exit code."""
    asked = forge.asked()
    if asked is None:
        print("This event asks for nothing.")
    elif asked.user and not forge.may_write(asked.user):
        print("Not done: who asked may not write to this repository.")
    else:
        out.mkdir(parents=True, exist_ok=True)
        entry = {
            "id": asked.name,
            "repo": os.path.relpath(Path.cwd(), out),
            "commit": git("rev-parse", "HEAD").strip(),
            "task": asked.text,
            "setup": os.environ.get("CODEAGENT_SETUP", ""),
            "check": os.environ.get("CODEAGENT_CHECK", ""),
        }
        (out / "tasks.jsonl").write_text(json.dumps(entry) + "\n", encoding="utf-8")
        tell_job("go", "true")
    return 0


def propose(forge: Forge, out: Path) -> int:
    """Propose what came of the task, and say so where it was asked; return the exit code."""
    asked = forge.asked()
    if asked is None:
        return 0
    folder, link, why = out / "results" / asked.name, "", ""
    result = read_result(folder / "result.json")
    if result and (folder / "changes.patch").is_file() and (folder / "changes.patch").stat().st_size:
        branch = ""
        try:
            branch = push(forge, (folder / "changes.patch").absolute(), asked)
            about = f"For #{asked.issue}.\n\n" if asked.issue else ""
            title = f"{COMMAND}: {f'a proposal for #{asked.issue}' if asked.issue else asked.name}"
            link = forge.propose(branch, base(), title, about + told(result, folder), draft=not result.get("solved"))
        except (Refused, ApiError) as problem:
            why = f"\nNot proposed{f', but pushed to {code(branch)}' if branch else ''}: {problem}.\n"
    mark = f"<!-- {COMMAND} {run_id()} -->"
    proposed = f"\nProposed: {link}\n" if link else why
    body = f"{mark}\n{told(result, folder)}{proposed}\n[Log and report]({run_url()})\n"
    print(f"codeagent: {link or why.strip() or 'nothing to propose'}")  # no line of it begins with words from outside
    if asked.issue:
        forge.comment(asked.issue, mark, body)
    return 0 if result and (link or not why) else 1


def read_result(path: Path) -> dict[str, Any]:
    """Return the result of the task; {} if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def push(forge: Forge, patch: Path, asked: Request) -> str:
    """Commit the patch and push it to a branch of ours, whose name is returned."""
    mail = os.environ.get("CODEAGENT_GIT_EMAIL") or f"{COMMAND}@users.noreply.{urlsplit(run_url()).hostname}"
    name = os.environ.get("CODEAGENT_GIT_NAME") or COMMAND
    who = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", mail))
    }
    git("apply", "--index", "--whitespace=nowarn", "--", str(patch))
    refuse_guarded(git("diff", "--cached", "--raw", "--no-renames", "-z", "HEAD"))
    git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", f"{COMMAND}: {asked.name}", environment=who)
    remote, environment = address(git("remote", "get-url", "origin").strip(), forge)
    branch = f"{COMMAND}/{asked.name}"
    there = git("ls-remote", remote, f"refs/heads/{branch}", environment=environment).partition("\t")[0]
    if there:
        git("fetch", "--quiet", "--no-tags", "--depth=1", remote, f"refs/heads/{branch}", environment=environment)
        by = git("log", "-1", "--format=%ae%n%ce", "FETCH_HEAD").split()  # whoever amends a commit is its committer
        if set(by) != {mail}:  # a person has gone on with it
            branch, there = f"{branch}-{run_id()}", ""
    lease = f"--force-with-lease=refs/heads/{branch}:{there}"
    git("push", "--quiet", "--no-verify", lease, remote, f"HEAD:refs/heads/{branch}", environment=environment)
    return branch


def refuse_guarded(raw: str) -> None:
    """Raise Refused for what is no plain file, and for the files of the CI, unless that is allowed."""
    parts = raw.split("\0")
    for change, name in zip(parts[::2], parts[1::2], strict=False):
        if change.split(" ")[1] not in ("100644", "100755", "000000"):
            raise Refused(f"{code(name)} is no plain file")
        if os.environ.get("CODEAGENT_ALLOW_CI") != "1" and GUARDED.fullmatch(name):
            raise Refused(f"it changes {code(name)}, which the CI or the repository's rules depend on")


def address(origin: str, forge: Forge) -> tuple[str, dict[str, str]]:
    """Return where to push to, without a key in it, and the environment in which git has the key."""
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https"):
        return origin, {}
    host = parts.netloc.rpartition("@")[2]
    basic = base64.b64encode(f"{forge.user}:{forge.token}".encode()).decode()
    values = {"KEY_0": f"http.{parts.scheme}://{host}/.extraHeader", "VALUE_0": f"Authorization: Basic {basic}"}
    environment = {"COUNT": "1", **values}
    return urlunsplit(parts._replace(netloc=host)), {f"GIT_CONFIG_{name}": value for name, value in environment.items()}


def git(*words: str, environment: Mapping[str, str] | None = None) -> str:
    """Run git, which asks nothing, and return what it says. Refused if it fails."""
    whole = {**os.environ, "GIT_TERMINAL_PROMPT": "0", **(environment or {})}
    done = subprocess.run(("git", *words), capture_output=True, env=whole, check=False)
    if done.returncode:
        raise Refused(f"`git {words[0]}` failed: {code(done.stderr.decode(errors='replace'))}")
    return done.stdout.decode(errors="surrogateescape")


def told(result: Mapping[str, Any], folder: Path) -> str:
    """Return what came of the task, in Markdown."""
    if not result:
        return f"**{COMMAND}: it did not run.** The log says why.\n"
    reason = REASONS.get(str(result.get("reason")), "the run failed")
    error = code(str(result.get("error") or ""))
    if result.get("solved"):
        head = "solved.** The check passed." if result.get("checked") else "done.** There was no check."
    else:
        head = f"not solved:** {reason}{f', {error}' if error else ''}."
    cost, exit_code = result.get("cost"), result.get("check_exit")
    tokens = int(result.get("prompt_tokens") or 0) + int(result.get("completion_tokens") or 0)
    files = [code(str(name)) for name in result.get("files") or ()]
    names = ", ".join(files[:10]) + (f" and {len(files) - 10} more" if len(files) > 10 else "")
    cells = (
        "not run" if exit_code is None else f"exit code {int(exit_code)}",
        f"{tokens:,}",
        "not known" if cost is None else f"${float(cost):.4f}",
        f"{float(result.get('seconds') or 0):.0f} s",
        f"+{int(result.get('added') or 0)} −{int(result.get('removed') or 0)} {names}" if files else "none",
    )
    table = f"| Check | Tokens | Cost | Time | Changes |\n| :-- | --: | --: | --: | :-- |\n| {' | '.join(cells)} |\n"
    return f"**{COMMAND}: {head}\n\n{table}{proof(folder / 'check.txt')}"


def proof(path: Path) -> str:
    """Return the end of the check's output as a block of code that can be opened."""
    try:
        output = visible(path.read_bytes()[-MOST_OUTPUT:].decode(errors="replace")).strip()
    except OSError:
        return ""
    output = re.sub("^/", " /", output, flags=re.MULTILINE)  # no quick action of GitLab's
    fence = "`" * max(4, 1 + longest_fence(output))
    return (
        f"\n<details><summary>Output of the check</summary>\n\n{fence}text\n{output}\n{fence}\n\n</details>\n"
        if output
        else ""
    )


def code(value: str, width: int = 200) -> str:
    """Return a text from outside as a code span on one line, in which nothing of it means anything."""
    line = " ".join(visible(value[: 4 * width]).split())[:width].replace("|", "¦")
    fence = "`" * (1 + longest_fence(line))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}" if line else ""


def longest_fence(words: str) -> int:
    return max((len(run) for run in re.findall("`+", words)), default=0)


def visible(words: str) -> str:
    """Return a text with its control and invisible characters shown by their numbers."""
    hidden = (
        char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for char in words
    )
    return "".join(f"<U+{ord(char):04X}>" if is_hidden else char for char, is_hidden in zip(words, hidden, strict=True))


def on_gitlab() -> bool:
    return bool(os.environ.get("GITLAB_CI"))


def base() -> str:
    return os.environ["CI_COMMIT_REF_NAME" if on_gitlab() else "GITHUB_REF_NAME"]


def run_id() -> str:
    return os.environ["CI_PIPELINE_ID" if on_gitlab() else "GITHUB_RUN_ID"]


def run_url() -> str:
    if on_gitlab():
        return os.environ["CI_PIPELINE_URL"]
    return f"{os.environ['GITHUB_SERVER_URL']}/{os.environ['GITHUB_REPOSITORY']}/actions/runs/{run_id()}"


def tell_job(name: str, value: str) -> None:
    """Set an output of this step, where steps have outputs."""
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}={value}\n")


def main() -> int:
    commands = {"task": write_task, "propose": propose}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        print(__doc__, file=sys.stderr)
        return 2
    forge: Forge = GitLab() if on_gitlab() else GitHub()
    return commands[sys.argv[1]](forge, Path(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
