"""The tools of group `code`: buffers and staged texts count, permissions hold, the index only helps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.workspace.changes.changeset import FileChange
from tests.tools.code.indexes import real_index, with_index
from tests.tools.fakes import Bench

SHOP = {
    "shop/__init__.py": "",
    "shop/cart.py": (
        "from shop.prices import total\n\n\nclass Cart:\n    # adds\n    def add(self, item):\n"
        "        self.items.append(item)\n\n    def checkout(self):\n        return total(self.items)\n"
    ),
    "shop/prices.py": "from shop import taxes\n\n\ndef total(items):\n    return sum(items) + taxes.vat(items)\n",
    "shop/taxes.py": "def vat(items):\n    total = 19\n    return total\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_it():\n    Cart().checkout()\n",
    "notes.txt": "the total is computed in prices\n",
}


@pytest.fixture
def shop(bench: Bench) -> Bench:
    for name, text in SHOP.items():
        bench.write(name, text)
    return bench


class TestReading:
    async def test_the_outline_of_a_file(self, shop: Bench) -> None:
        result = await shop.call("ast_parse", path="shop/cart.py")
        assert result.text.splitlines() == [
            "shop/cart.py (python)",
            "imports: shop.prices",
            "4-10 class class Cart",
            "  6-7 method [Cart] def add(self, item)",
            "  9-10 method [Cart] def checkout(self)",
        ]
        assert result.data["symbols"][1] == {
            "name": "Cart.add", "kind": "method", "type": "method", "path": "shop/cart.py", "file_path": "shop/cart.py",
            "line_start": 6, "line_end": 7,
            "signature": "def add(self, item)", "docstring": "adds",
        }  # fmt: skip

    async def test_errors_are_told_by_line(self, shop: Bench) -> None:
        shop.write("bad.py", "def f(): ...\nx = ((\n")
        assert (await shop.call("ast_parse", path="bad.py")).data["errors"] == ["line 2"]

    async def test_buffers_and_staged_texts_count(self, shop: Bench) -> None:
        shop.open("shop/taxes.py", "def duty(): ...\n")
        assert "duty" in (await shop.call("ast_parse", path="shop/taxes.py")).text
        await shop.call("write_file", path="shop/taxes.py", content="def fee(): ...\n")
        result = await shop.call("ast_find_symbols", path="shop/taxes.py")
        assert [each["name"] for each in result.data] == ["fee"]

    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            ({"name": "cart"}, ["Cart", "Cart.add", "Cart.checkout"]),
            ({"name": "total"}, ["total"]),
            ({"kind": "class"}, ["Cart"]),
            ({"path": "tests"}, ["test_it"]),
            ({"path": "shop/cart.py", "kind": "method"}, ["Cart.add", "Cart.checkout"]),
            ({"name": "nothing"}, []),
        ],
    )
    async def test_symbols_by_name_kind_and_place(
        self, shop: Bench, tmp_path: Path, arguments: dict[str, str], names: list[str]
    ) -> None:
        for index in (False, True):
            if index:
                with_index(shop, SHOP, tmp_path)
            result = await shop.call("ast_find_symbols", **arguments)
            assert [each["name"] for each in result.data] == names, result.text

    async def test_the_text_of_a_method_with_its_lines(self, shop: Bench) -> None:
        result = await shop.call("ast_extract_function", path="shop/cart.py", function_name="Cart.add")
        assert result.text == "5|    # adds\n6|    def add(self, item):\n7|        self.items.append(item)"
        assert (result.data["start_line"], result.data["end_line"]) == (5, 7)

    async def test_a_name_that_is_not_there_is_answered_with_those_that_are(self, shop: Bench) -> None:
        result = await shop.call("ast_extract_function", path="shop/cart.py", function_name="ad")
        assert not result.ok and "Cart.add (line 6)" in result.text

    async def test_imports_and_the_files_they_name(self, shop: Bench) -> None:
        result = await shop.call("ast_get_imports", path="shop/prices.py")
        assert result.text == "1: shop (taxes) -> shop/taxes.py"
        assert result.data == [{"module": "shop", "names": ["taxes"], "line": 1, "files": ["shop/taxes.py"]}]

    async def test_go_packages_by_the_name_of_their_module(self, bench: Bench) -> None:
        bench.write("go.mod", "module example.org/x\n\ngo 1.22\n")
        bench.write("main.go", 'package main\n\nimport "example.org/x/pkg"\n')
        bench.write("pkg/a.go", "package pkg\n")
        result = await bench.call("ast_get_imports", path="main.go")
        assert result.data[0]["files"] == ["pkg/a.go"]

    @pytest.mark.parametrize("tool", ["ast_parse", "ast_get_imports"])
    async def test_an_unknown_language_is_said(self, shop: Bench, tool: str) -> None:
        result = await shop.call(tool, path="notes.txt")
        assert not result.ok and "language of notes.txt is not known" in result.text


class TestDefinitionsAndReferences:
    async def test_where_a_name_is_defined(self, shop: Bench) -> None:
        result = await shop.call("find_definition", symbol="Cart.checkout")
        first, source = result.text.splitlines()
        assert first == "shop/cart.py:9-10 method Cart.checkout: def checkout(self)"
        assert source == "(index, by name and syntax)"

    async def test_a_file_that_uses_it_leads_to_the_one_that_defines_it(self, shop: Bench) -> None:
        result = await shop.call("find_definition", symbol="vat", path="shop/prices.py")
        assert result.text.startswith("Not defined in shop/prices.py, but in:\nshop/taxes.py:1-3 function vat")

    async def test_nothing(self, shop: Bench) -> None:
        result = await shop.call("find_definition", symbol="nothing")
        assert result.ok and result.data == [] and "No definition of nothing" in result.text

    async def test_uses_in_all_files_local_names_left_out_texts_apart(self, shop: Bench) -> None:
        result = await shop.call("find_references", symbol="total")
        assert [(site["path"], site["line"], site["kind"]) for site in result.data["references"]] == [
            ("shop/cart.py", 1, "import"),
            ("shop/cart.py", 10, "call"),
        ]
        assert [site["path"] for site in result.data["definitions"]] == ["shop/prices.py"]
        assert result.data["left_out"] == 2
        assert result.data["text_matches"] == [{"path": "notes.txt", "line": 1, "text": SHOP["notes.txt"].strip()}]
        assert "In files of unknown languages, by text alone:\nnotes.txt:1: the total" in result.text

    async def test_in_one_file_only(self, shop: Bench) -> None:
        result = await shop.call("find_references", symbol="total", path="shop/prices.py")
        assert result.data["references"] == [] and len(result.data["definitions"]) == 1

    async def test_an_index_that_is_behind_does_no_harm(self, shop: Bench, tmp_path: Path) -> None:
        """It knows a file that is gone, an older text of another, and nothing of what is open and staged."""
        with_index(shop, {**SHOP, "gone.py": "total()\n", "shop/taxes.py": "total()\n"}, tmp_path)
        shop.open("open.py", "import shop\nshop.prices.total()\n")
        await shop.call("write_file", path="staged.py", content="total()\n")
        result = await shop.call("find_references", symbol="total")
        assert [(site["path"], site["line"]) for site in result.data["references"]] == [
            ("open.py", 2), ("shop/cart.py", 1), ("shop/cart.py", 10), ("staged.py", 1)
        ]  # fmt: skip

    async def test_an_index_that_is_being_built_is_done_without(self, shop: Bench, tmp_path: Path) -> None:
        with_index(shop, None, tmp_path)
        assert len((await shop.call("find_references", symbol="total")).data["references"]) == 2

    @pytest.mark.slow
    async def test_the_real_index_gives_the_same(self, shop: Bench, tmp_path: Path) -> None:
        without = [
            await shop.call("find_references", symbol="total"),
            await shop.call("ast_find_symbols", name="a"),
            await shop.call("dependency_graph"),
            await shop.call("call_graph", function_name="total"),
        ]
        async with real_index(shop, tmp_path):
            assert [result.text for result in without] == [
                (await shop.call("find_references", symbol="total")).text,
                (await shop.call("ast_find_symbols", name="a")).text,
                (await shop.call("dependency_graph")).text,
                (await shop.call("call_graph", function_name="total")).text,
            ]
            await shop.call("write_file", path="new.py", content="from shop.prices import total\n")
            assert "new.py:1:25 import" in (await shop.call("find_references", symbol="total")).text
            await shop.call("delete_file", path="shop/cart.py")
            assert "shop/cart.py" not in (await shop.call("find_references", symbol="total")).text
            assert "shop/cart.py" not in (await shop.call("dependency_graph")).text

    async def test_files_that_may_not_be_read_are_not_looked_into(self, shop: Bench, tmp_path: Path) -> None:
        denied = replace(PermissionsSettings(), deny=("read_file(shop/**)",))
        shop.configure(replace(Settings(), permissions=denied))
        for index in (False, True):
            if index:
                with_index(shop, SHOP, tmp_path)
            for tool, arguments in (
                ("find_references", {"symbol": "total"}),
                ("find_definition", {"symbol": "total"}),
                ("ast_find_symbols", {"name": "total"}),
                ("dependency_graph", {}),
            ):
                result = await shop.call(tool, **arguments)
                assert "def total" not in result.text and "shop/cart.py:" not in result.text, tool
                assert "prices.py ->" not in result.text


class TestGraphs:
    async def test_callers_and_callees(self, shop: Bench) -> None:
        result = await shop.call("call_graph", function_name="total")
        assert result.text.splitlines()[:4] == [
            "total (shop/prices.py:4) -> vat",
            "Cart.checkout (shop/cart.py:9) -> total",
            "test_it (tests/test_cart.py:4) -> Cart.checkout",
            "Where the others are:",
        ]
        assert result.data["mermaid"].startswith('flowchart LR\n  n0["total"]\n')
        assert {node["label"] for node in result.data["nodes"]} == {"total", "vat", "Cart.checkout", "test_it"}

    async def test_depth(self, shop: Bench) -> None:
        result = await shop.call("call_graph", function_name="total", depth=1)
        assert {node["label"] for node in result.data["nodes"]} == {"total", "vat", "Cart.checkout"}

    async def test_a_function_that_is_not_there(self, shop: Bench) -> None:
        result = await shop.call("call_graph", function_name="nothing")
        assert not result.ok and "No definition of nothing" in result.text

    async def test_files_by_their_imports(self, shop: Bench) -> None:
        result = await shop.call("dependency_graph")
        assert result.text.splitlines() == [
            "shop/cart.py -> shop/prices.py",
            "shop/prices.py -> shop/taxes.py",
            "tests/test_cart.py -> shop/cart.py",
        ]

    async def test_around_one_file(self, shop: Bench) -> None:
        result = await shop.call("dependency_graph", path="shop/prices.py")
        assert [(edge["source"], edge["target"]) for edge in result.data["edges"]] == [
            ("shop/cart.py", "shop/prices.py"),
            ("shop/prices.py", "shop/taxes.py"),
        ]

    async def test_in_one_folder(self, shop: Bench) -> None:
        result = await shop.call("dependency_graph", path="tests")
        assert result.text == "tests/test_cart.py -> shop/cart.py"


class TestEditing:
    async def test_an_edit_is_staged_and_shown(self, shop: Bench) -> None:
        path = shop.path("shop/taxes.py")
        edits = [{"target": "vat", "operation": "replace_body", "code": "return 7"}]
        result = await shop.call("edit_by_ast", path="shop/taxes.py", edits=edits)
        after = "def vat(items):\n    return 7\n"
        assert (
            result.ok and "line 2 in place of 2 lines: return 7" in result.text and result.data == {"change_id": "c1"}
        )
        assert shop.changeset.files == (FileChange(path, SHOP["shop/taxes.py"], after),)
        assert shop.disk()["shop/taxes.py"] == SHOP["shop/taxes.py"].encode()

    async def test_edits_build_on_what_is_staged_over_what_is_open(self, shop: Bench) -> None:
        shop.open("shop/taxes.py", "def duty(): ...\n", version=7)
        for code in ("return 1", "return 2"):
            edits = [{"target": "duty", "operation": "replace_body", "code": code}]
            assert (await shop.call("edit_by_ast", path="shop/taxes.py", edits=edits)).ok
        assert shop.text("shop/taxes.py") == "def duty():\n    return 2\n"
        assert shop.changeset.files[0].version == 7

    async def test_a_rename_tells_of_other_places(self, shop: Bench, tmp_path: Path) -> None:
        shop.write("shop/prices.py", SHOP["shop/prices.py"] + "# total\n")
        shop.write("shop/more.py", "subtotals = total_of = 1\n")
        for index in (False, True):
            if index:
                with_index(shop, SHOP, tmp_path)
                await shop.call("undo_patch")
            edits = [{"target": "total", "operation": "rename", "code": "amount"}]
            result = await shop.call("edit_by_ast", path="shop/prices.py", edits=edits)
            assert "Not renamed, look at them: total on line 6" in result.text
            assert "Other files use the name total and were not changed: shop/cart.py, shop/taxes.py" in result.text

    async def test_a_refusal_changes_nothing(self, shop: Bench) -> None:
        edits = [
            {"target": "vat", "operation": "delete"},
            {"target": "none", "operation": "delete"},
        ]
        result = await shop.call("edit_by_ast", path="shop/taxes.py", edits=edits)
        assert (result.status, result.error and result.error.code) == ("failed", "EDIT_REFUSED")
        assert "Edit 2 (delete none) was refused, so none was made" in result.text and not shop.changeset

    @pytest.mark.parametrize(
        ("path", "edits", "said"),
        [
            ("/etc/passwd", [{"target": "f", "operation": "delete"}], "outside"),
            ("none.py", [{"target": "f", "operation": "delete"}], "does not exist"),
            ("notes.txt", [{"target": "f", "operation": "delete"}], "not known here"),
            ("shop/taxes.py", [], "edits"),
            ("shop/taxes.py", [{"target": "vat", "operation": "explode"}], "operation"),
        ],
    )
    async def test_calls_that_cannot_be_made(
        self, shop: Bench, path: str, edits: list[dict[str, str]], said: str
    ) -> None:
        result = await shop.call("edit_by_ast", path=path, edits=edits)
        assert not result.ok and said in result.text and not shop.changeset

    async def test_protected_places_need_the_users_approval(self, shop: Bench) -> None:
        shop.write(".git/hooks/pre-commit.py", "def f(): ...\n")
        edits = [{"target": "f", "operation": "delete"}]
        result = await shop.call("edit_by_ast", path=".git/hooks/pre-commit.py", edits=edits)
        assert result.status == "denied" and not shop.changeset

    async def test_it_is_not_offered_where_nothing_may_change(self, shop: Bench) -> None:
        names = {spec["name"] for spec in shop.registry.specs(("read", "ask"), ("code",))}
        assert "ast_parse" in names and "edit_by_ast" not in names
