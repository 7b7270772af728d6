"""Literals and comments that span several lines in languages without a grammar, by the signs that open and close them.

Texts whose literals are relative to the indentation, such as YAML and Markdown, have none here: they are moved as a
whole. In a language that is in no list, the signs that most share are taken, and `is_unclear` tells whether there may
be others. Not here: languages with a grammar (`literals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal, NamedTuple


class Span(NamedTuple):
    """A literal or a comment, by its offsets in characters (half-open). With `body` it begins on a line of its own, and
    also the blanks in front of its first word are content. With `moves` it is a comment, which may be indented with the
    code.
    """

    start: int
    end: int
    body: bool = False
    moves: bool = False


class Signs(NamedTuple):
    """The forms of literals and comments in a language, by their names in `_FORMS`, in the order in which they are
    tried.
    """

    name: str
    forms: tuple[str, ...]


_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_LEVEL = r"\[(?P<{0}>=*)\["


class Form(NamedTuple):
    """The patterns of one kind of literal or comment. `closing` may name groups of `opening`; without it, all of it is
    in `opening`, on one line. `escape` matches what does not close it, such as a sign behind a backslash; `kind` says
    which lines are content.
    """

    opening: str
    closing: str = ""
    escape: str = ""
    kind: Literal["literal", "body", "comment", "nested comment", "code", "heredoc"] = "literal"


_BACKSLASH = r"\\."
_FORMS: dict[str, Form] = {
    # on one line
    "#": Form(r"#[^\n]*"),
    "word#": Form(r"(?<![^\s;(])#[^\n]*"),
    "//": Form(r"//[^\n]*"),
    "--": Form(r"--[^\n]*"),
    ";": Form(r";[^\n]*"),
    "%": Form(r"(?<!\\)%[^\n]*"),
    '"line': Form(r'"(?:[^"\\\n]|\\.)*"'),
    "'line": Form(r"(?<!\w)'(?:[^'\\\n]|\\.)*'"),
    # A character; a lone `'` begins the name of a type or a lifetime.
    "'sign": Form(r"'(?:[^'\\\n]|\\[^\n]{1,8}?)'"),
    # `?"` of Elixir, `#\"` of Lisp: characters that would open a literal.
    "?sign": Form(r"\?\\?[\"'`#;]|#?\\[\"';|]"),
    # Perl's `$"`, `$'`, `$#`: names of variables that would open something.
    "$name": Form(r"\$[#\"'`/&;]|[$@%&]\{?\w+"),
    "escaped": Form(r"\\[^\n]|\$#"),
    # comments
    "/*": Form(r"/\*", r"\*/", kind="comment"),
    "<!--": Form(r"<!--", r"-->", kind="comment"),
    "<#": Form(r"<#", r"#>", kind="comment"),
    "###": Form(r"###(?!#)", r"###", kind="comment"),
    "--[[": Form(r"--" + _LEVEL.format("remark"), r"\](?P=remark)\]", kind="comment"),
    "#[[": Form(r"#" + _LEVEL.format("note"), r"\](?P=note)\]", kind="comment"),
    "(*": Form(r"\(\*(?!\))", r"\*\)", kind="nested comment"),
    "{-": Form(r"\{-", r"-\}", kind="nested comment"),
    "#|": Form(r"#\|", r"\|#", kind="nested comment"),
    "#=": Form(r"#=", r"=#", kind="nested comment"),
    # literals
    '"""': Form(r'(?P<hashes>#*)"""', r'"""(?P=hashes)', _BACKSLASH),
    "'''": Form(r"'''", r"'''", _BACKSLASH),
    'raw"""': Form(r'"""', r'"""'),
    "raw'''": Form(r"'''", r"'''"),
    '"': Form(r'"', r'"', _BACKSLASH),
    "'": Form(r"(?<!\w)'", r"'", _BACKSLASH),
    "raw'": Form(r"(?<!\$)'", r"'"),
    "$'": Form(r"\$'", r"'", _BACKSLASH),
    "`": Form(r"`", r"`", _BACKSLASH),
    '"doubled"': Form(r'"', r'"', r'""'),
    "'doubled'": Form(r"(?<!\w)'", r"'", r"''"),
    "`doubled`": Form(r"`", r"`", r"``"),
    '@"': Form(r'\$?@\$?"', r'"', r'""'),
    "''": Form(r"''", r"''", r"''(?:['$]|\\.)"),
    "$/": Form(r"\$/", r"/\$", r"\$[/$]"),
    "[[": Form(_LEVEL.format("level"), r"\](?P=level)\]"),
    "$$": Form(r"\$(?P<tag>[A-Za-z_]\w*)?\$", r"\$(?P=tag)\$"),
    "{|": Form(r"\{(?:%%?[\w.]+ ?)?(?P<id>[a-z_]*)\|", r"\|(?P=id)\}"),
    "[r|": Form(r"\[(?:[a-z_][\w.']*)?\|\|?", r"\|\|?\]"),
    'r"(': Form(r"\b[rR](?P<around>[\"'])(?P<dashes>-*)[(\[{]", r"[)\]}](?P=dashes)(?P=around)"),
    'R"(': Form(r'\b(?:u8|[uUL])?R"(?P<raw>[^\s()\\]{0,16})\(', r'\)(?P=raw)"'),
    '@"\n': Form(r"@(?P<here>[\"'])[ \t]*(?=\r?\n)", r"^(?P=here)@"),
    "~s": Form(r"~[A-Za-z]+(?P<delimiter>\"\"\"|'''|[({\[<|/\"'])", r"(?P=delimiter)", _BACKSLASH),
    # Perl's quotes with a delimiter of one's choice, but no keys (`q => 1`), calls or lists.
    "q{": Form(
        r"(?<![\w$@%&>{])(?P<operator>qq|qx|qw|qr|q|m|y|tr|s)(?![\w}])(?!\s*(?:=>|[,;)=]))"
        r"(?:\s*(?P<delimiter>[^\w\s#])|(?P<hash>#))",
        r"(?P=delimiter)(?P=hash)",
        _BACKSLASH,
    ),
    "=~": Form(r"(?<=~)\s*/", r"/", _BACKSLASH),
    "pod": Form(r"^=[a-zA-Z]\w*", r"^=cut\b[^\n]*|\Z", kind="body"),
    "__END__": Form(r"^__(?:END|DATA)__[ \t]*$", r"\Z"),
    "define": Form(r"^define\b[^\n]*$", r"^endef\b"),
    "<pre": Form(r"(?i:<(?P<element>pre|textarea|listing|xmp|plaintext)\b[^<>]*>)", r"(?i:</(?P=element)\s*>)"),
    "<script": Form(
        r"(?i:<(?P<element_of_code>script|style)\b[^<>]*>)", r"(?i:</(?P=element_of_code)\s*>)", kind="code"
    ),
    '="': Form(r"(?<=[\w\])}])\s*=\s*(?P<attribute>[\"'])", r"(?P=attribute)"),
    "CDATA": Form(r"<!\[CDATA\[", r"\]\]>"),
    "preserve": Form(r"<(?P<kept>[\w:.-]+)\b[^<>]*\bxml:space=[\"']preserve[\"'][^<>]*(?<!/)>", r"</(?P=kept)\s*>"),
    "verbatim": Form(
        r"\\begin\{(?P<environment>[vV]erbatim\*?|lstlisting|minted|alltt|comment|filecontents\*?)\}",
        r"\\end\{(?P=environment)\}",
    ),
    "<<": Form(
        r"(?<!<)<<(?!<)[-~]?[ \t]*(?:trim )?"
        r"(?:(?P<mark>['\"`])(?P<quoted>[^'\"`\n]+)(?P=mark)|\\?(?P<word>[A-Za-z_]\w*))",
        kind="heredoc",
    ),
}
_LISTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("yaml yml md markdown mdx rst adoc asciidoc pug jade haml slim sass json jsonc json5 jsonl ipynb", ()),
    ("html htm xhtml vue svelte astro erb ejs hbs mustache jinja jinja2 j2 tmpl cshtml razor aspx jsp twig liquid",
     ("<!--", "<pre", "<script", '="')),
    ("xml svg xsd xsl xslt csproj vbproj fsproj props targets plist xaml pom rss wsdl storyboard xib resx",
     ("<!--", "CDATA", "preserve", '="')),
    ("sql psql pgsql ddl dml plsql mysql", ("--", "/*", "$$", "'doubled'", '"doubled"', "`doubled`")),
    ("pl pm t psgi cgi", ("pod", "__END__", "<<", "$name", "#", "=~", "q{", '"', "'", "`")),
    ("nix", ("''", '"', "#", "/*")),
    ("ml mli mll mly re", ("(*", "{|", "'sign", '"')),
    ("fs fsx fsi", ("(*", "//", 'raw"""', '@"', "'sign", '"')),
    ("hs lhs purs elm agda idr", ("--", "{-", "[r|", '"""', "'sign", '"')),
    ("lua", ("--[[", "--", "[[", '"', "'")),
    ("toml", ('"""', "raw'''", '"line', "'line", "#")),
    ("kt kts scala sc", ("//", "/*", 'raw"""', '"line', "'sign")),
    ("swift", ("//", "/*", '"""', '"line')),
    ("groovy gradle", ("//", "/*", '"""', "'''", "$/", '"line', "'line")),
    ("dart", ("//", "/*", '"""', "'''", '"line', "'line")),
    ("coffee", ("###", "#", '"""', "'''", "`", '"', "'")),
    ("ex exs", ("~s", '"""', "'''", "#", "?sign", '"', "'line")),
    ("jl", ("#=", "#", '"""', '"', "'sign", "`")),
    ("r", ('r"(', "#", '"', "'", "`")),
    ("ps1 psm1 psd1", ("<#", '@"\n', "#", '"doubled"', "'doubled'")),
    ("tf tfvars hcl", ("<<", "#", "//", "/*", '"line')),
    ("zsh ksh fish ash dash env bash", ("<<", "escaped", "word#", '"', "$'", "raw'")),
    ("dockerfile containerfile", ("<<", "word#", '"line', "'line")),
    ("lisp lsp cl el clj cljs cljc edn scm ss rkt fnl", ("?sign", "#|", ";", '"')),
    ("cmake cmakelists", ("#[[", "#", "[[", '"')),
    ("mk mak makefile gnumakefile", ("define", "#")),
    ("vb zig v sol proto thrift m mm d vala hx as pas", ("//", "/*", "`", '"line', "'line")),
    ("css scss less styl", ("/*", '"line', "'line")),
    ("graphql gql", ("#", '"""', '"line')),
    ("erl hrl", ("%", '"""', "~s", '"')),
    ("tex sty cls ltx", ("verbatim", "%")),
    ("nim nims", ('raw"""', "#", '"line', "'sign")),
    ("vim", ("<<",)),
    ("ini cfg conf properties desktop service editorconfig bib", ()),
    ("cpp", ("//", "/*", 'R"(', '"', "'sign")),
    ("c", ("//", "/*", '"', "'sign")),
    ("js", ("//", "/*", "`", '"line', "'line")),
)  # fmt: skip
_BY_NAME = {ending: Signs(ending, forms) for endings, forms in _LISTED for ending in endings.split()}
_UNKNOWN = Signs("", ('"""', "'''", "`", "<<", "[["))
_MOST_TOKENS, _MOST_UNCLOSED = 100_000, 100
_BEGINS_COMMENT = re.compile(r"^[ \t]*/\*", re.MULTILINE)
_BEFORE_VALUES = re.compile(r"(?:[\"=(,:{+?>|]|\breturn|\.\.)[ \t]*\Z")
_OPENS_MORE = re.compile(r"''|\$\w*\$|\{\w*\||\[\w+\||<<|^=\w|@\"|\bq[qwrx]?\s*[^\w\s=,;.)]", re.MULTILINE)
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")


