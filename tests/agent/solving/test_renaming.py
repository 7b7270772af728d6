"""Renames that the words of a task say plainly: read from them, and done by the syntax tree."""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.solving.renaming import Rename, home_of, rename_in, renamed, still_used
from codeagent_lsp.tools.code.source import SourceFile, source_of

STOCK = '''"""What is sold. The Obj is at the heart of it."""


class Obj:
    def more(self, count):
        """Another Obj with more of it. Obj is never changed."""
        return Obj(self.title, self.count + count)  # an Obj, not an Object


def both(first, second):
    Obj_count = {"Obj": 2}
    return [first, second]
'''
STORE = """from stock import Obj


def delivery(titles):
    Objs = [Obj(title, 1) for title in titles]
    return [f"one {each}: {Obj.__name__}" for each in Objs]


def other(obj):
    def Obj():
        return 1
    return Obj()
"""


def sources(**texts: str) -> dict[str, SourceFile]:
    found = {name.replace("__", "."): source_of(name.replace("__", "."), text) for name, text in texts.items()}
    return {name: source for name, source in found.items() if source is not None}


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        ("Rename the class Obj in stock.py to Good, everywhere it is used.", "Obj", "Good"),
        ("Obj should be called Good. Please rename this class in the whole project; the tests do so.", "Obj", "Good"),
        ("Please rename Obj to Good in stock.py and in all files that use it. Nothing may be left.", "Obj", "Good"),
        ("请把 stock.py 中的 Obj 改名为 Good，所有用到它的文件也要一起改。", "Obj", "Good"),
        ("把`get_user`重命名为`load_user`", "get_user", "load_user"),
        ("重命名 fetchAll 为 loadAll。", "fetchAll", "loadAll"),
        ("rename `Loader.fetch` to `load`", "Loader.fetch", "load"),
        ("rename Loader.fetch() to Loader.load()", "Loader.fetch", "load"),
        ("Renaming the function named go → forward", "go", "forward"),
        ("Change the name of the constant MAX to MAX_TRIES", "MAX", "MAX_TRIES"),
        ("rename all uses of the error Bad to BadInput", "Bad", "BadInput"),
        ("The method `mv` must be renamed to `move`.", "mv", "move"),
    ],
)  # fmt: skip
def test_what_the_words_ask_for(words: str, old: str, new: str) -> None:
    assert rename_in(words) == Rename(old, new)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Rename it to something clearer.",
        "Rename the variables in stock.py to be consistent.",
        "Rename one to first and rename two to second.",
        "Fix the test, do not change any names.",
        "What should this be called?",
        "rename Obj to Obj",
        "Move Obj to stock.py",
    ],
)
def test_what_is_not_said_plainly_is_none(words: str) -> None:
    assert rename_in(words) is None


@pytest.mark.parametrize(
    "words",
    [
        "Rename one to first and two to second.",
        "Rename Obj to Good and add a method less.",
        "Rename Obj to Good. Then fix the test.",
        "Rename Obj to Good and update the README.",
        "Rename Obj to Good but keep an alias for old callers.",
        "Rename Obj to Good in stock.py only.",
        "Rename Obj to Good, don't touch the tests.",
        "把 Obj 改名为 Good，然后删除 store.py",
        "只在 stock.py 中把 Obj 改名为 Good",
        "Rename Obj to Good." + " " * 2000 + "It is late.",
    ],
)
def test_a_task_that_asks_for_more_is_not_only_a_rename(words: str) -> None:
    asked = rename_in(words)
    assert asked is not None and not asked.alone


def test_the_definition_its_uses_and_where_it_is_spoken_of() -> None:
    files = sources(stock__py=STOCK, store__py=STORE)
    asked = Rename("Obj", "Good")
    home = home_of(asked, files, ())
    assert home is not None and home.path == "stock.py"
    texts = renamed(asked, home, files)
    assert texts["stock.py"] == STOCK.replace("Obj", "Good").replace("Goodect", "Object").replace(
        "Good_count", "Obj_count"
    ).replace(". Good is", ". Obj is")  # at the beginning of a sentence it may be an ordinary word
    inner = STORE.index("    def Obj")
    assert texts["store.py"] == STORE[:inner].replace("Obj", "Good").replace("Goods", "Objs") + STORE[inner:]
    now = sources(stock__py=texts["stock.py"], store__py=texts["store.py"])
    assert still_used(asked, home, now) == ()
    assert still_used(asked, home, files) == ("stock.py", "store.py")
    assert still_used(asked, home, {**now, "store.py": files["store.py"]}) == ("store.py",)


def test_methods_and_their_calls_on_objects() -> None:
    robot = "class Robot:\n    def go(self, steps):\n        # go on, `go` on\n        return self.go(steps - 1)\n"
    path = "from robot import Robot\n\n\ndef end(go):\n    return Robot().go(go)\n"
    asked = Rename("go", "forward")
    files = sources(robot__py=robot, path__py=path)
    home = home_of(asked, files, ())
    assert home is not None
    assert renamed(asked, home, files) == {
        "robot.py": "class Robot:\n    def forward(self, steps):\n        # go on, `forward` on\n"
        "        return self.forward(steps - 1)\n",
        "path.py": path.replace(".go(go)", ".forward(go)"),
    }


def test_other_languages() -> None:
    used = 'import { fetchAll } from "./a";\nexport const all = { fetchAll, s: `${fetchAll(2)} fetchAll` };\n'
    files = sources(a__ts="export function fetchAll(n: number) { return n; }\n", b__ts=used)
    asked = Rename("fetchAll", "loadAll")
    home = home_of(asked, files, ())
    assert home is not None
    assert renamed(asked, home, files) == {
        "a.ts": "export function loadAll(n: number) { return n; }\n",
        "b.ts": used.replace("fetchAll", "loadAll").replace("{ loadAll, s", "{ fetchAll: loadAll, s"),
    }


def test_what_cannot_be_told_apart_is_left_to_the_model() -> None:
    both = sources(a__py="def go():\n    pass\n", b__py="def go():\n    pass\n")
    asked = Rename("go", "forward")
    assert home_of(asked, both, ()) is None and home_of(asked, {}, ()) is None
    chosen = home_of(asked, both, ["b.py"])
    assert chosen is not None and chosen.path == "b.py"
    two = sources(a__py="class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\n")
    assert home_of(asked, two, ()) is None
    one = home_of(Rename("A.go", "forward"), two, ())
    assert one is not None
    assert renamed(Rename("A.go", "forward"), one, two)["a.py"].count("forward") == 1
    taken = sources(a__py="def go():\n    pass\n\n\ndef forward():\n    pass\n")
    home = home_of(asked, taken, ())
    assert home is not None and renamed(asked, home, taken) == {}
