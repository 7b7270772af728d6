"""What is learned from two edits, in several languages, and where it is due; and what is refused."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.inline.next_edit.history import History
from codeagent_lsp.inline.next_edit.proposals import Due, Proposed, search


class Files:
    """Texts by name, with the edited ones over them."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)

    async def files_with(self, words: Sequence[str], limit: int) -> Sequence[str]:
        return sorted(name for name, text in self.texts.items() if all(word in text for word in words))

    async def text(self, path: str) -> str | None:
        return self.texts.get(path)

    def project(self, path: str) -> str:
        return path.partition("/")[0] if "/" in path else ""


async def due(before: Mapping[str, str], *edits: tuple[str, str, str]) -> Due:
    """Make the edits (file, old, new), each at the first place of its old text, and search."""
    files = Files(before)
    history = History()
    for name, text in before.items():
        history = history.opened(name, text)
    for name, old, new in edits:
        assert old in files.texts[name], old
        files.texts[name] = files.texts[name].replace(old, new, 1)
        history = history.noted(name, files.texts[name])
    return await search(history, files)


def shown(found: Due) -> list[tuple[str, str, str]]:
    return [(each.path, each.old, each.new) for each in found.proposed]


CALLS = (
    "def one(a):\n    return fetch(a)\n\n\ndef two(b):\n    return fetch(b)\n\n\ndef three(c):\n    return fetch(c.d)\n"
)


async def test_an_added_argument() -> None:
    text = CALLS.replace("c.d", "c")
    found = await due({"a.py": text}, ("a.py", "fetch(a)", "fetch(a, 3)"), ("a.py", "fetch(b)", "fetch(b, 3)"))
    assert shown(found) == [("a.py", "fetch(c)", "fetch(c, 3)")]


async def test_an_argument_of_another_kind_is_not_the_same() -> None:
    found = await due({"a.py": CALLS}, ("a.py", "fetch(a)", "fetch(a, 3)"), ("a.py", "fetch(b)", "fetch(b, 3)"))
    assert shown(found) == []


async def test_a_keyword_whatever_the_number_of_arguments() -> None:
    text = "run(1)\nrun(1, 2)\nrun(1, 2, 3)\nrun(4, check=True)\nother(1)\n"
    found = await due(
        {"a.py": text}, ("a.py", "run(1)", "run(1, check=True)"), ("a.py", "run(1, 2)", "run(1, 2, check=True)")
    )
    assert shown(found) == [("a.py", "run(1, 2, 3)", "run(1, 2, 3, check=True)")]


