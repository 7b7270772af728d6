"""Makes untrusted Markdown inert: nothing in it loads or runs, and links lead only to the web or to a file. Pure.

Text of a model or a file may reach a document that an editor renders. Images, HTML that loads or runs something, and
links with schemes such as `command:` are escaped so that they show as text. Code blocks stay as they are, but only
where every renderer agrees on what is code. Not here: what the text is about.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(r"(\r\n|\n|\r)")
# A fence whose rest has none of its signs: "```a`b" is inline code for some renderers.
_FENCE = re.compile(r"(```+|~~~+)[^`~]*$")
_FENCE_SIGN = re.compile(r"```|~~~")
_HTML_BLOCK = re.compile(r"[\s>*+\-\d.)]*<[A-Za-z/!?]")

_IMAGE = re.compile(r"!\[")
# Any link but `](https://…`, `](<http://…` and plain relative paths. `\s*+` gives nothing back: else the blank in
# `]( command:…` would pass as the end of an empty path.
_LINK = re.compile(r"\]\((?!\s*+(?:<?https?://|[\w./#-]*[)\s]))", re.IGNORECASE)
# `[x]: command:…`, also with the address in the next line, or written with entities or escapes: `[x]: &#99;ommand:`.
_DEFINITION = re.compile(r"\]:(?=\s*(?:$|<?[A-Za-z][\w+.-]*:|[&\\]))")
# A tag with an attribute (`<p onclick=`), one that goes on in the next line, the elements that load or run, `<!--`,
# `<?`.
_HTML = re.compile(
    r"<(?=[A-Za-z][^<>=]*(?:=|$)|/?(?:script|style|svg|math|iframe|frame|object|embed|base|link|meta|form|img)\b|[!?])",
    re.IGNORECASE,
)
# `<command:…>`, but not `<https://…>`.
_AUTOLINK = re.compile(r"<(?=(?!https?:)[A-Za-z][A-Za-z0-9+.-]*:)", re.IGNORECASE)


def inert(markdown: str) -> str:
    """Return `markdown` with images, active HTML and links that are not safe escaped, so that they show as text."""
    pieces = _LINE_END.split(markdown)
    lines, ends = pieces[::2], [*pieces[1::2], ""]
    code = _code_lines(lines)
    return "".join((line if kept else _neutral(line)) + end for line, end, kept in zip(lines, ends, code, strict=True))


def _code_lines(lines: list[str]) -> list[bool]:
    """Return for each line whether it is certainly code; False for all if a fence or HTML is ambiguous."""
    fence, found = "", []
    for line in lines:
        opened = _FENCE.match(line)
        if fence:
            found.append(True)
            if opened and line.rstrip(" \t") == opened[1] and opened[1].startswith(fence):
                fence = ""
            continue
        if not opened and (_FENCE_SIGN.search(line) or _HTML_BLOCK.match(line)):
            # A fence inside a list or a quote opens code for some renderers only: then nothing counts as code, all is
            # escaped.
            return [False] * len(lines)
        fence = opened[1] if opened else ""
        found.append(opened is not None)
    return found


def _neutral(line: str) -> str:
    line = _DEFINITION.sub(r"]\\:", line)
    line = _IMAGE.sub(r"!\\[", line)
    line = _LINK.sub(r"]\\(", line)
    return _AUTOLINK.sub("&lt;", _HTML.sub("&lt;", line))  # a backslash could meet one that is there already