def signs_of(path: str) -> Signs:
    """Return the signs of a file's language, by the suffix or name of its path; for an unknown one those that most
    languages share.
    """
    place = PurePosixPath(path.replace("\\", "/"))
    name = place.name.lower()
    return _BY_NAME.get(place.suffix[1:].lower()) or _BY_NAME.get(name.partition(".")[0]) or _UNKNOWN


def is_unclear(code: str, signs: Signs) -> bool:
    """Return whether code in an unknown language may hold a literal over several lines that its signs do not show;
    False for a known one and for one line.
    """
    if signs is not _UNKNOWN or "\n" not in code.strip("\n"):
        return False
    lines = _APOSTROPHE.sub("", code).split("\n")
    return _OPENS_MORE.search(code) is not None or any(line.count(sign) % 2 for line in lines for sign in "\"'`")


def spans(text: str, signs: Signs) -> Iterator[Span]:
    """Yield the literals and comments of a text that span several lines, in order, none overlapping. Ends early after
    100,000 signs, or over 100 that nothing closes.
    """
    place = unclosed = 0
    words: list[str] = []
    for _ in range(_MOST_TOKENS):
        found = _pattern(signs).search(text, place)
        if found is None or unclosed > _MOST_UNCLOSED:
            return
        place = found.end()
        if found["line"]:
            for word in words:
                if (end := _heredoc_end(text, place, word)) is not None:
                    yield Span(place, end, body=True)
                    place = end
                else:
                    unclosed += 1
            words.clear()
            continue
        form = _form_of(found, signs)
        if form.kind == "heredoc":
            words.append(found["quoted"] or found["word"])
            continue
        end = _end(text, found, form) if form.closing and _is_opening(text, found, signs) else None
        if end is None:
            unclosed += 1 if form.closing else 0
            continue
        if form.kind == "code":
            inner = spans(text[place:end], _BY_NAME["js"])
            yield from (each._replace(start=each.start + place, end=each.end + place) for each in inner)
        elif "\n" in text[found.start() : end]:
            yield Span(found.start(), end, body=form.kind == "body", moves="comment" in form.kind)
        place = end


