"""Chooses how a run goes that needs no model: a file or a skill, or trying the changes of another run.

Not here: how each of them goes (`own_commands.py`, `proving/prove_run.py`), runs with a model (`run.py`).
"""

from __future__ import annotations

from codeagent_lsp.session.own_commands import Ended, install_own_skill, run_own_file, stage_texts
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.proving.prove_run import minimize, prove
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import RunParts


async def own_run(parts: RunParts, request: RunRequest, about: Proposal | None) -> Ended | None:
    """Do the work of such a run; None for a run that needs a model."""
    if request.kind == "runFile" and request.target is not None:
        return await run_own_file(parts, request.target, request.args)
    if request.kind == "skills.install":
        return await install_own_skill(parts, request)
    if request.rewritten:
        return stage_texts(parts, request)
    if about is not None:
        return await (prove if request.kind == "prove" else minimize)(parts, about)
    return None
