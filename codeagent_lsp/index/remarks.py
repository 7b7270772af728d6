"""What a model says about code in the place of the code or beside it, inside the fence: `Here is the new version:`
before it, an explanation behind it, an apology as a comment.

Pure functions. Not here: whole texts that are sentences (`other_texts.py`), words outside of a fence
(`direct/fences.py`), other things that are left around a text (`wrappings.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.index.comments import comment_of, is_comment_in, is_document
from codeagent_lsp.index.other_texts import is_sentence
from codeagent_lsp.index.placeholders import filled_lines
from codeagent_lsp.workspace.edits.line_matching import is_telling, likeness

_REMARK = re.compile(
    r"(?=.*[a-z\u0430-\u044f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])(?=[^\W\d_a-z]|[*_]{2}\w)"
    r"[^\n=;{}\[\]<>$@\\|]*[.:!?\u3002\uff1a\uff01\uff1f][*_]{0,2}|[^\W\d_]{2,20}!"
)
_LIST_ITEM = re.compile(r"(?:[-*\u2022]|\d{1,2}[.)])\s+\w.*")
_RULE = re.compile(r"(?:-{3,}|\*{3,}|={3,})")
# In many files a sentence may be content: only one that speaks of the answer is none.
_ABOUT_IT = re.compile(
    r"\b(?:here(?:'s| is| are)|below is|above is|this is|hier (?:ist|sind)|voici|aquí está|ecco)\b.{0,40}\b"
    r"(?:code|version|function|method|class|file|script|query|style|neue\w*|geänderte\w*|complete|updated|modified|fixed)"
    r"|\b(?:updated|new|modified|fixed|corrected|refactored|changed|final|complete) (?:code|version|function|method"
    r"|class|file)\b|\bI(?:'ve| have)? (?:changed|updated|added|fixed|made|removed|replaced|modified|rewrote|kept)\b"
    r"|\bhope (?:this|that|it) helps\b|\blet me know\b|^[*_]{0,2}(?:explanation|changes(?: made)?|erklärung|änderungen"
    r"|说明|說明|解释|修改说明|更改)\b"
    r"|\bthis (?:version|change|code) \w+s\b|(?:以下|下面|这)是.{0,12}(?:代码|程式|版本)"
    r"|the (?:code|function|text|result) is now\b",
    re.IGNORECASE,
)
PAGES = (".html", ".htm", ".xml", ".vue", ".svg", ".svelte", ".jsx", ".tsx")
"""Endings of files in which words and elements are content."""
_DATA = (".json", ".yaml", ".yml", ".toml")
_LANGUAGES = frozenset(
    "python py javascript js typescript ts tsx jsx go golang rust java kotlin c cpp c++ csharp cs ruby php swift scala"  # noqa: SIM905
    " lua bash sh shell sql html css json yaml toml xml text plaintext code".split()
)
_MEANT = re.compile(r"TODO|FIX[M]E|nothing|no.?op|removed|deleted|intentional|empty|not needed|disabled", re.IGNORECASE)
_ALIKE = 0.5


def without_remarks(path: str, code: str, selected: str) -> str:
    """Return the code of a reply, which is to take the place of `selected`, without the sentences before and behind it,
    where what is left begins or ends as the selection does. In documents sentences are the text.
    """
    lines = code.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    ends = (lines[filled[0]], lines[filled[-1]]) if filled else ("", "")
    # Most have none, and need no comparison.
    if is_document(path) or not any(_is_about(line, first=line is ends[0]) for line in ends):
        return code
    own = filled_lines(selected)
    if not own:
        return code

    def is_about(at: int, *, first: bool) -> bool:
        line = lines[filled[at]]
        return line.strip() not in known and _is_about(line, first=first)

    known = set(own)
    begin, end = 0, len(filled)
    while begin < len(filled) and is_about(begin, first=True):
        begin += 1
    if begin:
        after = lines[filled[begin]] if begin < len(filled) else ""
        # The word for a language may be a command or an argument: what it begins is the selection's own line.
        word = lines[filled[0]].strip().lower() in _LANGUAGES
        begin = begin if (after.strip() == own[0] if word else _is_like(after, own[0])) else 0
    while end > begin and is_about(end - 1, first=False):
        end -= 1
    # A list or a rule alone may be code; behind a sentence it is a part of what is said.
    said = [lines[number].strip() for number in filled[end:]]
    told = any(_is_remark(line) and _ABOUT_IT.search(line) for line in said) or (
        not path.endswith(_DATA) and all(map(_RULE.fullmatch, said))
    )
    if said and not (end > begin and _is_like(lines[filled[end - 1]], own[-1]) and told):
        end = len(filled)
    if not begin and end == len(filled):
        return code
    return "\n".join(lines[filled[begin] : filled[end - 1] + 1])


def is_remark_alone(path: str, code: str, selected: str) -> bool:
    """Return whether code that is to take the place of several lines holds nothing but a remark: sentences, or comments
    in which none of these lines is kept. What was a comment or a sentence before may be one again.
    """
    lines, own = filled_lines(code), filled_lines(selected)
    if is_document(path) or not lines:
        return False
    if all(is_comment_in(path, line) for line in lines):
        stays = _MEANT.search(code) is not None or any(line in code for line in own if is_telling(line))
        return not stays and not all(is_comment_in(path, line) for line in own)
    is_code = len(own) > 1 or any(sign in own[0] for sign in "=(){};[]")
    return bool(own) and is_code and all(map(_is_remark, lines)) and not any(map(_is_remark, own))


def stands_amid_words(path: str, text: str, start: int, end: int) -> bool:
    """Return whether the characters `start:end` are a part of one line in which any words may stand: of a string, a
    comment, or the text of a page.
    """
    begin = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    before = text[begin:start]
    after = re.split(r"[\r\n]", text[end:], maxsplit=1)[0]
    if "\n" in text[start:end].strip("\r\n"):
        return False
    if is_document(path) or comment_of((before + text[start:end]).strip()) is not None:
        return True
    if any(before.count(quote) % 2 and quote in after for quote in "\"'`"):
        return True
    if any(f" {sign}" in f" {before}" for sign in ("//", "#", "--", "/*")):
        return True
    return path.endswith(PAGES) and before.rpartition("<")[2].count(">") == 1 and "<" in after


def _is_about(line: str, *, first: bool) -> bool:
    """Return whether a line may be said before the code (`first`), or behind it, where a list may follow a sentence."""
    line = line.strip()
    if first:
        return line.lower() in _LANGUAGES or (_is_remark(line) and _ABOUT_IT.search(line) is not None)
    return _is_remark(line) or any(each.fullmatch(line) for each in (_LIST_ITEM, _RULE))


def _is_remark(line: str) -> bool:
    """Return whether a line is a sentence that begins and ends as one."""
    bare = line.strip("*_ ")
    return _REMARK.fullmatch(line) is not None and (is_sentence(bare) or bare.endswith(("!", ":", "：")))


def _is_like(line: str, other: str) -> bool:
    return line.strip() == other or likeness(line.strip(), other) >= _ALIKE