def loose_comment_signs(text: str, signs: Signs) -> int:
    """Return how many comment signs of a text belong to no whole comment or literal: those that close none, that
    nothing closes, and those at the beginning of a line within another comment, which has swallowed them.
    """
    if not any("comment" in _FORMS[name].kind for name in signs.forms):
        return 0
    closers = _closers(signs)
    place = loose = 0
    for _ in range(_MOST_TOKENS):
        found = _pattern(signs).search(text, place)
        if found is None or loose > _MOST_UNCLOSED:
            break
        loose += len(closers.findall(text, place, found.start())) if closers else 0
        # `#>` and `=#` look like the beginning of a comment to the end of the line.
        if closers and found[0].startswith("#"):
            loose += any(closers.match(text, at) for at in (found.start(), found.start() - 1) if at >= place)
        form = None if found["line"] else _form_of(found, signs)
        end = _end(text, found, form) if form is not None and form.closing else None
        if form is not None and form.kind == "code":
            inner = text[found.end() : end]
            loose += loose_comment_signs(inner, _BY_NAME["css" if "style" in found[0].lower() else "js"])
        elif form is not None and "comment" in form.kind:
            loose += 1 if end is None else len(_beginning(form).findall(text, found.end(), end))
        place = found.end() if end is None else end
    return loose + (len(closers.findall(text, place)) if closers else 0)


