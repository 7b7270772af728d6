"""Stores which answer forms a model is good at: probed once for each model, kept in the state folder.

A proof is a result that `form_probe.py` made here, else one that ships with the product. Failures in real work are
counted against an entry, so that a wrong one is dropped and the model probed anew. Not here: the probe.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codeagent_lsp.direct import ANSWER_FORMS, AnswerForm
from codeagent_lsp.llm import learned_facts
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.state import json_object, read_json

FILE = "answer_forms.json"
SHIPPED = "known_models.json"
HALF = 0.5
STRIKES = 3
"""Failed runs in a row in one form after which the entry is dropped."""

Source = Literal["shipped", "probed", "setting", "script", "capable"]

# `-q4_k_m.gguf`, `.f16`, `-awq`, `-int4` and all that follows.
_QUANTISED = re.compile(r"[-_.](?:i?q\d\w*|f16|bf16|fp16|fp8|awq|gptq|int[48]|gguf)\b.*$")


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a model in one answer form: `done` of `of` edits were right. Tokens and seconds are those of all
    edits together.
    """

    done: int
    of: int
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> float:
        """The share of edits that were right, from 0 to 1; 0 without any."""
        return self.done / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Proof:
    """A model's scores by answer form. `source` says where they come from: `probed` here, `shipped` with the product,
    or assumed by the `setting`, for a `script` or for a `capable` model. Forms that were not tried are missing.
    """

    scores: Mapping[AnswerForm, Score] = field(default_factory=dict)
    source: Source = "probed"

    @property
    def calls_tools(self) -> bool:
        """Whether all edits by tool calls were right; False if tools were not tried."""
        return self.share("tools") == 1.0

    def has(self, form: AnswerForm) -> bool:
        """Return whether a form may be used: at least half of the edits were right. For `line` one is enough, since
        several lines are asked for and tests decide which one is right.
        """
        score = self.scores.get(form)
        return score is not None and (score.done > 0 if form == "line" else score.share >= HALF)

    def share(self, form: AnswerForm) -> float:
        """Return the share of edits in this form that were right, from 0 to 1; 0 for a form that was not tried."""
        score = self.scores.get(form)
        return score.share if score is not None else 0.0

    def told(self) -> str:
        """Return the scores as one line, such as `tools 3/3, whole 2/3`, in the order in which the forms were tried; ''
        without any.
        """
        return ", ".join(f"{form} {score.done}/{score.of}" for form, score in self.scores.items())


BY_SCRIPT = Proof({"tools": Score(1, 1)}, "script")
CAPABLE = Proof({"tools": Score(1, 1)}, "capable")
"""Of models that are not tried: they work with tools, and in no other form."""


class ProofStore:
    """The proofs of all models, in the file `answer_forms.json` of `folder`. Methods block on the disk; if the folder
    cannot be written, nothing is kept and nothing is raised.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def get(self, info: ModelInfo) -> Proof | None:
        """Return the proof of a model, made here or else shipped with the product; None if it has to be probed."""
        entry = read_json(self._path).get(key_of(info))
        # Also not the shipped proof: this build has failed here.
        if isinstance(entry, dict) and "dropped" in entry:
            return None
        kept = _proof(entry, "probed")
        return kept or _proof(_read_shipped().get(family_of(info.name)), "shipped")

    def named(self, name: str, url: str) -> Proof | None:
        """Return the proof of a model by its name, at an endpoint whose address begins like `url`, or else the one
        shipped for that name; None if there is neither.
        """
        root = url.rstrip("/").removesuffix("/v1")
        known = {key: proof for key, proof in self.entries() if key.startswith(root) or key == name}
        kept = (proof for key, proof in known.items() if key == name or key.endswith(f" {name}"))
        return next(kept, None) or _proof(_read_shipped().get(family_of(name)), "shipped")

    def entries(self) -> list[tuple[str, Proof]]:
        """Return all proofs made on this machine as pairs of the entry's key, as `key_of` returns it, and the proof."""
        found = ((key, _proof(entry, "probed")) for key, entry in read_json(self._path).items())
        return [(key, proof) for key, proof in found if proof is not None]

    def keep(self, info: ModelInfo, proof: Proof) -> None:
        """Store the proof of a model in place of the one before, and clear its count of failures."""
        forms = {form: _plain(score) for form, score in proof.scores.items()}
        learned_facts.remember(self._path, key_of(info), {"forms": forms})

    def failed(self, info: ModelInfo, form: AnswerForm) -> bool:
        """Record a failed run in this form. Return whether that drops the entry (the third failure in a row does), so
        that the model is probed again. Blocks; a disk that cannot be written is no error.
        """
        return self._count(info, form, failed=True)

    def worked(self, info: ModelInfo, form: AnswerForm) -> None:
        """Record a successful run in this form: its count of failures starts at 0 again."""
        self._count(info, form, failed=False)

    def _count(self, info: ModelInfo, form: AnswerForm, *, failed: bool) -> bool:
        key = key_of(info)
        known = read_json(self._path).get(key)
        entry: dict[str, Any] = dict(known) if isinstance(known, dict) else {}
        strikes = dict(entry["strikes"]) if isinstance(entry.get("strikes"), dict) else {}
        before = strikes.get(form, 0)
        # In a row: one run that works clears the strikes.
        count = (before if isinstance(before, int) else 0) + 1 if failed else 0
        # Nothing changes, so nothing is written: most runs work.
        if count == before or (not failed and form not in strikes):
            return False
        dropped = count >= STRIKES
        learned_facts.remember(
            self._path, key, {"dropped": form} if dropped else {**entry, "strikes": {**strikes, form: count}}
        )
        return dropped


