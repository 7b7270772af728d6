"""Secrets assigned to a sensitive name: `name = value`, `"name": "value"`, `--name value`, `<name>value</name>`.

Behind each sensitive name its value is looked for twice. Right behind an operator or a verb, anything is a secret that
is not a placeholder, a reference or code. Elsewhere in the same statement or sentence, as in `os.getenv("API_KEY",
"…")`, only a value that is certainly generated. Every step is bounded, so the time is linear in the length of the text.
Not here: finding and meaning of names (`names.py`), judgement of values (`values.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from codeagent_lsp.records.given import Given, in_column
from codeagent_lsp.records.literals import LONGEST, MARGIN, Literal, heredoc, is_key, literal
from codeagent_lsp.records.mark import MARK, Mark, mark_spans
from codeagent_lsp.records.names import Name, NameKind, sensitive_names
from codeagent_lsp.records.positions import Behind, before, elsewhere, is_one_of_several
from codeagent_lsp.records.values import (
    LEAST_APART,
    bare_reveals,
    is_hexadecimal_constant,
    is_no_secret,
    is_other_name,
    is_passphrase,
    is_type_of_js,
    looks_chosen,
    looks_generated,
    looks_random,
    looks_scrambled,
    looks_spoken,
    may_hold_scrambled,
    quoted_reveals,
    repeats,
)

MOST_PIECES = 1000  # of a list
DIGITS = 6  # of a token that is a number
HEAD = 400  # characters of a value that are judged
LEAST_PIECE = 12  # characters of a word without quotes
FARTHEST = 240  # characters from a name to a value that does not stand right behind it

# A quote: plain, behind backslashes as in nested JSON, as `\u0022`, of HTML, of a URL.
_Q = r"(?:\\{0,7}[\"'`]|\\u0022|&quot;|%22)"
_NEXT_LINE = rf"\r?\n{MARGIN}?[ \t]{{0,80}}"
# What links a name to its value: an operator, the comma between two quoted texts, `%3D`; the verb of a sentence (`is`,
# `ist`, `est`); a particle of Chinese, Japanese or Korean.
_SIGN = re.compile(
    rf"(?:\[[0-9]{{0,6}}\](?:[ \t][A-Z_]{{3,20}}(?=[ \t]=))?|[ \t][0-9]{{1,3}}(?=:[ \t]))?"
    rf"(?P<close>{_Q}?\]?\*{{0,2}})(?:"
    r"[ \t]{0,40}(?P<sign>=>|->|<-|:=|::|\?\?=|\|\|=|[!?+]?={1,3}|:|：|＝|(?<=[A-Za-z0-9_\"'])>"
    rf"|(?<=[\"'`]),(?=\s{{0,80}}\\{{0,7}}[\"'`])|%3[dDaA](?:%20|\+)?)[ \t]{{0,40}}\*{{0,2}}[ \t]{{0,4}}"
    rf"(?:\\?{_NEXT_LINE}(?={_Q}))?"
    r"|[ \t]{1,4}(?P<verb>(?:is|ist|lautet|lautete|est|es|é|è|jest|är|er|on|to|as|=)(?:[ \t]?[:：])?|—|–)[ \t]{1,4}"
    r"|[ \t]?(?P<particle>(?:设置?|設定|改|换|更新|重置)?(?:是|为|為|成)"
    r"|[はがをに는은이가를을]|(?<=[\u2e80-\uffff])[ \t]?(?=[A-Za-z0-9「『“]))"
    r"[ \t：:]{0,3}"
    r")"
)
_DIRECTIVES = frozenset(("#define", "ENV", "ARG", "setenv", "SetEnv", "setx"))
_MARGIN_SIGNS = re.compile(r"[|:+;'\"-]")
_BLANK = re.compile(r"[ \t]{1,8}(?=[^\s-])")
_NAMED = re.compile(  # `- name: X` and `value: …` on the next line, `key="X" value="…"`
    rf"{_Q}?(?:[\s,]{{1,60}}+|[ \t,]{{0,20}}+\r?\n{MARGIN}[ \t]{{0,40}}+)"
    rf"(?:{_Q}?(?![Vv]alue)[A-Za-z]\w{{0,30}}{_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}?"
    rf"[\w./ -]{{0,80}}{_Q}?,?\s{{1,60}}){{0,2}}"
    rf"{_Q}?(?:\w{{0,12}}[vV]alue|content){_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}"
)
# `2`: the end of `%22`, a quote in a URL.
_BEFORE_NAME = (":", "=", " ", "\t", '"', "'", "`", ";", "2")
_NAME_OF = re.compile(rf"(?:name|key|Name|Key){_Q}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_Q}?\Z")
# The type between a name and its value: `key: &'static str = "…"`.
_ANNOTATION = re.compile(
    r"&?(?:'\w{1,20} )?[A-Za-z_\[][\w.\[\], |:;<>?*&']{0,60}?[ \t]{0,4}=[ \t]{0,4}[*&]?"
    r"(?=[A-Za-z@$]{0,3}#?[\"'`]|concat!)"
)
# Go: `key string = "…"`; Basic: `Key As String = "…"`; C#: `Key { get; } = "…"`; Kotlin: `key by lazy { "…" }`.
_TYPE = re.compile(
    r"[ \t]{1,4}(?:(?:As[ \t])?\*?[A-Za-z][\w.<>]{0,30}[ \t]{1,4}=|\{[ a-z;]{1,60}\}[ \t]{1,4}=|by[ ]lazy[ ]\{)"
    r"[ \t]{1,4}(?=@?[\"'`])"
)
_BLOCK = re.compile(rf"[|>][+-]?[0-9]?[+-]?[ \t]*(?:#[^\n]{{0,80}})?{_NEXT_LINE}")  # YAML: `key: |`
_TAG = re.compile(r"(?:&[\w-]{1,40}|![\w!./:-]{0,40})[ \t]{1,4}")  # YAML: `key: !tag value`
_BRACKET = re.compile(rf"[(\[{{](?:\s|{MARGIN})?\s{{0,80}}(?=[A-Za-z@$]{{0,3}}[\"'`])")
_LIST = re.compile(  # pieces in a bracket, joined by what is called on it or around it
    r"(?:(?P<by>[\"'])[^\"'\n]{0,3}(?P=by)\.join\(|concat!?\("
    r"|(?:implode|join)\([\"']{2}, ?)\s{0,20}[(\[]?\s{0,80}(?=[\"'])"
    r"|[(\[]\s{0,80}(?=[\"'])"
)
_BUILDER = re.compile(r"(?:new[ \t]{1,4})?String(?:Builder|Buffer)\(\)\s{0,40}\.append\([ \t]{0,4}(?=[\"'])")
# What only holds a value: `SecretStr("…")`, `Some(String::from("…"))`, `Buffer.from("…")`.
_HOLDING = re.compile(
    r"(?:(?:new[ \t]{1,4})?(?:\w{1,40}(?:::|\.)){0,3}(?:Secret\w{0,12}|Secure\w{0,12}|String|str|bytes|bytearray|Buffer"
    r"|Password|Some|Ok|from|new|of|ofNullable|strdup)\(\s{0,40}&?){1,3}(?=b?[\"'])"
)
_COMMA = re.compile(r"\s{0,20},\s{0,80}(?=[\"'])")
# An array of characters, or of their numbers: `['a', 'b', …]`, `{0x61, 0x62, …}`.
_CHARACTERS = re.compile(
    r"[^\n\"']{0,60}?[(\[{]\s{0,20}(?P<chars>"
    r"(?P<q>['\"])(?:[^'\"\\\n]|\\.)(?P=q)(?:\s{0,20},\s{0,20}(?P=q)(?:[^'\"\\\n]|\\.)(?P=q)){7,}+"
    r"|(?:0[xX])?[0-9A-Fa-f]{1,3}[uUyY]{0,2}(?:\s{0,20},\s{0,20}(?:0[xX])?[0-9A-Fa-f]{1,3}[uUyY]{0,2}){15,}+)"
)
_SIGNS = r"\s\"'`,;&<>(){}\[\]|\\"
_M = MARK.pattern
# With the marks of earlier layers, which may be a part of the word.
_BARE = re.compile(rf"[^{_SIGNS}]{{0,{LONGEST}}}+(?:{_M}[^{_SIGNS}]{{0,64}}+){{0,8}}+")
_MARKED = re.compile(rf"[\"'`«“「]?{_M}(?![\w@#$%^&*!+/-])")  # masked already, by another layer or before
_REST = re.compile(r"(?:(?!<secret:)[^\s\"'`]){1,256}?(?<=[A-Za-z0-9])(?=[^A-Za-z0-9\s]{0,4}(?:\s|\Z))")
_SPOKEN_QUOTE = re.compile("[«“„「『‹‘][ \u00a0\u202f]?")
_ALSO_OUTSIDE = "\u2e80-\uffff“”„«»‹›‘’"  # of words in prose: letters without blanks between them, quotes
_SPOKEN = re.compile(rf"[^{_SIGNS}{_ALSO_OUTSIDE}]{{0,{LONGEST}}}+")
_REFERENCE = re.compile(
    r"\$?\{[^{}\s]{0,100}\}|\$\([^()\s]{0,100}\)?|<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]|%\([a-z_]{1,40}\)s"
)
_PASSWORD = re.compile(
    r"(?i:password|passwort|passphrase|kennwort|mot de passe|contrase[nñ]a|senha"
    r"|парол[ья]|密[码碼]|口令|パスワード|비밀번호)\Z"
)
# A secret some words behind its name, `the password has been set to …`, or in the markup of a page or a table.
_SAID_LATER = re.compile(
    r"(?:[ \t][^\W\d_]{1,20}+(?=[ \t,:：])){0,8}[,:：]?(?P<told>(?<=[ \t](?:is|es|to))(?=[ \t])|(?<=:))?"
    r"\*{0,2}(?:</\w{1,10}>)?"
    r"[ \t]{0,4}(?:(?:[:→—–|]|-{1,2})[ \t]{0,4})?(?:<\w{1,10}>)?"
    r"(?<=[ \t>])(?:«[ \u00a0\u202f]|[\"'`“„«(]{0,2})(?P<value>[^\s\"'`“”„«»<>|]{8,4096})"
)
# Alone on the line after its name: pasted, fenced, the answer of a program that was asked for it or of a person.
_NEXT_ALONE = re.compile(
    rf"(?:[\"'][\])])?[^\n\"`=;{{}}|]{{0,120}}\r?\n"
    rf"(?:[<*]?\w{{1,20}}[>*]?[ \t][(\[]?\d{{1,2}}:\d{{2}}[)\]]?[ \t]*\r?\n)?"
    rf"(?:{MARGIN})?(?:```\w{{0,12}}[ \t]*\r?\n(?:{MARGIN})?)?[ \t]{{0,40}}"
    r"(?:=>[ \t]|\[?\d{1,2}:\d{2}(?::\d{2})?\]?[ \t]+(?:<?\w{1,20}>?:[ \t]+)?"
    r"|(?:[^\n\"`=;{}|]{0,80}\r?\n){0,2}(?:[Nn]ew|NEW|[Nn]ow|[Nn]eu|[Nn]uev[oa]|新)[ \t]?[:：=][ \t]*)?"
    r"(?P<q>[\"'`]?)(?P<value>[^\s\"'`<>(){}\[\],;]{16,4096}+)(?P=q)[ \t]*(?=\r?\n|\Z)"
)
# Below a name and a user's, as in files that VPNs read: `# user name, then password`.
_BELOW_USER = re.compile(
    r"[^\n\"`=;{}|]{0,40}\r?\n[\w.@+-]{2,60}[ \t]*\r?\n(?P<value>[^\s\"'`<>(){}\[\],;]{12,4096}+)[ \t]*(?=\r?\n|\Z)"
)
_MORE_ALONE = re.compile(
    rf"[ \t]*\r?\n(?:{MARGIN})?[ \t]{{0,40}}(?P<value>[^\s\"'`<>(){{}}\[\],;]{{12,4096}}+)(?=\s|\Z)"
)
_HASH = re.compile(r"[0-9a-f]{32,128}")
_FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)+\.\w{1,5}")
_SAID_NAME = re.compile(rf"{_PASSWORD.pattern}|\A[Pp]ass\Z")
_BEFORE_SAID = frozenset(("", " ", "\t", "<", ":"))
_NO_SENTENCE = frozenset(("(", "[", "{", "<", "|", "\\", "="))
_LINE = re.compile(rf"(?:{_M}|[^\r\n]){{1,{LONGEST}}}")
_WORDS = re.compile(rf"[a-z]+(?: [a-z]+){{1,{LONGEST}}}+(?=[ \t]*(?:\r?\n|\Z))")
_MORE = re.compile(rf"(?:\\{_NEXT_LINE}[^\s\\\"'`]++)+")  # a line that goes on after a backslash
_FOLDED = re.compile(  # lines that are one long word each, as a plain text of YAML is folded
    rf"(?:\r?\n(?:{MARGIN})?[ \t]{{2,80}}+(?=[^\s:]{{16}})[A-Za-z0-9+/=_.~!@$%^*-]{{16,}}+(?=[ \t]*(?:\r?\n|\Z)))++"
)
_LINES = re.compile(rf"[^\r\n]*+(?:\r?\n(?:{MARGIN})?[ \t]{{1,80}}+[^\s:=\"'`]++(?=[ \t]*(?:\r?\n|\Z)))*+")
_DATA_OF_XML = re.compile(r"\s{0,80}(?=<!\[CDATA\[)")
_COMMENT_OF_XML = re.compile(r"\s{0,80}<!--[^<>]{0,400}-->\s{0,80}")
_ENCLOSING = re.compile(r"(?<![=-])>[ \t]*\Z|%3[dDaA]")
_NO_SIGN = frozenset(("", *"().;/#{}@~^"))
"""What follows a name that is given no value."""
_SIGN_OF_TWO = {"&": "qg", "+": "=", "!": "=", "?": "=?", "[": "0123456789]", "%": "32"}
"""Of what follows a name, the signs that give no value unless one of these stands behind them."""
_HEADER = re.compile(r"(?i:(?:set-|proxy-)?(?:cookie2?|authorization))")  # read by `http_secrets.py`
_LINE_MARGIN = re.compile(MARGIN)
# In C: `#define TOKEN_END 0x25`, `#define SECRET(x) …`.
_CONSTANT = re.compile(r"\(|(?:0x[0-9A-Fa-f]{1,8}|[0-9]{1,5})[uUlL]{0,3}(?![\w.])|[A-Za-z_]\w*\(")
_NUMBER_TOKEN = re.compile(r"(?:.*[^A-Za-z])?(?i:token)")
_LINE_START = 200  # characters from a name back to the start of its line
_ENV_LINE = re.compile(r"(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|-[ \t]+|\+[ \t]?|-)?\Z")
_PIECE = re.compile(rf"(?P<mark>{_M})|(?P<quote>(?<![A-Za-z0-9]){_Q})|(?P<bare>[^{_SIGNS}{_ALSO_OUTSIDE}]{{12,}}+)")
_GOES_ON = tuple("([{=:+|?\\>&.")
_CHILD = re.compile(  # YAML: `api_key:`, below it what it is, and its `value` or `default`
    r"[\"']?:[ \t]*(?:#[^\n]{0,80})?"
    rf"(?:\r?\n(?:{MARGIN})?[ \t]{{1,80}}+(?!(?:[Vv]alue|[Dd]efault)\b)[\w-]{{1,40}}:[^\n]{{0,120}}){{0,3}}+"
    rf"\r?\n(?:{MARGIN})?[ \t]{{1,80}}+(?:[Vv]alue|[Dd]efault):[ \t]{{0,4}}"
)
_COMMENT_AT_END = re.compile(r"(?:\A|[ \t])[ \t]*(?:#|//)[ \t][^\n]*\Z|/\*[^*\n]*\*/\s*\Z")
# The names over a table, also as PostgreSQL has them.
_COLUMNS = re.compile(r"[\"']?(?:[,;\t] ?[\"']?\w+[\"']?)*(?:\) (?i:from stdin)\b[^\n]*)?")
_ARGUMENT = re.compile(rf"{_Q}[ \t]*,")
_APART = re.compile(
    rf"(?:\*{{0,2}}[ \t]*[:：]\*{{0,2}}|\*\*)[ \t]*(?:{_NEXT_LINE}){{1,2}}`{{0,3}}|(?P<cell>[ \t]*\|[ \t]*)`?"
)
_BEFORE_APART = frozenset("*: \t|：")
_HOLDS_MORE = re.compile("[ \"'`]")
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_WORD = re.compile(r"[A-Za-z0-9!@#$%^*+~/_.=-]{8,}+")
_Span = tuple[int, int]


class _Piece(NamedTuple):
    """A word, or the content of a literal: its span, the offset behind it, how far a statement must go to have it."""

    first: int
    last: int
    after: int
    least: int
    scrambled: bool = False
    marked: bool = False


class _Place(NamedTuple):
    """What stands between a name and its value: the name, the operator, the offset of the value."""

    name: Name
    sign: str
    value: int
    sure: bool
    spoken: bool = False  # in a sentence
    named: bool = False  # the name is a value itself, as in `name="password" value="…"`


def mask_assignments(text: str, mark: Mark, *, sessions: bool = False) -> str:
    """Return `text` with the secret values of sensitive names replaced by what `mark` returns for them; with
    `sessions`, also those of session and call ids. Takes time linear in the length.
    """
    spans: list[_Span] = []
    position = 0
    finder, behind = _Finder(text), Behind(text)
    for name in sensitive_names(text, sessions=sessions):
        # Before `position`: a word within a secret that was found already.
        if name.start < position or (name.kind is NameKind.SESSION and not sessions) or finder.is_idle(name, behind):
            continue
        # First: `user, password = "bob", "…"` has a value right behind the second name, too, and it is the wrong one.
        if found := [*elsewhere(text, name), *in_column(text, name)]:
            spans += found
            continue
        span = finder.secret(name)
        if span:
            spans.append(span)
            position = span[1]
        # Last: what stands before a name belongs to it only where nothing behind it does.
        elif behind.may_have(name.start):
            spans += before(text, name)
    return mark_spans(text, sorted(spans), mark)


class _Finder:
    """Finds the secret behind a name in one text.

    Remembers how far it has looked in vain, so that names close to one another do not make it look again and again.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._given = Given(text)
        self._run = (0, 0)  # the last word without quotes
        # By whether a value alone on its line counts: a word that may be one, and how far words are judged.
        self._promised = {True: (-1, -1), False: (-1, -1)}
        self._seen: dict[int, _Piece | None] = {}  # the first piece behind an offset
        self._plain: dict[int, int] = {}  # how far there are only pieces that are no secret

    def is_idle(self, name: Name, behind: Behind) -> bool:
        """Return whether nothing around a name can give it a value: no operator, no word near that may be a secret, no
        neighbour with which it is assigned. Code is full of such names, so this has to be cheap.
        """
        text, end = self._text, name.end
        after = text[end : end + 1]
        if after not in _NO_SIGN and (after not in _SIGN_OF_TWO or text[end + 1 : end + 2] in _SIGN_OF_TWO[after]):
            return False
        if name.kind is NameKind.LOOKS:
            return True
        if after == ";" and text[name.start - 1 : name.start] in (";", "\n"):  # in the heading of a table
            return False
        if after in _BEFORE_SAID and self._secret_in_words(name):
            return False
        around = text[max(0, name.start - 8) : name.start]
        if "ame" in around or "ey" in around or "," in around[-3:]:
            return False
        if behind.may_have(name.start) or self._given.may_be(name):
            return False
        return not self._promises(end, min(len(text), end + FARTHEST), alone=False)

    def secret(self, name: Name) -> _Span | None:
        """Return the span of the secret behind a name; None when there is none."""
        start, end = self._run
        if start < name.start < end and end - start > HEAD:  # within a long word that is no secret
            return None
        if _is_header(name.text):
            return None
        place = self._place(name)
        if place is not None and _MARKED.match(self._text, place.value):
            return None
        # Behind the `=` stands the value of the first of the names; that of this one was looked for by `elsewhere`.
        if place is not None and "=" in place.sign and is_one_of_several(self._text, name):
            return None
        if place is not None:
            span = self._direct(place)
            if span and self._counts(place, span):
                return span
            # An earlier layer has masked it; anything further on belongs to something else.
            if span and MARK.fullmatch(self._text, *span):
                return None
        if told := self._sentence_password(name, beside=place is None and name.kind is NameKind.SECRET):
            return told
        # Nothing right behind the name, so it may be a call or a mapping further on in the statement.
        if name.kind in (NameKind.SECRET, NameKind.PERHAPS):
            near = self._near(name, place.value if place else name.end)
            given = near or self._given.secret(name, lambda: self._statement_end(name, name.end))
            return given or self._on_next_line(name)
        # `API_KEYS = {"alice": "…"}`: what a mapping of several holds.
        if (
            name.kind is NameKind.LOOKS
            and place is not None
            and self._text[place.value : place.value + 1] in ("{", "[")
        ):
            return self._near(name, place.value)
        return None

    def _place(self, name: Name) -> _Place | None:
        text, sure = self._text, name.kind is NameKind.SECRET
        after = text[name.end : name.end + 1]
        # Most names end here, before any pattern runs.
        if after in _NO_SIGN:
            return None
        before = text[max(0, name.start - 40) : name.start]
        if after == "-" and before.endswith("${"):
            return _Place(name, "=", name.end + 1, sure)
        if blank := _BLANK.match(text, name.end):
            if name.text.startswith("-"):
                sure = sure or (name.text.startswith("--") and "token" in name.text.lower())
                return _Place(name, "=", blank.end(), sure)
            if word := _directive(before):
                constant = word == "#define" and _CONSTANT.match(text, blank.end())
                return None if constant else _Place(name, "=", blank.end(), sure)
            if typed := _TYPE.match(text, name.end):
                return _Place(name, "=", typed.end(), sure)
        if before.endswith(_BEFORE_NAME) and _NAME_OF.search(before[-16:]) and (named := _NAMED.match(text, name.end)):
            return _Place(name, "=", named.end(), sure, named=True)
        if after in ":\"'" and (child := _CHILD.match(text, name.end)):
            return _Place(name, "=", child.end(), sure=False, named=True)
        sign = _SIGN.match(text, name.end) if after not in "\r\n," else None
        if sign is None:
            return None
        operator = sign["sign"] or ""
        # A comma only says that both stand in one row, which may be a list of names.
        return _Place(name, sign[0], sign.end(), sure and operator != ",", spoken=not operator)

    def _counts(self, place: _Place, span: _Span) -> bool:
        value = self._text[span[0] : min(span[1], span[0] + HEAD)]
        name = place.name.text
        # `password = password`, `token: string`: the word says what it is, not what it is worth.
        if MARK.fullmatch(value) or repeats(name, value) or is_type_of_js(value, place.sign):
            return False
        if is_no_secret(name, value):
            return False
        # In the environment it is a secret, also by `os.environ["A_KEY"] = …`, in code any constant.
        environment = place.sign == "=" or ("]" in place.sign and place.sign.rstrip().endswith("="))
        if place.name.kind is NameKind.LOOKS and name.isupper() and name.endswith("KEY") and not environment:
            return False
        if place.name.kind is NameKind.LOOKS and _FILE.fullmatch(value):
            return False
        return place.name.kind is not NameKind.LOOKS or (looks_generated(value) and looks_scrambled(value))

    def _direct(self, place: _Place) -> _Span | None:
        """Return the span of the value right behind the operator."""
        text, start = self._text, place.value
        if place.spoken:
            return self._spoken(start)
        if _ENCLOSING.search(place.sign):
            return self._span_in_element(place)
        # Only behind a colon can a type, a block or a tag of YAML stand before the value.
        if ":" in place.sign or place.named:
            if annotation := _ANNOTATION.match(text, start):
                start = annotation.end()
            elif block := _BLOCK.match(text, start):
                return self._lines(block.end(), place)
            elif tag := _TAG.match(text, start):
                start = tag.end()
        if place.name.kind is NameKind.SECRET and (pieces := self._list(start)):
            return pieces
        if builder := _BUILDER.match(text, start):
            start = builder.end()
        if found := literal(text, start):
            return None if self._closes(place, found) else _quoted_span(found, place)
        holding = _HOLDING.match(text, start)
        if holding and place.sure and (found := literal(text, holding.end())) and looks_random(found.value):
            return found.start, found.end
        kind = place.name.kind
        if kind in (NameKind.SECRET, NameKind.PERHAPS) and (bracketed := self._span_in_brackets(start, kind)):
            return bracketed
        if (document := heredoc(text, start)) and looks_random(document.value):
            return document.start, document.end
        return self._bare_span(place, start)

    def _spoken(self, start: int) -> _Span | None:
        if mark := _SPOKEN_QUOTE.match(self._text, start):
            start = mark.end()
        found = literal(self._text, start)
        span = (found.start, found.end) if found else _without_punctuation(self._text, self._bare(_SPOKEN, start))
        return span if looks_random(self._text[slice(*span)], least=6) else None

    def _sentence_password(self, name: Name, *, beside: bool) -> _Span | None:
        """Return the span of a password that a sentence tells: some words behind its name one that is nothing else;
        right beside it, as in `use the password …`, also one that may be a word.
        """
        text = self._text
        if said := self._secret_in_words(name):
            return said
        blank = _BLANK.match(text, name.end) if beside else None
        if blank is None or not _PASSWORD.search(name.text):
            return None
        if mark := _SPOKEN_QUOTE.match(text, blank.end()):
            blank = mark
        span = _without_punctuation(text, self._bare(_SPOKEN, blank.end()))
        after = text[span[1] : span[1] + 1]
        return span if after not in _NO_SENTENCE and looks_spoken(text[slice(*span)]) else None

    def _secret_in_words(self, name: Name) -> _Span | None:
        """Return the span of a secret some words behind its name, that is nothing else."""
        password = _SAID_NAME.search(name.text)
        sure = password or name.kind is NameKind.SECRET
        later = _SAID_LATER.match(self._text, name.end) if sure or name.text == "PAT" else None
        if later is None:
            return None
        first, last = _without_punctuation(self._text, later.span("value"))
        value = self._text[first:last].rstrip(",;)")
        spoken = later["told"] is not None and looks_spoken(value) and not is_no_secret(name.text, value)
        alone = looks_scrambled(value) and _stands_alone(self._text, name.start)
        said = spoken or (password and (looks_chosen(value) or alone))
        return (first, first + len(value)) if said else None

    def _on_next_line(self, name: Name) -> _Span | None:
        """Return the span of a scrambled value that is all there is on the line after the name; of a name that may be
        one of a secret, not that of a hash.
        """
        found = _NEXT_ALONE.match(self._text, name.end)
        if found is None or not looks_scrambled(found["value"]):
            found = _BELOW_USER.match(self._text, name.end)
        if found is None or not looks_scrambled(found["value"]):
            return None
        if name.kind is not NameKind.SECRET and _HASH.fullmatch(found["value"]):
            return None
        first, end = found.span("value")
        while (more := _MORE_ALONE.match(self._text, end)) and looks_scrambled(more["value"]):  # as backup codes are
            end = more.end()
        return first, end

    def _closes(self, place: _Place, found: Literal) -> bool:
        """Return whether the quote after an operator closes the string around the name, as in `prompt="Password: "`."""
        quote = self._text[place.value : place.value + 1]
        if place.named or quote not in "\"'`" or quote in place.sign or found.start != place.value + 1:
            return False
        begin = max(0, place.name.start - _LINE_START)
        line = self._text[begin : place.name.start].rpartition("\n")[2]
        # After an odd number of quotes, the name stands inside a string.
        return line.endswith(quote) or (quote == '"' and line.count('"') % 2 == 1)

    def _span_in_brackets(self, start: int, kind: NameKind) -> _Span | None:
        """Return the span of a text in a bracket, of the characters of an array, or of a heredoc."""
        text = self._text
        if (document := heredoc(text, start)) and quoted_reveals(document.value, sure=True):
            return document.start, document.end
        bracket = _BRACKET.match(text, start)
        found = literal(text, bracket.end()) if bracket else None
        sure = kind is NameKind.SECRET
        judge = looks_scrambled if found and is_key(text, found) else looks_random if sure else looks_generated
        if found and judge(found.value) and " " not in found.value:
            return found.start, found.end
        if sure and (array := _CHARACTERS.match(text, start)):
            edge = 1 if array["q"] else 0
            return array.start("chars") + edge, array.end("chars") - edge
        return None

    def _list(self, start: int) -> _Span | None:
        """Return the span of the pieces of a list that is joined."""
        text = self._text
        head = _LIST.match(text, start)
        if head is None:
            return None
        first = literal(text, head.end())
        last, values = first, [first.value] if first else []
        while (
            last
            and len(values) < MOST_PIECES
            and (comma := _COMMA.match(text, last.after))
            and (another := literal(text, comma.end()))
        ):
            last = another
            values.append(last.value)
        if first is None or last is None or len(values) < 2:
            return None
        joins = "join" in head[0] or "concat" in head[0] or "join" in text[last.after : last.after + 8]
        return (first.start, last.end) if joins and looks_random("".join(values)) else None

    def _lines(self, start: int, place: _Place) -> _Span | None:
        """Return the span of the lines of a block, as far as each of them is a word."""
        found = _LINES.match(self._text, start, start + LONGEST)
        value = re.sub(rf"\s*\n(?:{MARGIN})?\s*", "", found[0]).strip() if found else ""
        if found is None or not quoted_reveals(value, sure=place.sure):
            return None
        return start, start + len(found[0].rstrip())

    def _span_in_element(self, place: _Place) -> _Span | None:
        """Return the span of the content of an XML element, or of a value that is written for a URL."""
        text, start = self._text, place.value
        if "%3" in place.sign:
            found = re.compile(r"(?:%22)?(?P<value>(?:(?!%2[26])[^&\s\"'<>]){1,65536}+)").match(text, start)
            return found.span("value") if found and looks_random(found["value"]) and place.sure else None
        # `<password>`, `<ns:password>`, or the attribute in `name="password">`.
        if text[max(0, place.name.start - 1) : place.name.start] not in ("<", ":", '"', "'"):
            return None
        if inside := _DATA_OF_XML.match(text, start):
            start = inside.end()
        if data := literal(text, start) if inside else None:
            return (data.start, data.end) if quoted_reveals(data.value, sure=place.sure) else None
        if comment := _COMMENT_OF_XML.match(text, start):
            start = comment.end()
        end = text.find("<", start, start + LONGEST)
        value = text[start:end].strip() if end >= 0 and text.startswith("</", end) else ""
        if not quoted_reveals(value, sure=place.sure) or (place.sign.strip() != ">" and not looks_random(value)):
            return None
        start += len(text[start:end]) - len(text[start:end].lstrip())
        return start, start + len(value)

    def _bare(self, pattern: re.Pattern[str], start: int) -> _Span:
        """Return the span of the word at an offset; the end of a long one is looked for once."""
        if self._run[0] <= start < self._run[1]:
            return start, self._run[1]
        found = pattern.match(self._text, start)
        self._run = (start, found.end() if found else start)
        return self._run

    def _bare_span(self, place: _Place, start: int) -> _Span | None:
        text = self._text
        # `${TOKEN}`, `<your key>`: where a value comes from, or is to be put.
        if _REFERENCE.match(text, start):
            return None
        name = place.name
        alone = _stands_alone(text, name.start)
        if alone and place.sure and (phrase := _WORDS.match(text, start)) and is_passphrase(phrase[0], LEAST_APART):
            return phrase.span()
        # Shells and dotenv files take everything up to a blank for the value, whatever signs it has.
        if alone and place.sign == "=" and name.text.upper() == name.text and place.sure:
            return _with_continuation(text, _of_env_line(text, start), alone)
        span = self._bare(_BARE, start)
        if span[1] == start:
            return None
        stop, span = span[1], _without_punctuation(text, span)
        after = text[stop : stop + 1]
        # `self.token` alone on a line is code.
        whole = alone and "." not in name.text and after in ("", "\n", "\r")
        value = text[span[0] : min(span[1], span[0] + HEAD)]
        tight = place.sign == "=" or name.text.startswith("-")
        if is_hexadecimal_constant(value) and (not tight or after in (",", ";", ")")):
            return None
        reveals = bare_reveals(value, after, sure=place.sure, tight=tight, whole_line=whole)
        if reveals and alone and place.sure and (rest := _REST.match(text, stop)):
            span = (span[0], rest.end())  # a password may hold any sign
        return _with_continuation(text, span, alone) if reveals or _is_number_token(name.text, value) else None

    def _near(self, name: Name, start: int) -> _Span | None:
        """Return the span of the first surely generated value of the statement behind a name."""
        text = self._text
        alone = name.kind is NameKind.SECRET and text[name.end : name.end + 1] in _BEFORE_APART
        limit = min(len(text), name.end + FARTHEST)
        if start >= name.end + FARTHEST or not self._promises(start, limit, alone=alone):
            return None
        end = self._statement_end(name, start)
        if not self._promises(start, end, alone=alone):
            return None
        passed = []
        while start < end and (piece := self._first_piece(start)) and piece.least <= end:
            if piece.marked:
                return None
            by_itself = alone and self._alone(name, piece.first, piece.last)
            if piece.scrambled or by_itself:
                return _with_continuation(text, (piece.first, piece.last), alone=True)
            passed.append(start)
            after = piece.after if alone else self._plain.get(piece.after, piece.after)
            start = max(after, start + 1)  # whatever a piece is, the next one begins behind it
        # From each of these on, there is nothing up to here: the next name need not look again.
        self._plain |= dict.fromkeys(passed, start)
        return None

    def _first_piece(self, start: int) -> _Piece | None:
        """Return the first piece behind an offset, if it is near; names close to one another share most pieces."""
        if start not in self._seen:
            found = _PIECE.search(self._text, start, start + 2 * FARTHEST)
            self._seen[start] = self._piece(found) if found else None
        return self._seen[start]

    def _promises(self, start: int, end: int, *, alone: bool) -> bool:
        """Return whether a word begins between two offsets that may be a secret; each word is judged once."""
        promise, judged = self._promised[alone]
        if start <= promise < end:
            return True
        if judged >= end:
            return False
        at, judge = max(start, judged), looks_random if alone else may_hold_scrambled
        # A word that begins before the end may go on behind it.
        while at < end and (word := _WORD.search(self._text, at, end + 32)) and word.start() < end:
            at = word.end()
            if judge(word[0][:HEAD]):
                self._promised[alone] = (word.start(), at)
                return True
        self._promised[alone] = (promise, max(judged, end))
        return False

    def _alone(self, name: Name, first: int, last: int) -> bool:
        """Return whether a value is alone on the line after its name, as in a form, or in the next cell."""
        text = self._text
        after = text[last : last + 1]
        apart = _APART.fullmatch(text, name.end, first)
        if apart is None:
            return False
        if apart["cell"]:
            return after in ("\n", "`", " ") and looks_generated(text[first:last])
        return after in ("", "\r", "\n", "`") and looks_random(text[first:last])

    def _piece(self, found: re.Match[str]) -> _Piece:
        text = self._text
        if found["mark"]:
            return _Piece(*found.span(), found.end(), found.end(), marked=True)
        if found["bare"]:
            span = self._bare(_BARE if text.isascii() else _SPOKEN, found.start())
            first, last = _without_punctuation(text, span)
            after, least = span[1], found.start() + LEAST_PIECE
        elif quoted := literal(text, found.start()):
            first, last, least = quoted.start, quoted.end, found.end()
            after = quoted.start if _HOLDS_MORE.search(quoted.value) else quoted.after
        else:
            first, last, after, least = *found.span(), found.end(), found.end()
        return _Piece(first, last, after, least, looks_scrambled(text[first : min(last, first + HEAD)]))

    def _statement_end(self, name: Name, start: int) -> int:
        """Return where the statement or sentence ends: with its line, unless that is unfinished."""
        text, limit = self._text, min(len(self._text), name.end + FARTHEST)
        end = text.find("\n", start, limit)
        begin = text.rfind("\n", max(0, name.start - _LINE_START), name.start) + 1
        is_call = end >= 0 and text.count("(", begin, end) > text.count(")", begin, end)
        # So many unfinished lines are no statement any more, but a table or a text.
        for _ in range(6):
            if end < 0:
                return limit
            line = text[max(name.end, end - 80) : end]
            if "#" in line or "/" in line:
                line = _COMMENT_AT_END.sub("", line)
            line = line.rstrip()
            if line.endswith(tuple(_CLOSERS)):
                close = text.find(_CLOSERS[line[-1]], end, limit)
                return limit if close < 0 else close
            goes_on = line.endswith(_GOES_ON) or (is_call and line.endswith(",")) or line == "**"  # a bold heading
            if line and not (goes_on or _ARGUMENT.fullmatch(line) or _COLUMNS.fullmatch(line)):
                return end
            end = text.find("\n", end + 1, limit)
        return max(end, start)


