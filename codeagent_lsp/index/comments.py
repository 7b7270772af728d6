"""Comments that take one line, in any language that a file can have: code, templates, markup, data and documents.

One notion for all that judges a reply or a change by its comments, so that a sign that one place knows is known at all
of them. A line is judged by itself and without its language. Pure functions. Not here: comments of several lines
(`literals.py`, `literal_signs.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Comment(NamedTuple):
    """The sign that opens a comment, such as `#` or `<!--`, and what the comment says, without the sign that closes
    it.
    """

    sign: str
    said: str


# By the signs around it: the first alternative that fits counts, so longer signs stand before those they begin with.
_CLOSED = (
    (r"\{\{~?!--", r"--~?\}\}"),  # Handlebars
    (r"\{\{~?!", r"\}\}"),
    (r"\{\{-?\s*/\*", r"\*/\s*-?\}\}"),  # templates of Go
    (r"\{%-?\s*comment\s*(?:[\"'].*?[\"']\s*)?-?%\}", r"\{%-?\s*endcomment\s*-?%\}"),  # Django, Liquid
    (r"\{#-?", r"-?#\}"),  # Jinja, Twig
    (r"<%[#!]?--", r"--%>"),  # JSP, ASP, HEEx
    (r"<%[-=]?#", r"-?%>"),  # ERB, EJS
    (r"<%\s*/\*", r"\*/\s*%>"),
    (r"@\*", r"\*@"),  # Razor
    (r"\(\*{1,80}+", r"\*{1,80}\)"),  # OCaml, Pascal
    (r"\{-", r"-\}"),  # Haskell, Elm
    (r"#\|", r"\|#"),  # Lisp
    (r"#=", r"=#"),  # Julia
    (r"#\[", r"\]#"),  # Nim
    (r"<#", r"#>"),  # PowerShell
    (r"/\+", r"\+/"),  # D
    (r"--\[=*\[", r"\]=*\]"),  # Lua
    (r"\[(?://|comment|#)\]:\s*(?:#|<>)\s*[(\"']", r"[)\"']"),  # Markdown: a link that nothing shows
    (r"\"(?://|#|\$comment|_comment)\"\s*:\s*\"", r"\"\s*,?"),  # JSON: a key that programs pass over
)
# The closing sign may be in a line below.
_OPENED = ((r"\{?/\*+", r"\*/[ \t]*\}?"), (r"<!--+", r"--+>"))
_LINE = (
    r"['.]\\\"|#+|/{2,}-?|--+|-#|;+|%+|\*+|!+|\"(?=[^\"]*$)|'(?=[^']*$)|\.\.(?=\s)|::(?=\s)|(?i:rem|dnl)\b"
    r"|@c(?:omment)?\b"
)
_COMMENT = re.compile(
    "|".join(
        (
            *(f"(?:(?P<s{at}>{first})(?P<t{at}>.*?)(?:{last}))" for at, (first, last) in enumerate(_CLOSED)),
            *(f"(?:(?P<o{at}>{first})(?P<p{at}>.*?)(?:{last})?)" for at, (first, last) in enumerate(_OPENED)),
            f"(?:(?P<line>{_LINE})(?P<rest>.*))",
        )
    )
)


def comment_of(line: str) -> Comment | None:
    """Return the comment that a line without the blanks around it is; None for any other line. A sign that also begins
    other things, such as the `#` of a heading or the `*` of a list, counts as one of a comment.
    """
    # Most lines begin with a letter, and only three words begin a comment.
    if line[:1].isalpha() and line[:1] not in "rRdD":
        return None
    found = _COMMENT.fullmatch(line)
    if found is None:
        return None
    sign, said = (each for each in found.groups() if each is not None)
    return Comment(sign, said)


_DOCUMENTS = frozenset(("md", "mdx", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "tex", "ltx", "rmd", "qmd"))
_DOCUMENT_NAME = re.compile(
    r"README|CHANGE|CONTRIBUT|HISTORY|NEWS|NOTES|TODO|LICEN[CS]E|COPYING|AUTHORS|NOTICE|INSTALL|THANKS|SECURITY"
)
_SCRIPT_NAME = re.compile(r"CMakeLists|(?:[\w.-]*-)?(?:requirements|constraints)", re.IGNORECASE)
# What none of the documents has as a heading, an item of a list or the beginning of a sentence.
_IN_DOCUMENT = ("<!--", "<%", "{", "[", "//", "/*", "(*", "..")
_SIGNS_OF = {"tex": "%", "ltx": "%", "org": "# "}


def is_document(path: str) -> bool:
    """Return whether a file, by its name, holds words, so that a `#` begins a heading or a sentence there. A list of
    packages or a file of CMake is none, whatever its ending is.
    """
    name = path.replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    if not dot:
        return _DOCUMENT_NAME.match(name) is not None
    return ending.lower() in _DOCUMENTS and not (ending == "txt" and _SCRIPT_NAME.match(stem))


def is_comment_in(path: str, line: str) -> bool:
    """Return whether a line without the blanks around it is a comment in this file: in a document only with a sign that
    begins nothing else there.
    """
    comment = comment_of(line)
    if comment is None or not is_document(path):
        return comment is not None
    own = _SIGNS_OF.get(path.rpartition(".")[2].lower(), "")
    return comment.sign.startswith(_IN_DOCUMENT) or bool(own and line.startswith(own))
