"""The envelope of a quick action's answer: one fenced block with the new code, or `NO CHANGE:` and the reason. Pure.

Nothing else is code: words without a fence, several fences, a diff, words inside the fence, a block that leaves parts
out. Each gets a sentence for the model, which is asked again. Not here: asking (`direct/solver.py`), fitting the code into
the file (`replacement.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.direct.elisions import left_out
from codeagent_lsp.direct.fences import block_mark, parts_of
from codeagent_lsp.workspace.text.lines import with_newlines

NO_CHANGE = "NO CHANGE:"
CUT = "It was cut at its length limit. Give less: only the definitions that change."
NO_FENCE = f"It had no code block. Answer with one fenced code block, or with `{NO_CHANGE}` and the reason."
SEVERAL = "It had several code blocks. Answer with one fenced code block that holds all of the new code."
DIFF = "It was a diff. Answer with one fenced code block that holds the new code itself."
BLOCKS = "It held search and replace blocks. Answer with one fenced code block that holds the new code itself."
WORDS = "Its code block held words, not code. Answer with the new code, or with `NO CHANGE:` and the reason."
ELISION = "It left code out. Give all of the new code, without placeholders."
LEAST_COMMON = 0.3
"""The share of words and signs that a block which reads as prose has in common, at least, with the code it replaces."""

_FENCE = re.compile(
    r"^ {0,3}(?P<marks>```+|~~~+)[^\n`]*\n(?P<body>.*)^ {0,3}(?P=marks)[ \t]*$", re.MULTILINE | re.DOTALL
)
_FENCE_LINE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_DECLINED = re.compile(
    r"\A[\s*_`#>-]*NO[ _]CHANGES?\b[*_`]*\s*[:.\uff1a-]?[*_`]*\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL
)
_DIFF_HEAD = re.compile(r"^(?:@@ -\d|--- \S|\+\+\+ \S|diff --git |\*\*\* (?:Begin|Update) )", re.MULTILINE)
_WORD = re.compile(r"\w+|[^\w\s]")
_PLAIN = re.compile(r"[^\W\d_]{2,}")
_SIGNS = re.compile(r"[=(){}\[\]<>;:_$@#&|\\/+*%^~`\"]|\d")
_LABEL = re.compile(r"^(\s*\w+)\s*[:\uff1a](?=\s)", re.MULTILINE)  # `Error: too many requests`
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COMMENT = re.compile(r"^\s*(?:#|//|--|/\*|\*|<!--|;|%|\"\"\"|''')")


@dataclass(frozen=True, slots=True)
class Envelope:
    """An answer as read: new code, or the reason for none (`declined`), or what is wrong (`problem`, for the model).
    `prose` is what the model says outside of the code.
    """

    code: str | None = None
    prose: str = ""
    declined: str = ""
    problem: str = ""


def read_envelope(reply: str, selected: str) -> Envelope:
    """Read the answer to a request for the new version of `selected`."""
    unified = with_newlines(reply, "\n")
    prose = parts_of(unified).prose
    if not _FENCE_LINE.search(unified):
        return _declined(unified, prose) or Envelope(prose=prose, problem=NO_FENCE)
    code, problem = _fenced(unified, nested=_FENCE_LINE.search(selected) is not None)
    if problem or code is None:
        return Envelope(prose=prose, problem=problem)
    if not code.strip():
        return Envelope(prose=prose, problem=NO_FENCE)
    if refused := _declined(code, prose):
        return refused
    if wrong := _wrong_content(code, selected):
        return Envelope(prose="\n".join(filter(None, (prose, code.strip() if wrong == WORDS else ""))), problem=wrong)
    return Envelope(code, prose)


def grammar(fence: str) -> str:
    """Return a GBNF grammar (llama.cpp) of the code's `fence` (three backticks or more). A reason for no change is not
    in it: small models take that way out where there is much to change, so only a second request offers it.
    """
    starts = " | ".join(
        [*(f'"{"`" * count}" [^`\\n] rest' for count in range(len(fence)) if count), "[^`\\n] rest", '""']
    )
    return "\n".join(
        (
            f'root ::= "{fence}" [a-zA-Z0-9+#-]* "\\n" (line "\\n")+ "{fence}"',
            f"line ::= {starts}",
            "rest ::= [^\\n]*",
        )
    )


def _declined(text: str, prose: str) -> Envelope | None:
    said = _DECLINED.match(text)
    return Envelope(prose=prose, declined=said["reason"].strip() or prose) if said else None


def _wrong_content(code: str, selected: str) -> str:
    """Return what is wrong with the content of a block, for the model; '' for nothing."""
    if (_DIFF_HEAD.search(code) and not _DIFF_HEAD.search(selected)) or _is_signed(code, selected):
        return DIFF
    if block_mark(code) and not block_mark(selected):
        return BLOCKS
    if _is_words(code, selected):
        return WORDS
    return ELISION if left_out(selected, code) else ""


def _is_words(code: str, selected: str) -> bool:
    """Return whether a block holds sentences where it should hold code."""
    said = _LABEL.sub(r"\1 ", code)
    if not selected.strip():
        return _reads_as_prose(said, share=1.0)
    if not _reads_as_prose(said) or _reads_as_prose(selected):
        return False
    own, given = set(_WORD.findall(selected)), set(_WORD.findall(code))
    return len(own & given) < LEAST_COMMON * min(len(own), len(given))


def _reads_as_prose(text: str, share: float = 0.5) -> bool:
    """Return whether at least a share of the lines, comments not counted, are sentences that people would say."""
    lines = [line for line in text.split("\n") if line.strip() and not _COMMENT.match(line)]
    return bool(lines) and sum(map(_is_sentence, lines)) >= share * len(lines)


def _is_sentence(line: str) -> bool:
    words = len(_PLAIN.findall(line)) + len(_IDEOGRAPH.findall(line)) // 2
    return words >= 2 and len(_SIGNS.findall(line)) * 4 <= words


def _fenced(reply: str, *, nested: bool) -> tuple[str | None, str]:
    """Return the code of the only fence, and what is wrong instead. Code that is `nested` has fences of its own."""
    if nested:
        outer = _FENCE.search(reply)
        return (outer["body"], "") if outer else (None, CUT)
    fences = parts_of(reply).fences
    if any(not fence.closed for fence in fences):
        return None, CUT
    if len(fences) != 1:
        return None, SEVERAL if fences else NO_FENCE
    if fences[0].info.split(" ")[0].lower() in ("diff", "patch", "udiff"):
        return None, DIFF
    return fences[0].code, ""


def _is_signed(code: str, selected: str) -> bool:
    """Return whether every line begins with the sign of a diff, where the selection has none."""
    filled = [line for line in code.split("\n") if line.strip()]
    signed = [line for line in filled if line[0] in "+-"]
    own = any(line[:1] in ("+", "-") for line in selected.split("\n"))
    both = {line[0] for line in signed} == {"+", "-"}
    return both and not own and all(line[0] in "+- " for line in filled)
