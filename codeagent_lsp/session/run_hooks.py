"""Makes the hooks of one run.

Not here: the hooks (`tools/hooks`), when they are called: before and after a tool (`tools/executor.py`), on the user's
words (`request_words.py`), before a proposal (`proposal.py`, `solving/task_work.py`), at the end (`toolbox.py`).
"""

from __future__ import annotations

from functools import partial

from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import ANSWERS
from codeagent_lsp.session.services import Services
from codeagent_lsp.tools.hooks.hooks import Hooks, OwnView, RunFacts


def hooks_of(session_id: str, services: Services, proposal: Proposal, own_view: OwnView) -> Hooks:
    """Return the hooks of a run; `own_view` is the private view in which they run."""
    mode, record = services.user.mode, proposal.record

    def writes() -> bool:
        return record.kind not in ANSWERS and mode() != "readOnly"

    facts, knowledge = RunFacts(session_id, record.run_id, mode, writes), services.knowledge
    consent, brings = knowledge.consent and knowledge.consent.copy(), partial(knowledge.brought, proposal.view)
    return Hooks(knowledge.hooks, facts, own_view, consent, brings)