def key_of(info: ModelInfo) -> str:
    """Return the key of a model's entry: `URL NAME` of endpoint and model; for the embedded model the name alone, as
    its port changes at every start.
    """
    return info.name if info.provider == "embedded" else f"{info.url} {info.name}"


def family_of(name: str) -> str:
    """Return a model's name in lower case without folders, file endings and quantisation (`org/Qwen3-4B-Q4_K_M.gguf`
    gives `qwen3-4b`): the same for all builds of the same weights.
    """
    plain = name.replace("\\", "/").rpartition("/")[2].lower().replace(":", "-").removesuffix("-latest")
    return _QUANTISED.sub("", plain)


def _read_shipped() -> Mapping[str, Any]:
    from importlib import resources  # late: an idle server reads none

    return json_object(resources.files("codeagent_lsp.direct").joinpath(SHIPPED).read_bytes()) or {}


def _proof(entry: Any, source: Source) -> Proof | None:
    forms = entry.get("forms") if isinstance(entry, Mapping) else None
    if not isinstance(forms, Mapping):
        return None
    scores = {form: score for form in ANSWER_FORMS if (score := _score(forms.get(form))) is not None}
    return Proof(scores, source) if scores else None


def _score(value: Any) -> Score | None:
    if not isinstance(value, list) or len(value) != 5 or not all(isinstance(each, int | float) for each in value):
        return None
    return Score(int(value[0]), int(value[1]), int(value[2]), int(value[3]), float(value[4]))


def _plain(score: Score) -> list[float]:
    return [score.done, score.of, score.prompt_tokens, score.completion_tokens, round(score.seconds, 1)]


# Answers which answer forms a model is good at: from the store, else by probing the model once, at its first task.


class KnownForms:
    """The answer forms of all models of one server, for as long as it runs. Two concurrent tasks probe a model only
    once.
    """

    def __init__(self, store: ProofStore) -> None:
        self._store = store
        self._lock = asyncio.Lock()

    async def proof(self, model: Model, on_probe: Callable[[], None]) -> Proof:
        """Return the proof of a model. If it has none, call `on_probe`, probe it, which may take minutes, and keep the
        result; ModelError if the model cannot be reached. Scripted and capable models are taken to call tools, and
        never probed.
        """
        if model.info.provider == "scripted":
            return BY_SCRIPT
        if model.info.capable:
            return CAPABLE
        # A probe takes up to minutes of a local model: the second task waits for its result.
        async with self._lock:
            known = await asyncio.to_thread(self._store.get, model.info)
            if known is not None:
                return known
            on_probe()
            from codeagent_lsp.direct.form_probe import probe  # late: most models are known

            found = await probe(model)
            await asyncio.to_thread(self._store.keep, model.info, found)
            return found

    async def count(self, model: Model, form: AnswerForm, *, worked: bool) -> None:
        """Record whether a run in this form worked; after three failures in a row the model is probed again at its next
        task. Does nothing for scripted and capable models. The disk is written in a thread, and no error raised.
        """
        if model.info.provider != "scripted" and not model.info.capable:
            await asyncio.to_thread(self._store.worked if worked else self._store.failed, model.info, form)
