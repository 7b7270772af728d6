"""One task from its folder to its result: the function that a worker process or a Ray worker runs.

Not here: where it runs (`local_workers.py`, `command.py`), where its result goes (`results.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.batch.results import Outcome, Reason, TaskResult
from codeagent_lsp.batch.task_file import BatchOptions, Job
from codeagent_lsp.batch.task_place import NoPlace, task_place
from codeagent_lsp.config import Settings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.errors import CodeAgentError, ErrorCode
from codeagent_lsp.language_servers.json_rpc import Refused
from codeagent_lsp.lsp_client.connection import ConnectionLost
from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.messages import Usage
from codeagent_lsp.session.spending import usage_in
from codeagent_lsp.settings_files import read_policy, read_user_settings
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.shadow.environment import scrub_environment
from codeagent_lsp.shadow.process import run_process
from codeagent_lsp.shadow.shell import Command, Finished, Launch, ProcessLimits, approve_none
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.terminal.client import Client
from codeagent_lsp.terminal.options import RunOptions
from codeagent_lsp.terminal.questions import accepted
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots

PATCH, SESSION, SETUP, CHECK = "changes.patch", "session.jsonl", "setup.txt", "check.txt"
_PACKED_BYTES = 1 << 20
# The model could not be used, which says nothing about the agent.
_MODEL_CODES = (ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT, ErrorCode.NOT_FOUND, ErrorCode.PARSE_ERROR)
_SECONDS = 60
_UNCONFIGURED = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
_CHANGED = 1  # git's exit code for "there are differences"
COMMAND_SECONDS = 1800.0
_NAME = "check"


def perform(job: Job, work: Path) -> Outcome:
    """Do a task in a folder of its own below `work`, remove the folder and return the outcome. Blocks; never raises for
    a failing task, which is the outcome's reason.
    """
    return asyncio.run(_perform(job, work))


async def _perform(job: Job, work: Path) -> Outcome:
    started, began = time.time(), time.monotonic()
    task, options = job.task, job.options
    settings = _settings(options)
    blank = TaskResult(
        task.id, task.digest, solved=False, checked=False, started=started, attempts=options.attempts, task=task.task
    )
    try:
        with task_place(task, work) as folder:
            outcome = await _in_folder(blank, job, settings, folder)
    except NoPlace as problem:
        outcome = Outcome(replace(blank, reason="folder", error=str(problem)))
    except (OSError, subprocess.SubprocessError, CodeAgentError) as problem:  # a full disk, above all
        outcome = Outcome(replace(blank, reason="failed", error=f"{type(problem).__name__}: {problem}"))
    named = replace(outcome.result, seconds=round(time.monotonic() - began, 3), model=settings.model.name or "")
    return replace(outcome, result=named)


async def _in_folder(blank: TaskResult, job: Job, settings: Settings, folder: Path) -> Outcome:
    files: dict[str, bytes] = {}
    if job.task.setup:
        try:
            ran = await set_up(job.task.setup, folder)
        except CodeAgentError as error:
            ran = failed(error)
        files[SETUP] = ran.output.encode(errors="replace")
        if not ran.ok:
            return Outcome(replace(blank, reason="setup", error=ran.said), files)
    began = time.monotonic()
    run = await agent_run(job.task.task, folder, job.options, job.task.timeout)
    took = round(time.monotonic() - began, 3)
    # Before the check, which may write into the folder itself.
    patch = await asyncio.to_thread(patch_of, run.written, folder)
    files |= {PATCH: patch.text, **_session(session_file(folder, run.session))}
    result = replace(_of_run(blank, run, patch), run_seconds=took)
    if not job.task.check:
        # Without a check, an end without trouble and with a change is all that can be asked for.
        return Outcome(replace(result, solved=result.reason == ""), files)
    return Outcome(await _with_verdict(result, job, settings, folder, files), files)


async def _with_verdict(
    result: TaskResult, job: Job, settings: Settings, folder: Path, files: dict[str, bytes]
) -> TaskResult:
    """Return the result with the verdict of the check, which counts whatever became of the run."""
    try:
        ran = await check(job.task.check, folder, settings, accept_all=job.options.accept_all)
    except Unisolated as problem:
        return replace(result, reason="unisolated", error=str(problem))
    except CodeAgentError as problem:
        return replace(result, reason="unchecked", error=str(problem))
    files[CHECK] = ran.output.encode(errors="replace")
    judged = replace(result, checked=True, solved=ran.ok, check_exit=ran.code)
    if ran.ok:
        # A passed check makes up for a run that was stopped or late: what it wrote is there.
        return replace(judged, reason="", error="")
    # What went wrong in the run explains a failed check best.
    return judged if judged.reason else replace(judged, reason="check", error=judged.error or ran.said)


def _of_run(blank: TaskResult, run: AgentRun, patch: Patch) -> TaskResult:
    usage = run.usage
    return replace(
        blank,
        reason=_reason(run, patch),
        error=str(run.completed.get("error") or run.error or _why_unfinished(run)),
        status=str(run.completed.get("status") or ""),
        summary=str(run.completed.get("summary") or ""),
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
        files=patch.files,
        added=patch.added,
        removed=patch.removed,
        session=run.session,
    )


def _why_unfinished(run: AgentRun) -> str:
    return "" if run.completed.get("status") == "completed" else str(run.completed.get("summary") or "")


def _reason(run: AgentRun, patch: Patch) -> Reason:
    """Return why the task cannot count as done, as far as the run tells; '' if it was completed."""
    if run.late:
        return "timeout"
    if run.completed.get("stopped_by") == "budget":
        return "budget"
    if run.code in _MODEL_CODES and run.completed.get("status") == "failed":
        return "model"
    match run.completed.get("status"):
        case "completed":
            # A task of a batch asks for a change, and a part of it is not the whole.
            if run.completed.get("outcome") not in (None, "full"):
                return "stopped"
            return "" if patch.files else "unchanged"
        case "stopped" | "waiting":
            return "stopped"
    return "failed"


def _session(content: bytes) -> dict[str, bytes]:
    """Return the file of a session, packed if it is long; none if there is none."""
    if len(content) > _PACKED_BYTES:
        return {f"{SESSION}.gz": gzip.compress(content, 6)}
    return {SESSION: content} if content else {}


def _settings(options: BatchOptions) -> Settings:
    """Return the settings as the server reads them."""
    environment = environment_layer({**os.environ, **options.environment})
    return load(environment, dict(options.settings), policy=read_policy(), user=read_user_settings())[0]


# One run of the agent in a folder, by the same server and client as `codeagent-lsp run`, without a user.


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The end of one agent run: `completed` is its last event (the fields of `run_completed`, {} if it had none),
    `error` why it has none, `code` that of its last error; `late` says that its time was over. `written` are the files
    that it changed, `session` is its session's id. `usage` sums all its model calls, those of all attempts.
    """

    completed: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[FileWrite, ...] = ()
    usage: Usage = Usage()
    session: str = ""
    error: str = ""
    code: str = ""
    late: bool = False