@lru_cache(maxsize=64)
def _closers(signs: Signs) -> re.Pattern[str] | None:
    """Return the pattern of what closes a comment and nothing else: `]]` of Lua closes much, `###` opens as well."""
    forms = [_FORMS[name] for name in signs.forms if "comment" in _FORMS[name].kind]
    closing = [form.closing for form in forms if "(?P=" not in form.closing and form.closing not in form.opening]
    return re.compile(r"(?<!\()(?:" + "|".join(closing) + ")") if closing else None


@lru_cache(maxsize=64)
def _beginning(form: Form) -> re.Pattern[str]:
    """Return the pattern of a line that begins a comment, which is none where comments are within one another."""
    if form.kind == "nested comment" or form.opening.startswith(form.closing):
        return re.compile("(?!)")
    return re.compile(rf"^[ \t]*{form.opening}", re.MULTILINE)


def begun_within(comment: str) -> int:
    """Return how many lines within one comment between `/*` and `*/` begin another comment; 0 for other comments."""
    return len(_BEGINS_COMMENT.findall(comment, 2)) if comment.startswith("/*") else 0


def _form_of(found: re.Match[str], signs: Signs) -> Form:
    return _FORMS[next(name for number, name in enumerate(signs.forms) if found[f"form{number}"] is not None)]


