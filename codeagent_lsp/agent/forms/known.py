"""Answers which answer forms a model is good at: from the store, else by probing the model once, at its first task.

Not here: the probe itself (`form_probe.py`), the file (`proof.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from codeagent_lsp.agent.forms.form import AnswerForm
from codeagent_lsp.agent.forms.proof import BY_SCRIPT, CAPABLE, Proof, ProofStore
from codeagent_lsp.llm.model import Model


class KnownForms:
    """The answer forms of all models of one server; two concurrent tasks probe a model only once."""

    def __init__(self, store: ProofStore) -> None:
        self._store = store
        self._lock = asyncio.Lock()

    async def proof(self, model: Model, on_probe: Callable[[], None]) -> Proof:
        """Return the probe result of a model; `on_probe` is called when it has to be probed first. ModelError when that
        fails.

        A scripted model is not probed: it has nothing to prove, and no replies to spare; nor is a capable one, which
        proves itself at work.
        """
        if model.info.provider == "scripted":
            return BY_SCRIPT
        if model.info.capable:
            return CAPABLE
        async with self._lock:
            known = await asyncio.to_thread(self._store.get, model.info)
            if known is not None:
                return known
            on_probe()
            from codeagent_lsp.agent.forms.form_probe import probe  # late: most models are known

            found = await probe(model)
            await asyncio.to_thread(self._store.keep, model.info, found)
            return found

    async def count(self, model: Model, form: AnswerForm, *, worked: bool) -> None:
        """Record whether a run in this form worked; after several failures in a row the model is probed anew at its
        next task.
        """
        if model.info.provider != "scripted" and not model.info.capable:
            await asyncio.to_thread(self._store.worked if worked else self._store.failed, model.info, form)