async def agent_run(task: str, folder: Path, options: BatchOptions, seconds: float) -> AgentRun:
    """Run the agent on the task in this folder, with all changes applied, and return how it ended; failures are in the
    result, not raised. It is cancelled after `seconds`.
    """
    # Nobody is there to accept anything; the folder is a copy made for this task.
    settings = {"edits.apply": "auto", **dict(options.settings)}
    run = RunOptions(task, folder, "direct", options.attempts, options.accept_all, settings=tuple(settings.items()))
    face, late, error = _Unattended(accept_all=options.accept_all), asyncio.Event(), ""
    client = Client(run, late, environ={**os.environ, **options.environment})
    timer = asyncio.get_running_loop().call_later(seconds, late.set)
    completed: Mapping[str, Any] | None = None  # the run's own end: its attempts are runs, too
    try:
        completed = await client.run(face)
    except (ConnectionLost, Refused) as problem:
        error = str(problem) or type(problem).__name__
    finally:
        timer.cancel()
    ended = completed or {}
    # A run that came to its own end in the last moment counts as that.
    is_late = late.is_set() and ended.get("status") in (None, "cancelled")
    if not ended and not error and not is_late:
        # The server's last words, such as a message about a wrong setting.
        error = face.said
    return AgentRun(ended, tuple(client.written), face.usage, face.session, error, face.code, late=is_late)


def session_file(folder: Path, session: str) -> bytes:
    """Return the bytes of the recorded session (JSON Lines) of a run in this folder; b'' if there is none or it cannot
    be read.
    """
    try:
        return (workspace_state([str(folder)]) / "sessions" / f"{session}.jsonl").read_bytes() if session else b""
    except OSError:
        return b""


class _Unattended:
    """The `Face` of a run without a user; with `accept_all` every prompt is accepted, else every one is denied."""

    def __init__(self, *, accept_all: bool) -> None:
        self.usage = Usage()
        self.session = self.code = self.said = ""
        self._accept_all = accept_all

    def event(self, event: Mapping[str, Any]) -> None:
        """See `client.Face`."""
        self.session = self.session or str(event.get("session_id") or "")
        match event["type"]:
            case "usage":
                self.usage += usage_in(event)
            case "error":
                self.code = str(event.get("code") or "")
            case "run_completed":  # those of attempts come before the run's own
                self.session = str(event.get("session_id") or self.session)

    def message(self, words: str) -> None:
        """See `client.Face`."""
        self.said = words

    async def choose(self, title: str, choices: tuple[str, ...]) -> str | None:
        """See `client.Face`."""
        return accepted(choices) if self._accept_all else None

    async def decide(self, diff: str) -> None:
        """See `client.Face`."""

    async def ask(self, title: str, detail: str, *, secret: bool) -> str | None:
        """See `client.Face`."""
        return None


