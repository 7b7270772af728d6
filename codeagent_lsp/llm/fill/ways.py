"""The ways in which servers fill in the middle, or go on with a prompt: where to ask, with what body, and the text in
their answers.

llama.cpp's `/infill`, Ollama's `/api/generate`, Mistral's `/v1/fim/completions`, `/v1/completions` with a suffix or the
model's own tokens. Pure. Not here: sending (`open_filler.py`), which ways a server gets (`open_filler.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from codeagent_lsp.llm.endpoint import Endpoint
from codeagent_lsp.llm.fill.edit_formats import EditFormat, EditRequest
from codeagent_lsp.llm.fill.filler import Family, FillRequest, harmless, prompt_of, tokens_of

Body = dict[str, Any]
Request = TypeVar("Request")


@dataclass(frozen=True, slots=True)
class Way(Generic[Request]):
    """One way of asking a server: the `url`, the `body` of a request for a model, and `text`, which returns the text in
    an object of the answer and whether that object is the last. `keeps_model` for servers that load a model again for
    another window; `is_cut` returns whether an object says that the answer reached its limit.
    """

    name: str
    url: Callable[[Endpoint], str]
    body: Callable[[str, Request], Body]
    text: Callable[[Mapping[str, Any]], tuple[str, bool]]
    keeps_model: bool = False
    is_cut: Callable[[Mapping[str, Any]], bool] = lambda chunk: False


def infill(slot: int | None = None) -> Way[FillRequest]:
    """Return the `Way` of llama.cpp's `/infill` endpoint (its server's README), which takes pieces as `input_extra`,
    using the server's slot `slot`, or any slot for None.
    """

    def body(_: str, request: FillRequest) -> Body:
        pieces = [{"filename": piece.path, "text": harmless(piece.text)} for piece in request.pieces]
        return {
            "input_prefix": harmless(request.prefix),
            "input_suffix": harmless(request.suffix),
            "input_extra": pieces,
            # It would come behind the middle token, as the beginning of the answer.
            "prompt": "",
            "n_predict": request.max_tokens,
            "temperature": request.temperature,
            "cache_prompt": True,
            "stream": True,
            "stop": list(request.stop),
            **({} if slot is None else {"id_slot": slot}),
        }

    return Way("infill", lambda where: f"{where.root}/infill", body, _llamacpp_text)


def _ollama_suffix(model: str, request: FillRequest) -> Body:
    return _ollama(model, request, {"prompt": with_comments(request), "suffix": harmless(request.suffix)})


def _suffix(model: str, request: FillRequest) -> Body:
    given = {"prompt": with_comments(request), "suffix": harmless(request.suffix)}
    return {"model": model, **given, **_openai(request)}


OLLAMA = Way(
    "ollama",
    lambda where: f"{where.root}/api/generate",
    _ollama_suffix,
    lambda chunk: _ollama_text(chunk),
    keeps_model=True,
)
SUFFIX = Way("suffix", lambda where: f"{where.api}/completions", _suffix, lambda chunk: _openai_text(chunk))
MISTRAL = Way("mistral", lambda where: f"{where.api}/fim/completions", _suffix, lambda chunk: _openai_text(chunk))


def by_tokens(family: Family) -> Way[FillRequest]:
    """Return the `Way` for servers that complete any prompt (`/v1/completions`), with the family's special tokens in
    it.
    """

    def body(model: str, request: FillRequest) -> Body:
        stops = (*request.stop, *tokens_of(family))[:4]  # OpenAI's limit; the rest is cut from the answer
        return {"model": model, "prompt": prompt_of(family, request), **_openai(request), "stop": list(stops)}

    return Way("tokens", lambda where: f"{where.api}/completions", body, _openai_text)


def ollama_by_tokens(family: Family) -> Way[FillRequest]:
    """Return the `Way` (`/api/generate`) for Ollama and a model whose template has no suffix: the family's tokens in a
    raw prompt.
    """

    def body(model: str, request: FillRequest) -> Body:
        return _ollama(model, request, {"prompt": prompt_of(family, request), "raw": True})

    return Way("ollama-tokens", OLLAMA.url, body, _ollama_text, keeps_model=True)


def rewriting(kind: str, form: EditFormat) -> Way[EditRequest]:
    """Return the `Way` in which a server of this kind (a key of `KINDS`) completes the prompt of a next-edit model:
    raw, or by `/edit/completions` for a format that is a message.
    """
    if form.as_message:
        return Way(
            "edit", lambda at: f"{at.api}/edit/completions", partial(_message, form), _openai_text, is_cut=_is_cut
        )
    if kind == "llamacpp":
        return Way(
            "completion", lambda at: f"{at.root}/completion", partial(_prompt, form), _llamacpp_text, is_cut=_is_cut
        )
    if kind == "ollama":
        return Way("raw", OLLAMA.url, partial(_ollama_raw, form), _ollama_text, keeps_model=True, is_cut=_is_cut)
    return Way("prompt", SUFFIX.url, partial(_openai_prompt, form), _openai_text, is_cut=_is_cut)


def with_comments(request: FillRequest) -> str:
    """Return the prefix with the pieces before it as lines of comment, for servers that take no other files; special
    tokens are broken (`harmless`).
    """
    lines = []
    for piece in request.pieces:
        lines.append(f"{request.comment} {piece.path}:")
        lines += [f"{request.comment} {line}".rstrip() for line in piece.text.splitlines()]
    return harmless("".join(f"{line}\n" for line in lines) + request.prefix)


def _prompt(form: EditFormat, _: str, request: EditRequest) -> Body:
    limits = {"n_predict": request.max_tokens, "temperature": 0.0, "cache_prompt": True, "stop": list(form.stop)}
    return {"prompt": form.prompt(request), "stream": True, **limits}


def _ollama_raw(form: EditFormat, model: str, request: EditRequest) -> Body:
    options = {"num_predict": request.max_tokens, "temperature": 0.0, "stop": list(form.stop)}
    return {"model": model, "prompt": form.prompt(request), "raw": True, "stream": True, "options": options}


def _openai_prompt(form: EditFormat, model: str, request: EditRequest) -> Body:
    limits = {"max_tokens": request.max_tokens, "temperature": 0.0, "stop": list(form.stop[:4])}
    return {"model": model, "prompt": form.prompt(request), "stream": True, **limits}


def _message(form: EditFormat, model: str, request: EditRequest) -> Body:
    return {"model": model, "messages": [{"role": "user", "content": form.prompt(request)}], "stream": True}


def _ollama(model: str, request: FillRequest, given: Body) -> Body:
    options = {"num_predict": request.max_tokens, "temperature": request.temperature, "stop": list(request.stop)}
    return {"model": model, "stream": True, "options": options, **given}


def _openai(request: FillRequest) -> Body:
    stop = {"stop": list(request.stop[:4])} if request.stop else {}
    return {"max_tokens": request.max_tokens, "temperature": request.temperature, "stream": True, **stop}


def _llamacpp_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    return _string(chunk.get("content")), bool(chunk.get("stop"))


def _ollama_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    return _string(chunk.get("response")), bool(chunk.get("done"))


def _openai_text(chunk: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text of a completion's choice, of a stream's `delta` or of a whole `message`, as Mistral has them."""
    choice = _choice(chunk)
    inner = choice.get("delta") or choice.get("message") or {}
    inner_text = inner.get("content") if isinstance(inner, Mapping) else None
    return _string(choice.get("text")) or _string(inner_text), bool(choice.get("finish_reason"))


def _is_cut(chunk: Mapping[str, Any]) -> bool:
    """Return whether an object of any of these servers says that the answer reached its limit."""
    reasons = (_choice(chunk).get("finish_reason"), chunk.get("done_reason"), chunk.get("stop_type"))
    return bool({"length", "limit"} & {str(reason) for reason in reasons} or chunk.get("stopped_limit"))


def _choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = chunk.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
