"""Structs and lists of records of which a reply gives a part keep the rest; what was taken out on purpose goes."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.completeness import stands_for_all
from codeagent_lsp.direct.definitions import with_definitions

NAMES = ("alpha", "beta", "gamma", "delta", "omega")
# A file's ending, the head of the container, one entry of it with its name and its value, and its end.
CONTAINERS = (
    ("go", "type S struct {\n", "\tNAME [VALUE]int\n", "}\n"),
    ("rs", "pub struct S {\n", "    pub NAME: [u8; VALUE],\n", "}\n"),
    ("c", "struct S {\n", "    int NAME[VALUE];\n", "};\n"),
    ("c", "typedef struct {\n", "    int *NAME[VALUE], NAME_end;\n", "} S;\n"),
    ("cpp", "struct S {\n", "    int NAME[VALUE];\n", "};\n"),
    ("ts", "type S = {\n", "  NAME: TVALUE;\n", "};\n"),
    ("ts", "export type S = {\n", "  NAME: TVALUE,\n", "};\n"),
    ("py", "urlpatterns = [\n", '    path("NAME", viewVALUE),\n', "]\n"),
    ("py", "ITEMS = [\n", '    {"name": "NAME", "size": VALUE},\n', "]\n"),
    ("py", "ITEMS = (\n", '    ("NAME", VALUE),\n', ")\n"),
    ("py", "class A:\n    items = [\n", '        Item("NAME", VALUE),\n', "    ]\n"),
    ("js", "const items = [\n", '  { name: "NAME", size: VALUE },\n', "];\n"),
    ("ts", "export const items: Item[] = [\n", '  new Item("NAME", VALUE),\n', "];\n"),
    ("go", "var items = []Item{\n", '\t{"NAME", VALUE},\n', "}\n"),
    ("go", "var items = []Item{\n", '\t{Name: "NAME", Size: VALUE},\n', "}\n"),
    ("rs", "const ITEMS: &[Item] = &[\n", '    Item { name: "NAME", size: VALUE },\n', "];\n"),
    ("rs", "static ITEMS: [Item; 5] = [\n", '    Item::new("NAME", VALUE),\n', "];\n"),
    ("c", "static struct item items[] = {\n", '    {"NAME", VALUE},\n', "};\n"),
    ("java", "class A {\n    Item[] items = {\n", '        new Item("NAME", VALUE),\n', "    };\n}\n"),
    ("rb", "ITEMS = [\n", '  { name: "NAME", size: VALUE },\n', "]\n"),
)
ALL = pytest.mark.parametrize(("ending", "head", "entry", "end"), CONTAINERS)


def _of(head: str, entry: str, end: str, *given: tuple[str, int]) -> str:
    return head + "".join(entry.replace("NAME", name).replace("VALUE", str(value)) for name, value in given) + end


def _all(changed: str = "") -> list[tuple[str, int]]:
    return [(name, 2 if name == changed else 1) for name in NAMES]


@ALL
@pytest.mark.parametrize("beside", [(), ("alpha",), ("delta",)])
def test_changed(ending: str, head: str, entry: str, end: str, beside: tuple[str, ...]) -> None:
    before = _of(head, entry, end, *_all())
    reply = _of(head, entry, end, *(each for each in _all("gamma") if each[0] in (*beside, "gamma")))
    assert with_definitions(f"a.{ending}", before, reply) == _of(head, entry, end, *_all("gamma"))
    assert not stands_for_all(f"a.{ending}", before, reply)


@ALL
def test_added(ending: str, head: str, entry: str, end: str) -> None:
    before = _of(head, entry, end, *_all())
    reply = _of(head, entry, end, ("beta", 1), ("kappa", 3))
    expected = [*_all()[:2], ("kappa", 3), *_all()[2:]]
    assert with_definitions(f"a.{ending}", before, reply) == _of(head, entry, end, *expected)


@ALL
def test_taken_out(ending: str, head: str, entry: str, end: str) -> None:
    before = _of(head, entry, end, *_all())
    fewer = _of(head, entry, end, *_all()[:3])
    assert with_definitions(f"a.{ending}", before, fewer) == fewer
    others = _of(head, entry, end, *_all()[:3], ("kappa", 30), ("lambda", 40))
    assert with_definitions(f"a.{ending}", before, others) == others
