"""Secrets that are recognized by their own form, whatever is around them: PEM private keys (whole, truncated, escaped),
JSON Web Tokens, `Bearer` tokens, the data of a Kubernetes secret; and tokens with a fixed prefix defined by their
provider, one row per format.

A row is the literal prefix and the pattern of the body. Prefixes are found in one search, the body is matched only
there, so a hundred rows cost little. Not here: formats without a prefix, found by name or context (`assignments.py`,
`http_secrets.py`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codeagent_lsp.records.mark import MARK, Mark, lower_in_place, mark_spans, places, replace_matches
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
_PUTTY = re.compile(  # a private key as PuTTY keeps it
    r"(?P<head>^Private-Lines:[ \t]*[0-9]{1,4}[ \t]*\r?\n)"
    r"(?P<value>[A-Za-z0-9+/=]{16,}+(?:\r?\n[A-Za-z0-9+/=]{4,}+)*+)",
    re.MULTILINE,
)
_TAIL = 4096
# Also as a text in another document, with a backslash before each quote.
_Q = r"(?:\\{0,3}[\"'])?"
_KUBERNETES = re.compile(rf"(?:^|[{{,][ \t]*){_Q}kind{_Q}:[ \t]*{_Q}Secret{_Q}[ \t]*(?:[,}}]|\r?$)", re.MULTILINE)
_DATA = re.compile(
    r"^([ \t]{0,8})(?:data|stringData):[ \t]*\r?\n(?P<body>(?:\1[ \t]+\S[^\r\n]*(?:\r?\n|\Z)){1,200})", re.MULTILINE
)
_FLOW = re.compile(rf"{_Q}(?:data|stringData){_Q}:[ \t]*\{{(?P<body>[^{{}}]{{1,65536}})\}}")
_ENTRY_OF_FLOW = re.compile(rf"(?P<head>[\w.-]{{1,80}}{_Q}:[ \t]*{_Q})(?P<value>[^\s\"',{{}}\\]+)")
_ENTRY = re.compile(r"^(?P<head>[ \t]+[\w.-]{1,80}:[ \t]+[\"']?)(?P<value>[^\s\"'|>&][^\s\"']*)", re.MULTILINE)


def mask_blocks(text: str, mark: Mark) -> str:
    """Return `text` with private keys and tokens of a standard form (JWT, Bearer, Kubernetes secrets) masked by `mark`,
    which returns the mark for a secret. Certificates and public keys are kept.
    """
    if "PRIVATE KEY" in text:
        text = _mask_pem(text, mark)
    if "Private-Lines:" in text:
        text = _PUTTY.sub(lambda match: match["head"] + mark(match["value"]), text)
    if "eyJ" in text:
        text = _JWT_PREFIXED.sub(lambda match: mark(match[0]), text)
        text = _JWT.sub(lambda match: _without_dots(match[0], mark), text)
    bearers = places(lower_in_place(text), "bearer")
    text = replace_matches(bearers, text, _BEARER, lambda match: _bearer(match, mark))
    return _mask_kubernetes(text, mark) if "Secret" in text and _KUBERNETES.search(text) else text


def open_block(text: str) -> int:
    """Return the offset, in characters, at which a private key (PEM) begins whose end is not in `text`; -1 if there is
    none.
    """
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
        # Never before the end of the key above: its lines are its own.
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
        entries = _ENTRY if match.re is _DATA else _ENTRY_OF_FLOW
        before, behind = match.start("body") - match.start(), match.end("body") - match.start()
        return match[0][:before] + entries.sub(entry, match["body"]) + match[0][behind:]

    return _FLOW.sub(data, _DATA.sub(data, text))


_W = r"[A-Za-z0-9_-]"  # the most common alphabet
_A = r"[A-Za-z0-9]"
_H = r"[0-9a-f]"


@dataclass(frozen=True, slots=True)
class Format:
    """A token format of a provider: its literal beginning and the pattern of what follows. `checked` says that the
    beginning also occurs in words, so that the rest must look generated.
    """

    beginning: str
    body: re.Pattern[str]
    checked: bool = False


def _formats(body: str, *beginnings: str, checked: bool = False) -> tuple[Format, ...]:
    pattern = re.compile(body)
    return tuple(Format(beginning, pattern, checked) for beginning in beginnings)


FORMATS: tuple[Format, ...] = (
    # models
    *_formats(_W + "{20,}", "sk-", checked=True),  # OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse and more
    *_formats(
        _W + "{24,}", "gsk_", "pplx-", "xai-", "nvapi-", "tvly-", "pcsk_", "csk-", "sk_car_", "e2b_",
        checked=True,
    ),
    *_formats(_A + "{20,}", "hf_", "api_org_", "r8_", "fw_", "tgp_v1_", "jina_", "fc-", "voyage-", checked=True),
    *_formats(_W + "{20,}", "lsv2_pt_", "lsv2_sk_", "sk_live_", "sk_test_", "sk_prod_", "bce-v3/ALTAK-"),
    *_formats("[0-9a-z]{8}-" + _W + "{20,}", "gcp-"),
    # clouds
    *_formats("[A-Z0-9]{16}(?![A-Za-z0-9])", "AKIA", "ASIA", "ABIA", "ACCA", "AROA", "AIDA", "AGPA", "ANPA", "ANVA"),
    *_formats("[A-Za-z0-9]{12,24}(?![A-Za-z0-9])", "LTAI", checked=True),
    *_formats("[A-Za-z0-9]{28,36}(?![A-Za-z0-9])", "AKID", checked=True),
    *_formats(_W + "{28,40}", "AIza", "GOCSPX-", "AQVN"),
    *_formats(r"[A-Za-z0-9_.-]{20,}", "ya29.", "1//0"),
    *_formats(_H + "{40,64}", "dop_v1_", "doo_v1_", "dor_v1_"),
    *_formats(
        r"[A-Za-z0-9_.-]{20,}", "hvs.", "hvb.", "hvr.", "pul-", "HRKU-", "tskey-auth-", "tskey-api-",
        "tskey-client-", checked=True,
    ),
    *_formats(r"[A-Za-z0-9_=-]{10,}\.[A-Za-z0-9_-]{60,}", "t1."),
    *_formats("[A-Z0-9]{20,80}", "AGE-SECRET-KEY-1"),
    *_formats(
        _W + "{20,}", "pscale_tkn_", "pscale_pw_", "pscale_oauth_", "sbp_", "sb_secret_", "nfp_", "vcp_",
        "vck_", "rnd_", "fo1_", "FlyV1 fm2_",
    ),
    *_formats("[A-Za-z0-9_=/+-]{40,}", "fm2_", "ops_"),
    *_formats(
        r"(?:[a-z0-9_-]{1,40}\.)?[A-Za-z0-9]{24,}", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.said.", "dp.scim.",
        "dp.audit.",
    ),
    *_formats(r"(?:u\.)?[A-Za-z0-9_-]{24,}", "sl.", checked=True),  # Dropbox
    # code hosting, packages, delivery
    *_formats(_A + "{36,}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    *_formats("[A-Za-z0-9_]{22,}", "github_pat_"),
    *_formats(
        r"[A-Za-z0-9_.-]{20,}", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-",
        "glagent-", "glffct-", "gloas-", "GR1348941", "_gitlab_session=",
    ),
    *_formats(_A + "{36,}", "npm_"),
    *_formats(_W + "{40,}", "pypi-"),
    *_formats(_H + "{48}", "rubygems_"),
    *_formats("[a-z0-9]{43}(?![A-Za-z0-9])", "oy2"),
    *_formats(_A + "{32}(?![A-Za-z0-9])", "cio", checked=True),
    *_formats(
        _W + "{20,}", "dckr_pat_", "dckr_oat_", "bkua_", "CCIPAT_", "CCIPRJ_", "ATBB", "ATCTT3",
        "sgp_", "glc_", "glsa_", "sntrys_", "sntryu_", "PMAK-", "pnu_", "rdme_", "tfp_", "CFPAT-", "ico-",
        checked=True,
    ),
    *_formats(r"[A-Za-z0-9_-]{20,}(?:=[A-Za-z0-9_-]{1,})?", "ATATT3", checked=True),
    *_formats(_A + "{60,}", "AKCp", "cmVmdGtu"),
    # payment, mail, chat, shops
    *_formats(_A + "{16,}", "rk_live_", "rk_test_", "whsec_", "rk_prod_", "shippo_live_", "shippo_test_"),
    *_formats(
        "[A-Za-z0-9-]{10,}", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-",
        "xapp-", "xoxe.xoxb-", "xoxe.xoxp-",
    ),
    *_formats(_H + "{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    *_formats(_H + "{32}(?![A-Za-z0-9])", "SK", "AC", "key-", "dapi", "sk-us-"),
    *_formats(r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", "SG."),
    *_formats(_H + "{64}-" + _A + "{16}", "xkeysib-", "xsmtpsib-"),
    *_formats(_A + "{8}_" + _A + "{20,32}", "re_"),
    *_formats(_W + "{22,}", "sq0atp-", "sq0csp-", "sq0idp-", "EAAA", checked=True),
    *_formats(_A + "{60,}", "EAA", "EZAK", "EZTK"),
    *_formats(r"(?:sandbox|production|development)-[0-9a-f-]{36}", "access-"),
    # hashes of passwords, by crypt(3) and others
    *_formats(
        r"(?:[\w.=,/+-]{1,80}\$){0,4}[A-Za-z0-9./+=]{22,}", "$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$",
        "$apr1$", "$argon2i$", "$argon2id$", "$argon2d$", "$scrypt$", checked=True,
    ),
    *_formats(  # the same in LDAP and in the files of mail servers
        r"[^\s:\"'<>,;{}]{8,}", "{PLAIN}", "{CLEARTEXT}", "{CRYPT}", "{SHA}", "{SSHA}", "{SHA256}", "{SSHA256}",
        "{SHA512}", "{SSHA512}", "{SMD5}", "{SHA256-CRYPT}", "{SHA512-CRYPT}", "{BLF-CRYPT}", "{ARGON2}", "{ARGON2ID}",
        checked=True,
    ),
    # tools
    *_formats(_A + "{30,}", "lin_api_", "secret_", "PMAT-"),
    *_formats(_A + "{20,}", "ntn_", checked=True),
    *_formats(
        _W + "{20,}", "figd_", "figu_", "NRAK-", "NRJS-", "NRII-", "NRAL-", "phx_", "aio_", "ddp_", "sm_live_",
    ),
    *_formats(_A + r"{14}\.[0-9a-f]{64}", "pat"),
    *_formats(r"[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0c01.", "dt0s01.", "dt0s16."),
    *_formats(r"[A-Za-z0-9_-]{60,80}", "dG9rO", "FLWSECK-", "FLWSECK_TEST-", "A3-"),
)  # fmt: skip

# Formats whose fixed part is in the middle: characters before it, and a pattern from it on.
_MIDDLES = (
    ("Q~", 4, re.compile(r"Q~(?<=[A-Za-z0-9_~.-]{3}[0-9]Q~)[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])")),  # Entra
    (":AA", 8, re.compile(r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{32,35}(?![A-Za-z0-9_-])")),  # Telegram
    (":APA91b", 11, re.compile(r":APA91b(?<=[A-Za-z0-9_-]{11}:APA91b)[A-Za-z0-9_-]{60,}")),  # Firebase messaging
    (".atlasv1.", 14, re.compile(r"\.atlasv1\.(?<=[A-Za-z0-9]{14}\.atlasv1\.)[A-Za-z0-9_=-]{60,70}")),  # Terraform
    ("-us", 32, re.compile(r"-us(?<=[0-9a-f]{32}-us)[0-9]{1,2}(?![0-9A-Za-z])")),  # Mailchimp
)
# Discord: the bot's number in Base64, a time, a signature.
_DISCORD = re.compile(
    r"[MNO](?:(?<![\w.-].)|(?<=\\[nrt].))[A-Za-z0-9_-]{22,27}+\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])",
    re.ASCII,
)


def mask_vendor_tokens(text: str, mark: Mark) -> str:
    """Return `text` with tokens of the known providers' formats, such as `ghp_…` of GitHub, masked by `mark`, which
    returns the mark for a secret.
    """
    spans = _find(_BEGINNING, text)
    if "\\" in text or "%" in text:
        spans += _find(_ESCAPED_BEGINNING, text)
    for middle, before, pattern in _MIDDLES:
        if middle in text:
            spans += [_widen(text, match.start() - before, match.end()) for match in pattern.finditer(text)]
    spans += [match.span() for match in _DISCORD.finditer(text)]
    return mark_spans(text, sorted(spans), mark) if spans else text


def _find(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    position = 0
    for match in pattern.finditer(text):
        start = match.start("beginning")
        if start < position:
            continue
        for item in _BY_HEAD[text[start : start + 2]]:
            if text.startswith(item.beginning, start) and (body := item.body.match(text, start + len(item.beginning))):
                position = max(position, body.end())  # text that does not look like a token contains none either
                if _fits(item, body[0]):
                    spans.append((start, body.end()))
                    break
    return spans


def _fits(item: Format, body: str) -> bool:
    if not item.checked:
        return True
    digits = len(_DIGITS.findall(body[:64]))
    mixed = body.lower() != body and body.upper() != body
    return (digits >= 1 and (mixed or digits >= 3)) or (mixed and "-" not in body and "_" not in body)


def _widen(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return the span extended to the left by up to 4 digits of a number it begins in."""
    first = start
    while first > 0 and first > start - 4 and text[first - 1].isdigit():
        first -= 1
    return first, stop


