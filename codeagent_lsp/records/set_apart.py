"""Secrets that stand apart from their sensitive name: on the next line, inside a bracket, behind a type, URL-quoted.

One pass finds the stems of names with one of these connections behind them; every step is bounded. Not here: a value
right behind the operator (`assignments.py`), the meaning of names (`names.py`).
"""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import MARK, Mark
from codeagent_lsp.records.names import NameKind, kind_of, name_start
from codeagent_lsp.records.values import looks_random, quoted_reveals, repeats

LONGEST = 4096

_Q = r"\\{0,3}[\"']"
_MARGIN = r"(?:[0-9]{1,7}\||[+-])?[ \t]{0,40}"
_NEXT_LINE = rf"[ \t]*\r?\n{_MARGIN}"
_CONNECTIONS = {
    "block": rf"(?:{_Q})?[ \t]{{0,4}}:[ \t]{{1,4}}[|>][+-]?[0-9]?{_NEXT_LINE}",  # YAML: `key: |`
    "tagged": r"[ \t]{0,4}:[ \t]{1,4}(?:&[\w-]{1,40}|![\w!./:-]{0,40})[ \t]{1,4}",  # YAML: `key: !tag value`
    "tripled": rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}[rbfu]?(?:\"\"\"|'''){_NEXT_LINE}",
    "long": r"[ \t]{0,4}=[ \t]{0,4}\[\[",  # Lua: `key = [[value]]`
    "bracket": rf"(?:{_Q})?[ \t]{{0,4}}[:=][ \t]{{0,4}}[(\[]\s{{0,40}}(?P<q1>{_Q})",
    "nested": rf"(?:{_Q})?[ \t]{{0,4}}[:=][ \t]{{0,4}}\{{\s{{0,40}}(?:{_Q})?(?:value|default)(?:{_Q})?\s{{0,4}}[:=]"
    rf"\s{{0,4}}(?P<q2>{_Q})",
    "typed": r"[ \t]{1,4}\*?[A-Za-z][\w.<>]{0,30}[ \t]{1,4}=[ \t]{1,4}(?P<q3>[\"'`])",  # Go: `key string = "value"`
    "set": r"[ \t]{1,4}(?P<q4>\")",  # CMake: `set(KEY "value")`
    "variable": r"\"[ \t]{0,4}\{[^{}]{0,300}?\bdefault[ \t]{0,20}=[ \t]{0,20}(?P<q5>\")",  # Terraform
    "alone": rf"[ \t]{{0,4}}:{_NEXT_LINE}(?=\S{{1,200}}[ \t]*(?:[\r\n]|\Z))",  # a form or a prompt
    "url": r"(?:%22)?(?:%3[dDaA])(?:%20)?(?P<q6>%22)?",
}
_STEM = re.compile(
    r"(?i:pass|pwd|psk|fernet|kennw|secret|token|api[-_.]?key|key|cred)[\w.-]{0,40}?(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, pattern in _CONNECTIONS.items())
    + ")"
)
_ENDS = {
    "block": re.compile(r"[\r\n]"),
    "tagged": re.compile(r"\s"),
    "tripled": re.compile(r"[\r\n]|\"\"\"|'''"),
    "long": re.compile(r"\]\]"),
    "alone": re.compile(r"\s"),
    "url": re.compile(r"%2[26]|[&\s\"'<>]"),
}
_QUOTES = re.compile(r"[\r\n]|\\{0,3}[\"'`]|%22")
_KUBERNETES = re.compile(r"^kind:[ \t]*Secret[ \t]*$", re.MULTILINE)
_DATA = re.compile(
    r"^([ \t]{0,8})(?:data|stringData):[ \t]*\r?\n(?P<body>(?:\1[ \t]+\S[^\r\n]*(?:\r?\n|\Z)){1,200})", re.MULTILINE
)
_ENTRY = re.compile(r"^(?P<head>[ \t]+[\w.-]{1,80}:[ \t]+[\"']?)(?P<value>[^\s\"'|>&][^\s\"']*)", re.MULTILINE)


def mask_set_apart(text: str, mark: Mark) -> str:
    """Return `text` with such values masked."""
    parts, position = [], 0
    for match in _STEM.finditer(text):
        span = _secret(text, match) if match.start() >= position else None
        if span is not None:
            parts += [text[position : span[0]], mark(text[slice(*span)])]
            position = span[1]
    masked = "".join((*parts, text[position:])) if parts else text
    return _mask_kubernetes(masked, mark) if _KUBERNETES.search(masked) else masked


def _secret(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    way = next(name for name in _CONNECTIONS if match[name] is not None)
    begin = name_start(text, match.start())
    name = text[begin : match.start(way)].strip("-.")
    if kind_of(name) is not NameKind.SECRET:
        return None
    if way == "set" and not text[max(0, begin - 8) : begin].lower().rstrip().endswith("set("):
        return None
    start = match.end()
    found = _ENDS.get(way, _QUOTES).search(text, start, start + LONGEST)
    end = found.start() if found else min(len(text), start + LONGEST)
    return (start, end) if _reveals(name, way, text[start:end]) else None


def _reveals(name: str, way: str, value: str) -> bool:
    value = value.strip()
    if MARK.fullmatch(value) or repeats(name, value) or not quoted_reveals(value, sure=True):
        return False
    return looks_random(value) if way in ("alone", "bracket", "typed", "tagged", "url") else True


def _mask_kubernetes(text: str, mark: Mark) -> str:
    """Mask all values of the data of a Kubernetes secret, whatever their names."""

    def entry(match: re.Match[str]) -> str:
        value = match["value"]
        return match[0] if MARK.fullmatch(value) else match["head"] + mark(value)

    def data(match: re.Match[str]) -> str:
        return text[match.start() : match.start("body")] + _ENTRY.sub(entry, match["body"])

    return _DATA.sub(data, text)