@lru_cache(maxsize=64)
def _pattern(signs: Signs) -> re.Pattern[str]:
    """Return the pattern that finds what opens next: a group for each form, and `line` for the end of a line."""
    forms = [f"(?P<form{number}>{_FORMS[name].opening})" for number, name in enumerate(signs.forms)]
    return re.compile("|".join((*forms, r"(?P<line>\n)")), re.MULTILINE)


def _end(text: str, found: re.Match[str], form: Form) -> int | None:
    """Return the offset behind the sign that closes what a match opens; None if none does."""
    groups = {name: value or "" for name, value in found.groupdict().items()}
    # `s{…}{…}`, `tr/…/…/`: a second part follows.
    two = groups.get("operator") in ("s", "tr", "y")
    bracket = groups.get("delimiter", "")
    if bracket in _PAIRS:
        end = _match_bracket(text, found.end(), re.escape(bracket), re.escape(_PAIRS[bracket]))
        second = re.compile(r"\s*([({\[<])").match(text, end) if two and end is not None else None
        return (
            end
            if second is None
            else _match_bracket(text, second.end(), re.escape(second[1]), re.escape(_PAIRS[second[1]]))
        )
    closing = re.sub(r"\(\?P=(\w+)\)", lambda name: re.escape(groups.get(name[1], "")), form.closing)
    if form.kind == "nested comment":
        return _match_bracket(text, found.end(), form.opening, closing)
    end = _first(text, found.end(), closing, form.escape)
    return _first(text, end, closing, form.escape) if two and end is not None else end


def _first(text: str, place: int, closing: str, escape: str) -> int | None:
    pattern = f"(?P<escape>{escape})|(?:{closing})" if escape else f"(?P<escape>(?!))|(?:{closing})"
    tokens = re.compile(pattern, re.MULTILINE | re.DOTALL).finditer(text, place)
    return next((token.end() for token in tokens if token["escape"] is None), None)


def _match_bracket(text: str, place: int, opening: str, closing: str) -> int | None:
    depth = 1
    tokens = re.compile(rf"(?P<escape>\\.)|(?P<open>{opening})|{closing}", re.DOTALL)
    for token in tokens.finditer(text, place):
        depth += 0 if token["escape"] else 1 if token["open"] else -1
        if not depth:
            return token.end()
    return None


def _heredoc_end(text: str, place: int, word: str) -> int | None:
    """Return the offset behind the line that closes a heredoc whose lines begin at `place`; None if none does."""
    closing = re.compile(rf"^[ \t]*{re.escape(word)}[;,)]*[ \t]*\r?(?:\n|\Z)", re.MULTILINE).search(text, place)
    return closing.end() if closing is not None else None


def _is_opening(text: str, found: re.Match[str], signs: Signs) -> bool:
    """Return whether a sign opens a literal: in an unknown language it may also be a part of words and lists."""
    if signs is not _UNKNOWN or '"""' in found[0] or "=" in found[0]:
        return True
    left = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
    if found[0] == "[[" and text[found.end() : found.end() + 1] in tuple("0123456789-[{'\""):
        return False
    return (found[0] == "`" and left[-1:].isalnum()) or _BEFORE_VALUES.search(left) is not None
