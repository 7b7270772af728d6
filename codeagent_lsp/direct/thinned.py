"""Tells a reply that gives a part of the selected code from one that rewrites it: a part has no line that is new, only
lines of the selection and changed ones, and lacks what belongs to the rest, such as the head of a function.

Pure functions. Not here: members and entries that a reply leaves out of a definition (`definitions.py`, `entries.py`),
lines that stand for code (`index/placeholders.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codeagent_lsp.direct.surroundings import begins_definition
from codeagent_lsp.index.comments import comment_of, is_comment_in
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.placeholders import AROUND, filled_lines
from codeagent_lsp.workspace.edits.line_matching import is_telling, likeness, runs_of

_ALIKE = 0.6
"""How alike a changed line is to the one that it was."""
_MUCH = 0.4
"""A reply that lacks this share of the selected lines, and has none that is new, is a part."""
_FEWEST = 3
_AT_THE_TOP = 2  # lines of code
_SEVERAL = 3  # telling lines in a row
_MANY = 8  # lines of a selection that is no piece of a statement
_MOST_PAIRS = 2_000
_ATTRIBUTES = ("@", "#[", "[")
_CALLED = re.compile(r"([\w$]+)\s*(?:<[^<>]*>)?\s*\(")
_NAMES = re.compile(r"[\w$]+")
_LICENCE = re.compile(r"copyright|licen[cs]e|spdx|^#!", re.IGNORECASE)
_TAKES_AWAY = re.compile(
    r"remov|delet|\bdrop|strip|short|simpl|clean|reduc|\btrim|\bless\b|without|\bonly\b|inline|merg|combin|replac|extract"
    r"|mov(?:e|ing)|\buse\b|\busing\b|switch|resolv|enough|enabl|\bno\b|\bnot\b|n't\b|skip|silenc|warning|conflict"
    r"|split|refactor|optimi|concise|compact|minif|unused|unreachable|dead|redundan|duplicat|unnecessar|never|obsolete"
    r"|wrap|flatten|\bearly\b|guard|convert|turn into|rewrite"
    r"|deprecat|undo|revert|tidy|rid of|fewer|not (?:used|accessed|needed)|删|去掉|移除|简化|精简|合并|提取|移动|重构"
    r"|优化|未使用|多余|重复|entfern|lösch|kürz|vereinfach|unbenutzt|supprim|retire|simplifi|inutilis|elimin|quita"
    r"|borra|sin usar",
    re.IGNORECASE,
)
_REPEATS = re.compile(
    r"\b(?:twice|two|both|again|second|another|copy|copies|times|items|rows?|more|each|inside|retry)\b"
    r"|repeat|duplicat|doubl|overload|variant|version|两|重复|再|zwei|doppel|wiederhol|deux|répét|dos veces|repet",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?:option|alternative|version|variant|solution|approach|before|after|original|updated|方案|选项|版本"
    r"|修改前|修改后|原代码|新代码|vorher|nachher|avant|après|antes|después)(?: (?:code|version))?[ #]?\d?",
    re.IGNORECASE,
)

PART = "It left out {line!r} of the selected code. Give all of the selected code, with the change in it."
TWICE = "It gave the code more than once. Answer with one version of the selected code."


def left_away(path: str, selected: str, code: str, request: str) -> str:
    """Return a line of the selection that a reply, which gives only a part of it, leaves out; '' for none, or where
    `request`, the user's words, may ask for less code.
    """
    own, given = filled_lines(selected), filled_lines(code)
    if len(own) < _FEWEST or len(own) <= len(given) or _TAKES_AWAY.search(request):
        return ""
    lost = _lost(own, given)
    if not lost:
        return ""
    code_lost = [number for number in lost if not is_comment_in(path, own[number])]
    named = {_name(line) for line in given if _is_head(line)}
    heads = [at for at in code_lost if _is_head(own[at]) and _name(own[at]) not in named]
    if heads:
        return own[heads[0]]
    if len(lost) >= _MUCH * len(own) and len(code_lost) > 1:
        return own[code_lost[0]]
    gone = set(lost)
    first, last = list(_first(range(len(own)), gone)), list(_first(range(len(own))[::-1], gone))
    if any(_LICENCE.search(own[at]) for at in first):
        return own[first[0]]
    # The head and the end around it, the imports, the statements behind the change.
    if first and last and len(code_lost) > 1:
        return own[first[0]]
    if sum(number in code_lost for number in first) >= _AT_THE_TOP:
        return own[first[0]]
    if len(own) >= _MANY and (behind := next((own[at] for at in last[::-1] if is_telling(own[at])), "")):
        return behind
    # Where there is a grammar, definitions have been looked for.
    return _longest_gap(own, code_lost) if grammar_of(path) is None else ""


def _longest_gap(own: Sequence[str], lost: Sequence[int]) -> str:
    """Return the first of several telling lines that are lost one behind the other; '' for none."""
    begin = count = 0
    for at, number in enumerate(lost):
        if at and number != lost[at - 1] + 1:
            begin = count = 0
        begin = begin if count else number
        count += is_telling(own[number])
        if count >= _SEVERAL:
            return own[begin]
    return ""


def is_doubled(selected: str, code: str, request: str) -> bool:
    """Return whether a reply has more than one version of the selected code: the line that begins its definition, once
    in the selection, several times. False where `request`, the user's words, may ask for two.
    """
    if _REPEATS.search(request):
        return False
    lines, own = filled_lines(code), filled_lines(selected)
    half = len(lines) // 2
    # A statement may come twice, in two branches; of one that is all there is, each is a version.
    twice = half and lines[:half] == lines[half:] and own[: 2 * half] != lines
    if twice and is_telling(lines[0]) and len(lines) > len(own):
        return True
    told = [each.said for line in lines if line not in selected and (each := comment_of(line)) is not None]
    if sum(_VERSION.fullmatch(said.strip(AROUND)) is not None for said in told) > 1:
        return True
    head = next((line for line in own if _is_head(line)), "")
    branched = any(line.startswith(("#if", "#else", "#[cfg", "if ", "else")) for line in lines)
    return bool(head) and not branched and own.count(head) == 1 < lines.count(head) and len(lines) > len(own)


def _is_head(line: str) -> bool:
    return begins_definition(line) and not line.startswith(_ATTRIBUTES)


def _name(line: str) -> str:
    """Return the name that a line which begins a definition most likely defines."""
    called = _CALLED.search(line)
    return called[1] if called is not None else next(reversed(_NAMES.findall(line.partition("=")[0])), "")


def _lost(own: Sequence[str], given: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that are neither kept nor changed; [] where a line comes that is new."""
    lost: list[int] = []
    for run in runs_of(own, given):
        gone = list(range(run.old_start, run.old_end))
        if len(gone) * (run.new_end - run.new_start) > _MOST_PAIRS:
            return []
        for line in given[run.new_start : run.new_end]:
            alike = [(likeness(own[number], line), -number) for number in gone]
            best, number = max(alike, default=(0.0, 0))
            if best < _ALIKE:
                return []
            gone.remove(-number)
        lost += gone
    return lost


def _first(numbers: Sequence[int], lost: set[int]) -> Iterator[int]:
    for number in numbers:
        if number not in lost:
            return
        yield number