@pytest.mark.parametrize(
    ("name", "text", "edits", "wanted"),
    [
        (
            "a.ts",
            "f(() => get(a));\nconst x = get(b);\nlet y = get(c);\n",
            [("get(a)", "get(a, opts)"), ("get(b)", "get(b, opts)")],
            [],  # nobody knows `opts` here
        ),
        (
            "a.ts",
            'import { opts } from "o";\nconst w = load(a);\nconst x = load(b);\nlet y = load(c);\n',
            [("load(a)", "load(a, opts)"), ("load(b)", "load(b, opts)")],
            [("load(c)", "load(c, opts)")],
        ),
        (
            "a.go",
            'package a\n\nfunc f() {\n\tlog.Printf("a", x)\n\tlog.Printf("b", x)\n\tlog.Printf("c", x)\n}\n',
            [('log.Printf("a", x)', 'log.Infof("a", x)'), ('log.Printf("b", x)', 'log.Infof("b", x)')],
            [('log.Printf("c", x)', 'log.Infof("c", x)')],
        ),
        (
            "a.rs",
            "fn f() {\n  let a = open(p).unwrap();\n  let b = open(q).unwrap();\n  let c = open(r).unwrap();\n}\n",
            [("open(p).unwrap()", "open(p)?"), ("open(q).unwrap()", "open(q)?")],
            [("open(r).unwrap()", "open(r)?")],
        ),
        (
            "A.java",
            "class A {\n  void f() {\n   assertEquals(1, x);\n   assertEquals(2, y);\n   assertEquals(3, z);\n  }\n}\n",
            [("assertEquals(1, x)", "assertThat(x, is(1))"), ("assertEquals(2, y)", "assertThat(y, is(2))")],
            [],  # `is` is not imported
        ),
    ],
)
async def test_languages(name: str, text: str, edits: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> None:
    found = await due({name: text}, *((name, old, new) for old, new in edits))
    assert [(each.old, each.new) for each in found.proposed] == wanted


async def test_a_parameter_is_renamed_in_its_function_and_at_calls() -> None:
    text = (
        "def load(path, size):\n    data = read(path)\n    return data, path\n\n\ndef other(path):\n    return path\n"
    )
    call = "from a import load\nload(path='x', size=1)\nopen(path='x')\n"
    found = await due(
        {"a.py": text, "b.py": call}, ("a.py", "load(path", "load(source"), ("a.py", "read(path)", "read(source)")
    )
    assert shown(found) == [("a.py", "path", "source"), ("b.py", "path", "source")]
    assert found.proposed[0].start == text.replace("path", "source", 2).index("path\n\n")


async def test_a_function_is_renamed_where_it_is_used() -> None:
    text = "def fetch(x):\n    return x\n\n\nvalue = fetch(1)\nother = fetch(2)\n"
    use = "from a import fetch\n\nprint(fetch(3))\nnew.fetch(4)\n"
    found = await due(
        {"a.py": text, "b.py": use}, ("a.py", "def fetch", "def load"), ("a.py", "value = fetch", "value = load")
    )
    assert [(path, old) for path, old, _ in shown(found)] == [("a.py", "fetch"), ("b.py", "fetch"), ("b.py", "fetch")]


async def test_a_name_that_is_still_defined_elsewhere_stays() -> None:
    text = "def fetch(x):\n    return x\n\n\nvalue = fetch(1)\nother = fetch(2)\n"
    found = await due(
        {"a.py": text, "b.py": "def fetch(): ...\n\n\nfetch()\n"},
        ("a.py", "def fetch", "def load"),
        ("a.py", "value = fetch", "value = load"),
    )
    assert shown(found) == []


async def test_places_that_were_left_out_between_say_that_it_is_not_plain() -> None:
    text = "".join(f"x{n} = fetch(a{n})\n" for n in range(6))
    found = await due({"a.py": text}, ("a.py", "fetch(a0)", "load(a0)"), ("a.py", "fetch(a2)", "load(a2)"))
    assert shown(found) == []


async def test_what_is_made_in_one_file_is_due_in_that_file_and_of_two_files_in_all() -> None:
    text = "import lib\nlib.old(1)\nlib.old(2)\nlib.old(3)\n"
    before = dict.fromkeys(("a.py", "b.py", "c.py"), text)
    one = await due(before, ("a.py", "lib.old(1)", "lib.new(1)"), ("a.py", "lib.old(2)", "lib.new(2)"))
    assert {each.path for each in one.proposed} == {"a.py"}
    two = await due(before, ("a.py", "lib.old(1)", "lib.new(1)"), ("b.py", "lib.old(2)", "lib.new(2)"))
    assert [each.path for each in two.proposed] == ["b.py", "a.py", "a.py", "c.py", "c.py", "c.py"]


@pytest.mark.parametrize("ending", [".py", ".go", ".ts", ".rs"])
async def test_what_is_made_in_one_function_is_due_in_that_function(ending: str) -> None:
    head, end = {".py": ("def {}(t):", ""), ".go": ("func {}(t *T) {{", "}\n")}.get(ending, ("", "}\n"))
    head = head or {".ts": "function {}(t) {{", ".rs": "fn {}(t: T) {{"}[ending]
    start = "package a\n\n" if ending == ".go" else ""

    def body(*calls: str) -> str:
        return "".join(f"    t.fail({each}){';' * (ending == '.rs')}\n" for each in calls)

    text = f"{start}{head.format('one')}\n{body('a', 'b', 'c')}{end}\n{head.format('two')}\n{body('d', 'e')}{end}"
    name = f"a{ending}"
    first, second = (name, "t.fail(a)", "t.stop(a)"), (name, "t.fail(b)", "t.stop(b)")
    assert shown(await due({name: text}, first, second)) == [(name, "t.fail(c)", "t.stop(c)")]
    # In two functions of the file: in all of it.
    other = (name, "t.fail(d)", "t.stop(d)")
    found = await due({name: text}, first, second, (name, "t.fail(c)", "t.stop(c)"), other)
    assert shown(found) == [(name, "t.fail(e)", "t.stop(e)")]


async def test_what_is_made_in_two_files_of_a_folder_is_due_in_that_folder() -> None:
    texts = {f"{place}/{name}.py": f"import old\n\nold.run({name})\n" for place in ("p/x", "p/y") for name in "abc"}
    edits = [(f"p/x/{name}.py", f"old.run({name})", f"old.run({name}, 1)") for name in "ab"]
    assert [each.path for each in (await due(texts, *edits)).proposed] == ["p/x/c.py"]
    wide = [edits[0], ("p/y/b.py", "old.run(b)", "old.run(b, 1)")]
    found = await due(texts, *wide)
    assert {each.path for each in found.proposed} == {"p/x/b.py", "p/x/c.py", "p/y/a.py", "p/y/c.py"}


async def test_another_project_is_another_matter() -> None:
    text = "import lib\nlib.old(1)\nlib.old(2)\n"
    before = {"p/a.py": text, "p/b.py": text, "p/c.py": text, "q/a.py": text}
    found = await due(before, ("p/a.py", "lib.old(1)", "lib.new(1)"), ("p/b.py", "lib.old(2)", "lib.new(2)"))
    assert {each.path for each in found.proposed} == {"p/a.py", "p/c.py"}


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        ("x = 1\ny = 1\nz = 1\n", [("x = 1", "x = 2"), ("y = 1", "y = 2")]),
        ("# see a\n# see a\n# see a\n", [("# see a", "# see b"), ("# see a", "# see b")]),
        ("f('one')\ng('one')\nh('one')\n", [("'one'", "'two'"), ("'one'", "'two'")]),
        ("a = f(x)\nb = f(y)\nc = f(z)\n", [("f(x)", "wrap(f(x))"), ("f(y)", "wrap(f(y))")]),
        ("from time import time\nfrom json import time\n", [("import time", "import t"), ("import time", "import t")]),
    ],
)
async def test_changes_that_say_too_little(text: str, edits: list[tuple[str, str]]) -> None:
    assert shown(await due({"a.py": text}, *(("a.py", old, new) for old, new in edits))) == []


