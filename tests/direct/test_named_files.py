"""Code goes into the file that the reply names, and a sentence makes no new file."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.answer import Files, is_file_name, may_be_new, meant, read_answer
from codeagent_lsp.direct.fences import parts_of, path_in

USER = "class User:\n    name = ''\n\n\nclass Meta:\n    pass\n"
ORDER = "class Order:\n    total = 0\n\n\nclass Meta:\n    pass\n"
APP = "def main():\n    return 1\n"
CLI = "def main():\n    return 2\n"


@pytest.mark.parametrize(
    ("line", "name", "fence"),
    [
        ("修改后的config.yaml如下：", "config.yaml", "yaml"),
        ("修改后的config.yaml：", "config.yaml", "yaml"),
        ("Here is the updated package for Node.js 18:", "Node.js", "json"),
        ("In order to do that, config.yaml has to be:", "config.yaml", "yaml"),
    ],
)
@pytest.mark.parametrize("shown", [{}, {"app/settings.json": '{\n  "a": 1\n}\n'}])
def test_a_sentence_makes_no_file(line: str, name: str, fence: str, shown: dict[str, str]) -> None:
    answer = read_answer(f"{line}\n```{fence}\nzzz: 1\n```", Files(shown), "whole")
    assert name not in answer.texts
    assert answer.texts == {}
    assert answer.problem


@pytest.mark.parametrize(
    "line",
    ["修改后的config.yaml如下：", "修改后的config.yaml：", "更新 config/config.yaml，内容如下：", "`config.yaml`："],
)
def test_a_sentence_names_a_shown_file(line: str) -> None:
    answer = read_answer(f"{line}\n```yaml\na: 2\n```", Files({"config/config.yaml": "a: 1\n", "b.yaml": ""}), "whole")
    assert answer.texts == {"config/config.yaml": "a: 2\n"}


def test_a_product_is_no_file_unless_it_is_shown() -> None:
    reply = "Here is the updated package for Node.js 18:\n```json\n{\n  'a': 2\n}\n```"
    assert read_answer(reply, Files({"a.json": "{\n  'a': 1\n}\n"}), "whole").texts == {"a.json": "{\n  'a': 2\n}\n"}
    assert not any(map(is_file_name, ("Node.js", "res.json", "self.c", "np.sum")))


def test_a_shown_name_may_have_blanks() -> None:
    files = Files({"my notes.yaml": "a: 1\n", "notes/b.yaml": "b: 1\n"})
    answer = read_answer("my notes.yaml\n```yaml\na: 2\n```", files, "whole")
    assert answer.texts == {"my notes.yaml": "a: 2\n"}
    assert answer.prose == ""


@pytest.mark.parametrize(
    "line",
    ["src/b.py", "`src/b.py`", "**src/b.py**:", "File: src/b.py", "### 1. `src/b.py` (new file)", "1. **src/b.py**",
     "Create `src/b.py`:", "文件：src/b.py", "新文件：`src/b.py`（新建）"],
)  # fmt: skip
def test_a_path_alone_makes_a_file(line: str) -> None:
    assert read_answer(f"{line}\n```python\nX = 1\n```", Files({"a.py": APP}), "whole").texts == {"src/b.py": "X = 1\n"}


def test_a_file_of_no_known_kind_is_not_made() -> None:
    assert read_answer("foo.bar9\n```\nx\n```", Files({}), "whole").texts == {}
    assert not may_be_new("v1.2")


@pytest.mark.parametrize("path", ["path/to/a.py", "file/a.py", "in/a.py", "create/a.py"])
def test_a_folder_is_no_decoration(path: str) -> None:
    assert path_in(path) == path


def test_two_names_are_no_single_one() -> None:
    assert path_in("see a.py and b.py", ("a.py", "b.py")) == ""
    assert path_in("see src/a.py", ("a.py", "src/a.py")) == "src/a.py"


def test_a_new_file_of_the_same_name_is_another_file() -> None:
    reply = f"app/orders/models.py\n```python\n{ORDER}```"
    answer = read_answer(reply, Files({"app/users/models.py": USER}), "function")
    assert answer.texts == {"app/orders/models.py": ORDER}


def test_a_new_file_that_defines_the_same_name_is_another_file() -> None:
    answer = read_answer(f"cli.py\n```python\n{CLI}```", Files({"app.py": APP}), "function")
    assert answer.texts == {"cli.py": CLI}


@pytest.mark.parametrize("line", ["cli.py", "Now change main in cli.py, so that it returns 2:"])
def test_a_file_that_was_not_shown_is_told(line: str) -> None:
    answer = read_answer(f"{line}\n```python\n{CLI}```", Files({"app.py": APP}, creates=False), "function")
    assert (answer.texts, answer.unknown) == ({}, ("cli.py",))


@pytest.mark.parametrize("path", ["app.py", "/home/me/src/app.py", "project/src/app.py", "src/app.py", "./src/app.py"])
def test_a_shown_file_by_a_part_of_its_path(path: str) -> None:
    assert read_answer(f"{path}\n```python\n{CLI}```", Files({"src/app.py": APP}), "function").texts == {
        "src/app.py": CLI
    }


def test_a_folder_tells_files_of_one_name_apart() -> None:
    known = ("models.py", "users/models.py")
    assert meant("orders/models.py", known) == ()
    assert meant("users/models.py", known) == ("users/models.py",)
    assert meant("app/users/models.py", known) == ("users/models.py",)
    assert meant("models.py", ("users/models.py", "orders/models.py")) == ("users/models.py", "orders/models.py")


def test_a_bare_name_of_two_files_is_settled_by_what_they_define() -> None:
    files = Files({"users/models.py": USER, "orders/models.py": "class Order:\n    total = 0\n"})
    answer = read_answer("models.py\n```python\nclass Order:\n    total = 1\n```", files, "function")
    assert answer.texts == {"orders/models.py": "class Order:\n    total = 1\n"}


def test_a_block_for_another_file_is_not_applied() -> None:
    reply = "src/b.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n"
    answer = read_answer(reply, Files({"src/a.py": APP}), "blocks")
    assert (answer.texts, answer.unknown) == ({}, ("src/b.py",))


def test_a_block_makes_a_new_file() -> None:
    reply = "src/b.py\n<<<<<<< SEARCH\n=======\nX = 1\n>>>>>>> REPLACE\n"
    assert read_answer(reply, Files({"src/a.py": APP}), "blocks").texts == {"src/b.py": "X = 1\n"}


def test_a_path_in_a_sentence_is_mentioned() -> None:
    (fence,) = parts_of("This is for src/b.py now:\n```\nx\n```").fences
    assert (fence.path, fence.mentioned) == ("src/b.py", True)
    (alone,) = parts_of("src/b.py:\n```\nx\n```").fences
    assert (alone.path, alone.mentioned) == ("src/b.py", False)


def test_a_name_like_a_word_has_to_be_set_off() -> None:
    assert path_in("Here is the build script:", ("build",)) == ""
    assert path_in("Here is `build`:", ("build",)) == "build"
    assert path_in("The Makefile needs it:", ("Makefile",)) == "Makefile"


def test_a_command_about_another_file_is_no_code() -> None:
    reply = f"app.py\n```python\n{CLI}```\nRun tests/test_app.py with:\n```sh\npytest tests/test_app.py\n```\n"
    assert read_answer(reply, Files({"app.py": APP}), "function").texts == {"app.py": CLI}


COPIES = ("~§", "§~", "#§#", ".§.swp", ".#§", "§.bak", "§.orig", "§.rej", "§.tmp", "§.1", "§.~1~", "§,v", "§;1", "§c")
SISTERS = ("+§", "$§", "_§", "x§", "x.§", "x-§")
LEADS = ("§", "`§`", "**§**", "File: §", "Here is `§`:", "### `§`", "The file `§` is now:", "新文件：`§`")
CODE = "let x = 3;"


def answers(path: str, old: str) -> list[str]:
    """Replies that change the file of this path, in each way to name it."""
    fence = f"```\n{CODE}\n```\n"
    return [
        *(f"{lead.replace('§', path)}\n{fence}" for lead in LEADS),
        f"```ts {path}\n{CODE}\n```\n",
        f"```ts:{path}\n{CODE}\n```\n",
        f"```\n// {path}\n{CODE}\n```\n",
        f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{CODE}\n>>>>>>> REPLACE\n",
        f"```diff\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{CODE}\n```\n",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", [*COPIES, *SISTERS])
def test_a_name_beside_another_is_not_taken_for_it(form: str) -> None:
    changes_only_what_it_names("src/a.py", form)


@pytest.mark.slow
@pytest.mark.parametrize("own", ["a.tsx", "deep/er/page.ts"])
@pytest.mark.parametrize("form", [*COPIES, *SISTERS])
def test_nor_elsewhere(own: str, form: str) -> None:
    changes_only_what_it_names(own, form)


def changes_only_what_it_names(own: str, form: str) -> None:
    """Of a file and its copy or sister, whichever are shown: what names one changes that one, or nothing."""
    folder, slash, name = own.rpartition("/")
    other = f"{folder}{slash}{form.replace('§', name)}"
    texts = {own: "let x = 1;\n", other: "let x = 2;\n"}
    for target in texts:
        for shown in (texts, {own: texts[own]}, {other: texts[other]}):
            for reply in answers(target, texts[target].strip()):
                changed = read_answer(reply, Files(shown), "whole").texts
                assert set(changed) <= {target}, reply
    for target in (own, other) if form not in (".§.swp",) else (own,):
        assert read_answer(answers(target, "")[0], Files(texts), "whole").texts == {target: f"{CODE}\n"}