# The patch of a task: exactly what was written by the edits of its run, as git reads it.


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch for `git apply` in bytes, the paths of its files relative to the folder, with `/` between their parts,
    and how many lines are added and removed; all empty for no change.
    """

    text: bytes = b""
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0


def patch_of(writes: Iterable[FileWrite], folder: Path) -> Patch:
    """Return one patch of all writes of a run below `folder`: each file, sorted by path, from before its first write to
    after its last; an empty one if they cancel out. Blocks; OSError if git is not installed, ValueError for a path
    outside of the folder.
    """
    first: dict[str, bytes | None] = {}
    last: dict[str, bytes | None] = {}
    root = folder.resolve()
    for write in writes:
        name = Path(os.path.abspath(write.path)).relative_to(root).as_posix()  # noqa: PTH100 - links stay links
        # From before the first write to after the last: what came in between is not in the patch.
        first.setdefault(name, write.before)
        last[name] = write.after
    changed = tuple(name for name in sorted(last) if first[name] != last[name])
    if not changed:
        return Patch()
    with tempfile.TemporaryDirectory(prefix="codeagent-patch-") as place:
        # Laid out anew, not taken from the folder: commands of the agent may have changed that, too.
        for side, texts in (("a", first), ("b", last)):
            _lay(Path(place, side), {name: texts[name] for name in changed})
        text = _diff(place, "--binary")
        counts = [line.split(b"\t")[:2] for line in _diff(place, "--numstat").splitlines()]
    added, removed = (sum(int(count[side]) for count in counts if count[side].isdigit()) for side in (0, 1))
    return Patch(text, changed, added, removed)


def _lay(folder: Path, texts: Mapping[str, bytes | None]) -> None:
    folder.mkdir()
    for name, content in texts.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _diff(place: str, form: str) -> bytes:
    """Return what git says of the folders `a` and `b`, without the settings of this user."""
    command = ("git", "-c", "core.quotePath=true", "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color")
    done = subprocess.run(
        (*command, "--no-prefix", "--no-renames", form, "a", "b"),
        cwd=place,
        # A repository around the temporary folder must not lend its settings and attributes.
        env={**os.environ, **_UNCONFIGURED, "GIT_CEILING_DIRECTORIES": place},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode not in (0, _CHANGED):
        raise OSError(f"git diff: {done.stderr.decode(errors='replace').strip()[:300]}")
    return done.stdout


# The commands of a task: its setup, which is the user's own, and its check, which runs what the agent wrote.


class Unisolated(Exception):
    """Raised if commands cannot be kept from the user's files here, and that was not allowed; the message says why."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The end of a command: whether its exit code was 0, the exit code (-1 if it could not be started), its output, and
    one line on how it ended.
    """

    ok: bool
    code: int
    output: str
    said: str


async def set_up(script: str, folder: Path) -> Ran:
    """Run the setup script of a task in its folder, for at most 1,800 s, without isolation. ToolFailed if it cannot be
    started.
    """
    launch = Launch(("bash", "-c", script), str(folder), scrub_environment(os.environ), "")
    limits = ProcessLimits(seconds=COMMAND_SECONDS, disk_folder=str(folder))
    return _run_command(await run_process(launch, limits, spool_folder=None))


async def check(script: str, folder: Path, settings: Settings, *, accept_all: bool) -> Ran:
    """Run the task's check script in a private view of `folder`, for at most 1,800 s, and return how it ended.
    Unisolated if isolation is incomplete and `accept_all` is False; SettingError or ToolFailed if the script cannot be
    started.
    """
    view = FileView(Roots([str(folder)]), NoBuffers(), NothingStaged())
    environments = Environments(lambda: settings.shell, state_root(), folder.parent)
    try:
        shell = await environments.shell(_NAME, view, Staging(lambda path: None), approve_none)
        if not shell.isolation.complete and not accept_all:
            raise Unisolated(shell.isolation.reason)
        network = settings.shell.allow_network
        command = Command(script, str(folder), seconds=COMMAND_SECONDS, network=network, proposes=False)
        return _run_command((await shell.run(command)).finished)
    finally:
        await environments.close()


def failed(error: CodeAgentError) -> Ran:
    """Return the end of a command that this error kept from starting: exit code -1, with the error's
    English sentence.
    """
    return Ran(ok=False, code=-1, output="", said=str(error))


def _run_command(finished: Finished) -> Ran:
    ok = finished.ending == "exited" and finished.exit_code == 0
    how = f"exit code {finished.exit_code}" if finished.ending == "exited" else f"stopped at a limit: {finished.ending}"
    last = next((line.strip() for line in reversed(finished.output.splitlines()) if line.strip()), "")
    return Ran(ok, finished.exit_code, finished.output, f"{how}. {last}"[:300].strip())