async def test_an_import_goes_with_its_uses() -> None:
    text = "from time import time\n\nprint(time())\n"
    found = await due(
        dict.fromkeys(("a.py", "b.py", "c.py"), text),
        ("a.py", "import time", "import monotonic"),
        ("b.py", "import time", "import monotonic"),
    )
    assert shown(found) == []


async def test_signs_of_several_bytes() -> None:
    text = "é = 'größe'\nx = fetch(a)\ny = fetch(b)\nz = '𝔘'; w = fetch(c)\n"
    found = await due({"a.py": text}, ("a.py", "fetch(a)", "fetch(a, 3)"), ("a.py", "fetch(b)", "fetch(b, 3)"))
    (each,) = found.proposed
    assert text.replace("fetch(a)", "fetch(a, 3)").replace("fetch(b)", "fetch(b, 3)")[each.start : each.end] == each.old


async def test_broken_and_unknown_texts_are_no_trouble() -> None:
    for name, text in (("a.py", "def (((\nfetch(a)\nfetch(b)\n"), ("a.txt", "fetch(a) fetch(b)"), ("a.py", "\0\n")):
        edits = [(name, "fetch(a)", "load(a)"), (name, "fetch(b)", "load(b)")] if "fetch" in text else []
        await due({name: text}, *edits)


def applied(text: str, found: Sequence[Proposed]) -> str:
    for each in sorted(found, key=lambda each: -each.start):
        assert text[each.start : each.end] == each.old
        text = text[: each.start] + each.new + text[each.end :]
    return text


@given(seed=st.integers(0, 10**9))
async def test_random_edits_never_overlap_and_are_due_once(seed: int) -> None:
    """Edits of random calls: what is proposed is the text that is there, and after it nothing more is due."""
    dice = random.Random(seed)
    names = ["alpha", "beta", "gamma"]

    def value(depth: int = 0) -> str:
        if depth > 1 or dice.random() < 0.5:
            return dice.choice(["x", "y", "1", "'s'"])
        return f"{dice.choice(names)}({', '.join(value(depth + 1) for _ in range(dice.randrange(1, 4)))})"

    lines = [f"v{number} = {dice.choice(names)}({value()})\n" for number in range(12)]
    text = "x = y = 0\n" + "".join(lines)
    old, new = dice.choice(names), dice.choice([*names, "delta"])
    edited = text
    for _ in range(2):
        edited = (
            edited.replace(f"= {old}(", f"= {new}(", 1) if dice.random() < 0.7 else edited.replace("x)", "x, 7)", 1)
        )
    files = Files({"a.py": edited})
    history = History().opened("a.py", text).noted("a.py", edited)
    found = (await search(history, files)).proposed
    ranges = sorted((each.start, each.end) for each in found)
    assert all(one[1] <= other[0] for one, other in pairwise(ranges))
    files.texts["a.py"] = after = applied(edited, found)
    again = (await search(history.noted("a.py", after), files)).proposed
    assert not {(each.old, each.new) for each in again} & {(each.old, each.new) for each in found}
