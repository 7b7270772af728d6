"""Edits in the documents of `documents.txt`, in every form of answer: the text afterwards is the wanted one, byte for
byte, or the edit is refused. What the documents have around the change, such as heredocs, tables and recipes, stays.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.errors import EditRefused, PatchRefused
from codeagent_lsp.tools.code.source import source_of
from codeagent_lsp.workspace.edits.match import replace
from codeagent_lsp.workspace.edits.patch import apply_patch
from codeagent_lsp.workspace.text.position import split_lines

SLOT = re.compile("«([0-9]+)»")
BOM = "\ufeff"


def _documents() -> dict[str, str]:
    """Return texts by their paths. `→` is a tab, `·` a blank at the end of a line, `«1»` a number that may change."""
    known = (Path(__file__).parent / "documents.txt").read_text("utf-8").replace("→", "\t").replace("·", " ")
    pairs = (each.partition("\n") for each in known.split("#### ")[1:])
    return {path: f"{text.rstrip()}\n" for path, _, text in pairs}


DOCUMENTS = _documents()


@dataclass
class Case:
    """A text with one number changed on the line `at`: `old` and `new` are the lines around it, as they are sent."""

    path: str
    text: str
    wanted: str
    first: int
    old: list[str]
    new: list[str]
    at: int


def made(path: str, chosen: random.Random) -> Case:
    """Return an edit of a document with any line ends, with or without the last one and a byte-order mark."""
    document = DOCUMENTS[path]
    slots = sorted(set(SLOT.findall(document)))
    changed = chosen.choice(slots)
    values = {slot: str(chosen.randrange(1_000, 9_000)) for slot in slots}
    before, after = (
        SLOT.sub(lambda found, given=given: given[found[1]], document).split("\n")  # type: ignore[misc]
        for given in (values, {**values, changed: str(chosen.randrange(9_000, 9_999))})
    )
    kinds = chosen.choice((("\n",), ("\n",), ("\r\n",), ("\n", "\r\n")))
    ends = [chosen.choice(kinds) for _ in before]
    mark, ending = BOM * (chosen.random() < 0.1), chosen.random() < 0.8

    def joined(lines: list[str]) -> str:
        text = "".join(line + end for line, end in zip(lines[:-1], ends, strict=False))
        return mark + (text if ending else text.rstrip("\r\n"))

    at = next(number for number, line in enumerate(before) if line != after[number])
    first, last = max(0, at - chosen.randint(0, 3)), min(len(before) - 1, at + 1 + chosen.randint(0, 3))
    lines = before[first:last], after[first:last]
    return Case(path, joined(before), joined(after), first, *lines, at - first)


def _answered(case: Case, reply: str, form: TextForm) -> str:
    answer = read_answer(reply, Files({case.path: case.text}), form)
    if answer.problem:
        raise EditRefused("not_found", answer.problem)
    return answer.texts.get(case.path, case.text)


def _plain(text: str) -> str:
    return text.removeprefix(BOM).replace("\r\n", "\n")


def _whole(case: Case) -> str:
    return _answered(case, f"{case.path}\n`````\n{_plain(case.wanted).rstrip()}\n`````\n", "whole")


def _blocks(case: Case) -> str:
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (case.old, case.new))
    return _answered(case, f"{case.path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n", "blocks")


def _rows(case: Case) -> str:
    rows = [f" {line}" for line in case.old]
    rows[case.at : case.at + 1] = [f"-{case.old[case.at]}", f"+{case.new[case.at]}"]
    return "".join(f"{row}\n" for row in rows)


def _diff(case: Case) -> str:
    head = f"--- a/{case.path}\n+++ b/{case.path}\n@@ -{case.first + 1},9 +{case.first + 1},9 @@\n"
    return _answered(case, f"`````diff\n{head}{_rows(case)}`````\n", "diff")


def _patch(case: Case) -> str:
    patch = f"*** Begin Patch\n*** Update File: {case.path}\n@@\n{_rows(case)}*** End Patch\n"
    return apply_patch({case.path: case.text}, patch)[case.path] or ""


def _edit(case: Case) -> str:
    return replace(case.text, "\n".join(case.old), "\n".join(case.new)).text


def _quick_action(case: Case) -> str:
    lines = split_lines(case.text)
    start = sum(map(len, lines[: case.first]))
    end = start + sum(map(len, lines[case.first : case.first + len(case.old)]))
    return replaced(case.text, start, end, "\n".join(case.new), case.path)


def _function(case: Case) -> str:
    source = source_of(case.path, _plain(case.wanted))
    line = case.first + case.at + 1
    around = [
        each.symbol
        for each in (source.definitions if source else ())
        if each.symbol.line_start <= line <= each.symbol.line_end
    ]
    if not around:
        return case.wanted
    lines = _plain(case.wanted).split("\n")[around[-1].line_start - 1 : around[-1].line_end]
    blanks = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    code = "\n".join(line.removeprefix(blanks) for line in lines)
    return _answered(case, f"{case.path}\n`````\n{code}\n`````\n", "function")


def _dedented(lines: list[str], both: list[str]) -> list[str]:
    """Return lines without the blanks that all have, also those inside strings, as a model gives them."""
    common = min((len(line) - len(line.lstrip()) for line in both if line.strip()), default=0)
    return [line[common:] if line.strip() else "" for line in lines]


WAYS: dict[str, Callable[[Case], str]] = {
    "whole": _whole,
    "blocks": _blocks,
    "diff": _diff,
    "patch": _patch,
    "edit": _edit,
    "quick action": _quick_action,
    "function": _function,
}
CAREFUL = frozenset(("whole", "blocks", "diff", "patch", "edit", "quick action"))
"""Ways in which a reply that copies the lines as they are is never refused."""


def outcome(way: str, case: Case) -> str:
    try:
        return "right" if WAYS[way](case) == case.wanted else "wrong"
    except (EditRefused, PatchRefused):
        return "refused"


def tried(path: str, way: str, times: int, seed: int) -> Counter[str]:
    found = Counter[str]()
    for number in range(times):
        case = made(path, random.Random(f"{path}{way}{seed}{number}"))
        found[outcome(way, case)] += 1
        # Moved as a model moves lines: where there is a place for them, it is the right one.
        if way in ("blocks", "edit"):
            both = case.old + case.new
            case.old, case.new = _dedented(case.old, both), _dedented(case.new, both)
            found["moved and wrong"] += outcome(way, case) == "wrong"
    return +found


@pytest.mark.parametrize("path", list(DOCUMENTS)[::4])
def test_a_change_is_where_it_belongs(path: str) -> None:
    found = {way: tried(path, way, 2, 1) for way in WAYS}
    assert {way: each for way, each in found.items() if set(each) - {"right"}} == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", DOCUMENTS)
def test_nor_elsewhere_in_any_document(path: str, way: str) -> None:
    found = tried(path, way, 40, 2)
    allowed = {"right"} if way in CAREFUL else {"right", "refused"}
    assert set(found) <= allowed, found


NAMESPACES = {
    "a.cpp": ("namespace a {\nconst int N = 1;\nint f() { return 1; }\n}\n", "const int N = 7;\n"),
    "a.rb": ("module A\n  N = 1\n  def f\n    2\n  end\nend\n", "N = 7\n"),
    "b.cpp": ("template <typename T>\nT f(T a) {\n  return a + 1;\n}\nint g();\n", "T f(T a) {\n  return a + 7;\n}\n"),
    "c.cpp": (
        "int z;\n/// Doc\ntemplate <typename T>\nclass A {\n  int f() { return 1; }\n};\nint g() { return 2; }\n",
        "class A {\n  int f() { return 7; }\n};\n",
    ),
}


@pytest.mark.parametrize("path", NAMESPACES)
def test_what_stands_around_a_definition_stays(path: str) -> None:
    """No second copy behind a namespace, no template without its head."""
    text, code = NAMESPACES[path]
    answer = read_answer(f"```\n{code}```\n", Files({path: text}), "function")
    assert answer.texts == {path: text.replace("1", "7", 1)}, answer.problem


CUT = {
    "a.ini": ("[a]\nn = 1\n; c\nlong = a\n    b\n[b]\nn=2\n", "[a]\nn = 7\n; c\nlong = a\n    b\n"),
    "a.xml": (
        '<?xml version="1.0"?>\n<a>\n<b>1</b>\n<b>2</b>\n<b>3</b>\n<b>4</b>\n</a>\n',
        "<a>\n<b>7</b>\n<b>2</b>\n<b>3</b>\n<b>4</b>\n</a>\n",
    ),
    "a.graphql": ("type A {\n  n: Int\n  m(a: Int = 1): Int\n}\n", "type A {\n  n: Int\n  m(a: Int = 7): Int\n"),
    "a.py": ("def f():\n\treturn 1\n\ndef g():\n        return 2\n\treturn 3\n", "def f():\n"),
}


@pytest.mark.parametrize("path", CUT)
def test_a_part_of_a_file_is_not_all_of_it(path: str) -> None:
    text, given = CUT[path]
    answer = read_answer(f"{path}\n```\n{given}```\n", Files({path: text}), "whole")
    assert answer.texts == {}
    assert answer.problem


def test_a_quick_action_moves_all_lines_alike_where_that_makes_them_those_of_the_file() -> None:
    text = "class A {\n    int f() {\n        if (a) {\n            return 1;\n        }\n    }\n}\n"
    start, end = text.index("        if"), text.index("}\n", text.index("    }\n    }")) + 8
    assert text[start:end].endswith("        }\n    }\n")
    given = "    if (a) {\n        return 7;\n    }\n}"
    assert replaced(text, start, end, given, "A.java") == text.replace("1", "7")


def test_blanks_in_strings_stay_unless_only_blanks_are_changed() -> None:
    text = 'a = 1\nq = """\n\tcc  \n"""\n'
    assert replaced(text, 0, len(text), 'a = 7\nq = """\n    cc\n"""', "a.py") == text.replace("1", "7")
    assert replaced(text, 0, len(text), 'a = 1\nq = """\n    cc\n"""', "a.py") == text.replace("\tcc  ", "    cc")


def test_a_block_that_leaves_a_blank_line_leaves_it() -> None:
    for end in ("\n", "\r\n"):
        text = f"a{end}{end}b = 1{end}c{end}"
        reply = "<<<<<<< SEARCH\n\nb = 1\n=======\n\n>>>>>>> REPLACE\n"
        assert read_answer(reply, Files({"a.txt": text}), "blocks").texts == {"a.txt": f"a{end}{end}c{end}"}
