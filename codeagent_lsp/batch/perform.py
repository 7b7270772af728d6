"""One task from its folder to its result: the function that a worker process or a Ray worker runs.

Not here: where it runs (`local_workers.py`, `ray_cluster.py`), where its result goes (`results.py`).
"""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.batch.agent_run import AgentRun, agent_run, session_file
from codeagent_lsp.batch.options import BatchOptions, Job
from codeagent_lsp.batch.patch_file import Patch, patch_of
from codeagent_lsp.batch.results import Outcome, Reason, TaskResult
from codeagent_lsp.batch.task_commands import Unisolated, check, failed, set_up
from codeagent_lsp.batch.task_place import NoPlace, task_place
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import CodeAgentError, ErrorCode
from codeagent_lsp.policy_file import read_policy
from codeagent_lsp.settings_layers import environment_layer, load

PATCH, SESSION, SETUP, CHECK = "changes.patch", "session.jsonl", "setup.txt", "check.txt"
_PACKED_BYTES = 1 << 20
_MODEL_CODES = (ErrorCode.NETWORK_ERROR, ErrorCode.TIMEOUT, ErrorCode.NOT_FOUND, ErrorCode.PARSE_ERROR)


def perform(job: Job, work: Path) -> Outcome:
    """Do a task in a folder of its own below `work`, and return what came of it; never raises for what it met."""
    return asyncio.run(_performed(job, work))


async def _performed(job: Job, work: Path) -> Outcome:
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
    patch = await asyncio.to_thread(patch_of, run.written, folder)
    files |= {PATCH: patch.text, **_session(session_file(folder, run.session))}
    result = replace(_of_run(blank, run, patch), run_seconds=took)
    if not job.task.check:
        return Outcome(replace(result, solved=result.reason == ""), files)
    return Outcome(await _checked(result, job, settings, folder, files), files)


async def _checked(
    result: TaskResult, job: Job, settings: Settings, folder: Path, files: dict[str, bytes]
) -> TaskResult:
    """Return the result with the verdict of the check, which counts whatever became of the run."""
    try:
        ran = await check(job.task.check, folder, settings, accept_all=job.options.accept_all)
    except (Unisolated, CodeAgentError) as problem:
        return replace(result, reason="unchecked", error=str(problem))
    files[CHECK] = ran.output.encode(errors="replace")
    judged = replace(result, checked=True, solved=ran.ok, check_exit=ran.code)
    if ran.ok:
        return replace(judged, reason="", error="")
    return judged if judged.reason else replace(judged, reason="check", error=judged.error or ran.said)


def _of_run(blank: TaskResult, run: AgentRun, patch: Patch) -> TaskResult:
    usage = run.usage
    return replace(
        blank,
        reason=_reason(run, patch),
        error=str(run.completed.get("error") or run.error or _unfinished(run)),
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


def _unfinished(run: AgentRun) -> str:
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
    return load(environment, dict(options.settings), policy=read_policy())[0]
