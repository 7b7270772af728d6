"""Secrets of a standard form: PEM private keys (whole, truncated, escaped), JSON Web Tokens, `Bearer` tokens,
the data of a Kubernetes secret."""

from __future__ import annotations

import re

from codeagent_lsp.records.mark import MARK, Mark, lowered, places, replaced
from codeagent_lsp.records.values import looks_random, looks_scrambled

PEM_WINDOW = 16_384

_PEM_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"(?:(?<=\n)[0-9]{1,7}\||[A-Za-z0-9+/=,:\s-]|\\+[nrt/])*+")
_PEM_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}+")
_PEM_TOKENS = re.compile(r"[ \t]*(?:(?:\r?\n|\\+[nr])[ \t]*)*(?:[A-Za-z0-9+/=]+[ \t]*(?:(?:\r?\n|\\+[nr])[ \t]*|\Z)+)+")
_PEM_SIGN = re.compile(r"[A-Z0-9]")
_PEM_LINES = re.compile(r"(?:(?<=\n)[0-9]{1,7}\||[A-Za-z0-9+/=]|\\+[nr]|\s){40,}\Z")
# Its look-behinds stand after `eyJ`: a pattern that begins with a literal is searched for many times faster.
_JWT = re.compile(
    r"eyJ(?:(?<![\w.-]eyJ)|(?<=\\[nrt]eyJ))[\w-]{8,}+\.(?:(?:eyJ)?[\w-]{8,}+(?:\.[\w-]*+){1,3}|eyJ[\w-]{8,}+)", re.ASCII
)
_JWT_PREFIXED = re.compile(r"(?:sk|ops_)\.?eyJ(?<![\w.-]sk\.eyJ)(?<![\w.-]ops_eyJ)[\w.-]{20,}+", re.ASCII)
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr](?:[ \t]{1,4}|%20|\\u0020|\+)([A-Za-z0-9._~+/=|:-]{8,}+)")
_TAIL = 4096
_KUBERNETES = re.compile(r"^kind:[ \t]*[\"']?Secret[\"']?[ \t]*\r?$", re.MULTILINE)
_DATA = re.compile(
    r"^([ \t]{0,8})(?:data|stringData):[ \t]*\r?\n(?P<body>(?:\1[ \t]+\S[^\r\n]*(?:\r?\n|\Z)){1,200})", re.MULTILINE
)
_ENTRY = re.compile(r"^(?P<head>[ \t]+[\w.-]{1,80}:[ \t]+[\"']?)(?P<value>[^\s\"'|>&][^\s\"']*)", re.MULTILINE)


def mask_blocks(text: str, mark: Mark) -> str:
    """Return `text` with private keys and tokens of a standard form masked. Certificates and public keys are kept."""
    if "PRIVATE KEY" in text:
        text = _mask_pem(text, mark)
    if "eyJ" in text:
        text = _JWT_PREFIXED.sub(lambda match: mark(match[0]), text)
        text = _JWT.sub(lambda match: _without_dots(match[0], mark), text)
    bearers = places(lowered(text), "bearer")
    text = replaced(bearers, text, _BEARER, lambda match: _bearer(match, mark))
    return _mask_kubernetes(text, mark) if "Secret" in text and _KUBERNETES.search(text) else text


def open_block(text: str) -> int:
    """Return the offset of a private key's beginning whose end is not in `text`; -1 when there is none."""
    begins = [match.start() for match in _PEM_BEGIN.finditer(text)]
    return begins[-1] if begins and not _PEM_END.search(text, begins[-1]) else -1


def _mask_pem(text: str, mark: Mark) -> str:
    parts, position = [], 0
    another = _PEM_BEGIN.search(text)
    while begin := another:
        another = _PEM_BEGIN.search(text, begin.end())
        # A key that was cut has no end of its own; the next key is not a part of it.
        limit = min(another.start() if another else len(text), begin.end() + PEM_WINDOW)
        end = _PEM_END.search(text, begin.end(), limit)
        body = _PEM_BODY.match(text, begin.end(), limit)
        stop = end.end() if end else (body.end() if body else begin.end())
        cut = end is None and stop < limit
        behind = text[begin.end() : end.start() if end else stop]
        if not _has_key(behind, cut=cut):  # its first line alone, as parsers have it
            parts.append(text[position : begin.end()])
            position = begin.end()
            continue
        block = text[begin.start() : stop]
        kept = block[len(block.rstrip()) :]  # white space behind a cut key belongs to the text
        parts += [text[position : begin.start()], mark(block.rstrip()), kept]
        position = stop
    return _mask_headless("".join((*parts, text[position:])), mark)


def _has_key(body: str, *, cut: bool = False) -> bool:
    """Return whether there is a key behind its first line: lines of Base64, or a long piece of it. `cut`: what follows
    the body is no part of a key, so that its lines alone are none.
    """
    tokens = not cut and _PEM_TOKENS.fullmatch(body) and _PEM_SIGN.search(body)
    return bool(tokens) or any(looks_scrambled(run[0]) for run in _PEM_RUN.finditer(body))


def _mask_headless(text: str, mark: Mark) -> str:
    """Mask private keys whose beginning is missing: the lines before their end."""
    parts, position, before = [], 0, 0
    for end in _PEM_END.finditer(text):
        lines = _PEM_LINES.search(text, max(before, end.start() - _TAIL), end.start())
        if lines and _has_key(lines[0]):
            parts += [text[position : lines.start()], mark(text[lines.start() : end.end()])]
            position = end.end()
        before = end.end()
    return "".join((*parts, text[position:]))


def _without_dots(token: str, mark: Mark) -> str:
    """Return the mark of a token, followed by the token's trailing dots, which belong to the sentence."""
    bare = token.rstrip(".")
    return mark(bare) + token[len(bare) :]


def _bearer(match: re.Match[str], mark: Mark) -> str:
    value = match[1].rstrip(".:")
    if not looks_random(value):
        return match[0]
    return match[0].replace(match[1], mark(value) + match[1][len(value) :])


def _mask_kubernetes(text: str, mark: Mark) -> str:
    """Mask all values of the data of a Kubernetes secret, whatever their names."""

    def entry(match: re.Match[str]) -> str:
        value = match["value"]
        return match[0] if MARK.fullmatch(value) else match["head"] + mark(value)

    def data(match: re.Match[str]) -> str:
        return text[match.start() : match.start("body")] + _ENTRY.sub(entry, match["body"])

    return _DATA.sub(data, text)
