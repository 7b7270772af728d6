"""Finds a whole text that is no text of its file but what is said about it or around it: sentences, a diff of the file,
the command or call that would write it, the word that a program prints for a missing value.

One check for all doors by which a whole text comes. A text is judged against the one it replaces, and what that is
itself, the new one may be. Pure functions. Not here: what of a reply or a call is left in a text that is right
otherwise (`wrappings.py`), lines that stand for code (`placeholders.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.comments import comment_of, is_document
from codeagent_lsp.index.grammars import grammar_of, is_source, tree_of

LEAST_WORDS = 6
LEAST_COMMON = 0.3
"""The share of words and signs that a text which reads as prose has in common, at least, with the code it replaces."""

_OTHER = "What is given for {path} is {what}. Give the text of the file itself, from its first to its last line."
_SENTENCES = "words about it"
_DIFF = "a diff"
_COMMAND = "a command that writes it"
_CALL = "a call of a tool"
_VALUE = "{word}, which a program prints for a missing value"

_WORD = re.compile(r"\w+|[^\w\s]")
_PLAIN = re.compile(r"[^\W\d_]{2,}")
_SIGNS = re.compile(r"[=(){}\[\]<>;:_$@#&|\\/+*%^~`\"]|\d")
_SAID = re.compile(r"\A(?![-*]|[\w-]+:\s)[^\n]*(?:\n[^\n]*)*[.!?\u3002\uff01]\Z")
_LABEL = re.compile(r"^(\s*\w+)\s*[:\uff1a](?=\s)", re.MULTILINE)  # `Error: too many requests`
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DOCUMENTED = ('"""', "'''")
_DIFF_START = re.compile(
    r"\s*(?:diff --git \S+ \S+|\*\*\* Begin Patch|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|"
    r"(?:Index: .*\n=+\n)?--- \S.*\n\+\+\+ \S.*\n@@)"
)
_HEREDOC = re.compile(
    r"\s*(?:\$ )?(?:[\w ./-]+ && )*(?:cat|tee|apply_patch|git apply|patch|ed|sudo tee)\b[^\n]*<<-?\s*['\"]?\w+"
)
_VALUES = frozenset(("undefined", "null", "None", "nil", "NaN", "[object Object]", "<content>", "{content}", "NULL"))
_FOR_CALLS = frozenset(
    ("content", "new_str", "old_str", "file_text", "new_string", "old_string", "new_content", "patch")
)
_LOOSE = frozenset(("bash", "ruby", "php"))
"""Languages in which many a sentence is code."""
_DIFFS = frozenset(("diff", "patch", "rej"))
_SHELL = frozenset(("sh", "bash", "zsh", "ksh", "fish", "bats", "command"))
_MARKED = frozenset(("css", "html", "xml", "toml", "ini"))
_DATA = frozenset(("json", "yaml", "yml", "jsonl", "ndjson"))


def refuse_other(path: str, before: str, after: str) -> None:
    """Raise EditRefused if `after`, the whole new text of a file, is no text of such a file: sentences in the place of
    code, a diff, a command or call that writes it, or `undefined`. `before` is '' for a new file.
    """
    if what := other_text(path, before, after):
        raise EditRefused("not_found", _OTHER.format(path=path, what=what))


def other_text(path: str, before: str, after: str) -> str:
    """Return what a text is instead of that of its file, in English; '' if it may be that. `before` is the text that it
    replaces, '' for none.
    """
    given, ending = after.strip(), PurePosixPath(path).suffix[1:].lower()
    language = grammar_of(path)
    code = is_source(path) or language is not None
    # A new file of no known language may have any text.
    if not given or not (before.strip() or code):
        return ""
    if given in _VALUES and given not in before and not (ending in _DATA and _is_scalar(before)):
        return _VALUE.format(word=given)
    # A file of no known kind may be what a program is expected to print.
    known = code or is_document(path) or ending in _DATA or ending in _MARKED
    if known and ending not in _DIFFS and _DIFF_START.match(given) and not _DIFF_START.match(before):
        return _DIFF
    shell = ending in _SHELL or (language is not None and language.name == "bash")
    if code and not shell and _HEREDOC.match(given) and not _HEREDOC.match(before) and "#!" not in given[:2]:
        return _COMMAND
    if code and _is_call(given):
        return _CALL
    if is_document(path) or not (code or ending in _DATA or ending in _MARKED):
        return ""
    strict = language.name not in _LOOSE if language is not None else ending in _MARKED
    if not before.strip() and not (strict and language is not None):
        return ""
    # Elsewhere many a statement reads as a sentence, as in SQL, in shells and in lists, but for its end.
    if not strict and not (_SAID.search(given) and _reads_as_prose(given, share=1.0)):
        return ""
    return _SENTENCES if _says_enough(given) and is_words(path, after, before) else ""


def is_words(path: str, code: str, selected: str) -> bool:
    """Return whether `code`, which is to stand in the file `path` in place of `selected` ('' for nothing), holds
    sentences and no code. What the language of the file can read is no sentence, if it reads few of them.
    """
    said = _LABEL.sub(r"\1 ", code)
    # With nothing to compare, only a text of nothing but sentences is taken for words.
    if not _reads_as_prose(said, share=0.5 if selected.strip() else 1.0):
        return False
    if selected.strip():
        own, given = set(_WORD.findall(selected)), set(_WORD.findall(code))
        if _reads_as_prose(selected) or len(own & given) >= LEAST_COMMON * min(len(own), len(given)):
            return False
    # Last, as it takes the longest, and few texts come so far.
    language = grammar_of(path)
    if language is None or language.name in _LOOSE:
        return True
    return tree_of(language, code.encode("utf-8", "replace")).root_node.has_error


def is_sentence(line: str) -> bool:
    """Return whether a line has at least two words, and hardly a sign of code."""
    # About two characters make a word in Chinese and Japanese.
    words = len(_PLAIN.findall(line)) + len(_IDEOGRAPH.findall(line)) // 2
    return words >= 2 and len(_SIGNS.findall(line)) * 4 <= words


def _reads_as_prose(text: str, share: float = 0.5) -> bool:
    """Return whether at least a share of the lines, comments not counted, are sentences that people would say."""
    lines = [line for line in text.split("\n") if line.strip() and not _is_comment(line.strip())]
    return bool(lines) and sum(map(is_sentence, lines)) >= share * len(lines)


def _is_comment(line: str) -> bool:
    return comment_of(line) is not None or line.startswith(_DOCUMENTED)


def _says_enough(text: str) -> bool:
    """Return whether a text has so many words that it says something about a file; a few may be a draft of it."""
    words = len(_PLAIN.findall(text)) + len(_IDEOGRAPH.findall(text)) // 2
    return words >= LEAST_WORDS or (words > 2 and text.endswith((".", "!", "?", "\u3002", "\uff01")))


def _is_scalar(text: str) -> bool:
    """Return whether data is one value, or empty, of which `null` may take the place."""
    bare = text.strip()
    return bare in ("{}", "[]") or (not bare.startswith(("{", "[")) and "\n" not in bare and ":" not in bare)


def _is_call(text: str) -> bool:
    """Return whether a text is one object of JSON with the arguments of a call that writes a file."""
    if not text.startswith("{") or not any(f'"{name}"' in text for name in _FOR_CALLS):
        return False
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    inner = next((data[key] for key in ("arguments", "input", "parameters") if isinstance(data.get(key), dict)), data)
    return not _FOR_CALLS.isdisjoint(inner)
