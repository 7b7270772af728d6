"""A text in every language the index parses, beside what is to be found in it: `samples/NAME.sample`, `NAME.tags`.

`python -m tests.index.samples` writes what is found now; read the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.index.parse import parse
from codeagent_lsp.index.symbols import FileTags

_FOLDER = Path(__file__).parent / "samples"


@dataclass(frozen=True)
class Sample:
    """`path` tells the language, `tags` is what `rendered` is to give of the text."""

    path: str
    text: str
    tags: str


def samples() -> list[Sample]:
    """All of them, by name."""
    found = sorted(_FOLDER.glob("*.sample"))
    return [Sample(each.stem, each.read_text("utf-8"), _expected(each)) for each in found]


def rendered(tags: FileTags) -> str:
    """Everything in the tags, for people to read: definitions, imports, calls and uses by what they are in."""
    return "\n".join((f"language {tags.language}{' broken' if tags.broken else ''}", *_lines(tags), ""))


def _lines(tags: FileTags) -> Iterator[str]:
    for symbol in tags.symbols:
        lines = f"{symbol.line_start}-{symbol.line_end}"
        yield f"{symbol.kind} {symbol.qualified} {lines} | {symbol.signature} | {symbol.docstring}"
    for each in tags.imports:
        yield f"import {each.line} {each.module} {' '.join(each.names)}".rstrip()
    scopes = dict.fromkeys(reference.within for reference in tags.references)
    for kind in ("calls", "uses"):
        for scope in scopes:
            names = {r.name for r in tags.references if r.within == scope and r.call == (kind == "calls")}
            if names:
                yield f"{kind} in {scope or 'file'}: {' '.join(sorted(names))}"


def _expected(sample: Path) -> str:
    tags = sample.with_suffix(".tags")
    return tags.read_text("utf-8") if tags.exists() else ""


def _write() -> None:
    for sample in samples():
        (_FOLDER / f"{sample.path}.tags").write_text(rendered(parse(sample.path, sample.text)), "utf-8")


if __name__ == "__main__":
    _write()
