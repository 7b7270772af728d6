"""Chooses how a run goes that needs no model: a file, a skill, a question of trust, texts made before, or work that its
starter gave it.

Not here: how each of them goes (`own_commands.py`, `proving/prove_run.py`, `rewind/rewinding.py`), runs with a model
(`run.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from codeagent_lsp.events.rewind import What
from codeagent_lsp.session.own_commands import Ended, install_own_skill, run_own_file, stage_texts, trust_contents
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.prove_run import minimize, prove
from codeagent_lsp.session.request import RunKind, RunRequest
from codeagent_lsp.session.rewind.rewinding import Runs, rewind
from codeagent_lsp.session.run_parts import RunParts

OwnWork = Callable[[RunParts, RunRequest], Awaitable[Ended]]
"""The work of a run that is about other runs."""


async def own_run(parts: RunParts, request: RunRequest, work: OwnWork | None) -> Ended | None:
    """Do the work of such a run; None for a run that needs a model."""
    if request.kind == "runFile" and request.target is not None:
        return await run_own_file(parts, request.target, request.args)
    if request.kind == "skills.install":
        return await install_own_skill(parts, request)
    if request.kind == "trust":
        return await trust_contents(parts, request)
    if request.rewritten:
        return await stage_texts(parts, request)
    return None if work is None else await work(parts, request)


def trial(kind: RunKind, about: Proposal) -> OwnWork:
    """Return the work that tries the changes of another run."""
    tries = prove if kind == "prove" else minimize
    return lambda parts, request: tries(parts, about)


def going_back(gone: tuple[str, ...], what: What, runs: Runs) -> OwnWork:
    """Return the work that takes back what these runs did."""
    return lambda parts, request: rewind(parts, gone, what, runs)