@lru_cache(maxsize=1024)
def _is_header(name: str) -> bool:
    return bool(_HEADER.fullmatch(name))


def _directive(before: str) -> str:
    """Return the word before a name that a value follows without an operator: `ENV`, `#define`, `set -x`; or ""."""
    if not before.endswith((" ", "\t")):
        return ""
    words = before.split()[-4:] or [""]
    if words[-1].startswith("-") and len(words) > 1:
        return "set" if any(word.endswith("set") for word in words[:-1]) else ""
    word = _MARGIN_SIGNS.split(words[-1])[-1]
    return word if word in _DIRECTIVES else ""


def _quoted_span(found: Literal, place: _Place) -> _Span | None:
    if "," in place.sign and (not any(map(str.isdigit, found.value)) or is_other_name(found.value)):
        return None
    return (found.start, found.end) if quoted_reveals(found.value, sure=place.sure) else None


def _is_number_token(name: str, value: str) -> bool:
    """Return whether a value of digits alone is long enough for a token rather than a count."""
    return value.isdecimal() and len(value) >= DIGITS and bool(_NUMBER_TOKEN.fullmatch(name))


def _stands_alone(text: str, start: int) -> bool:
    """Return whether a name is the first on its line, apart from words such as `export`."""
    begin = max(0, start - _LINE_START)
    newline = text.rfind("\n", begin, start)
    # The line begins further back than is looked: whatever stands there, the name is not its first word.
    if newline < 0 < begin:
        return False
    before = text[max(begin, newline + 1) : start]
    margin = _LINE_MARGIN.match(before)
    return bool(_ENV_LINE.fullmatch(before[margin.end() if margin else 0 :].lstrip(" \t")))


def _of_env_line(text: str, start: int) -> _Span | None:
    """Return the span of the value of `NAME=value` on a line of its own: everything up to a space."""
    line = _LINE.match(text, start)
    value = line[0].split(" ")[0].split("\t")[0].rstrip("\\") if line else ""
    value = value.split("\\n")[0]
    if not value or value.startswith(("(", "[", "{")) or value.endswith(("(", "()")):
        return None
    return (start, start + len(value)) if bare_reveals(value, "", sure=True, tight=True, whole_line=True) else None


def _with_continuation(text: str, span: _Span | None, alone: bool) -> _Span | None:
    """Return a span with the lines that the value goes on in."""
    if span is None or not alone:
        return span
    more = _MORE.match(text, span[1]) or _FOLDED.match(text, span[1])
    return (span[0], more.end()) if more else span


def _without_punctuation(text: str, span: _Span) -> _Span:
    """Return a span without the punctuation of the sentence around it."""
    start, stop = span
    while stop - start > 1 and text[stop - 1] in ".。！!?:*":
        stop -= 1
    return start, stop