def _trie(words: Iterable[str]) -> str:
    """Return a pattern that matches any of `words` without backtracking."""
    groups = defaultdict(list)
    for word in words:
        groups[word[:1]].append(word[1:])
    if "" in groups:  # the shortest is enough: the format is looked up later
        return ""
    return "(?:" + "|".join(re.escape(char) + _trie(rest) for char, rest in sorted(groups.items())) + ")"


def _by_head() -> Mapping[str, tuple[Format, ...]]:
    heads = defaultdict(list)
    # The longest first: `sk-us-` begins with `sk-` as well.
    for item in sorted(FORMATS, key=lambda item: -len(item.beginning)):
        heads[item.beginning[:2]].append(item)
    return {head: tuple(items) for head, items in heads.items()}


_DIGITS = re.compile("[0-9]")
_BY_HEAD = _by_head()
_BEGINNINGS = _trie(item.beginning for item in FORMATS)
_BEGINNING = re.compile(f"(?<![A-Za-z0-9])(?P<beginning>{_BEGINNINGS})")
# Behind `\n` or `%3D` a letter or digit stands before the token, where `_BEGINNING` finds none.
_ESCAPED_BEGINNING = re.compile(rf"(?:\\[nrt]|%[0-9A-Fa-f]{{2}})(?P<beginning>{_BEGINNINGS})")
