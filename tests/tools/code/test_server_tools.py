"""Tools that ask language servers: exact answers say so, edits are verified, and a server that lies changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codeagent_lsp.config import PermissionsSettings, Settings
from codeagent_lsp.language_servers.answers import CodeServers, ServerQuestion
from codeagent_lsp.tools.code import server_tools
from codeagent_lsp.workspace.changes.changeset import Changeset, Current
from codeagent_lsp.workspace.files import uris
from tests.tools.code.fake_servers import FakeServers, Reply, at, edit, span
from tests.tools.fakes import Bench

CART = "class Cart:\n    def total(self) -> int:\n        return 0\n"
USE = "from cart import Cart\n\nprint(Cart().total())  # 😀 total\n"


@pytest.fixture
def shop(bench: Bench) -> Bench:
    bench.write("cart.py", CART)
    bench.write("use.py", USE)
    return bench


def with_servers(bench: Bench, **replies: Reply) -> FakeServers:
    named = {name.replace("_", "/"): reply for name, reply in replies.items()}  # a slash is in no name of Python
    servers = FakeServers(named)
    bench.add((CodeServers, servers))
    return servers


class TestRename:
    async def test_one_call_changes_all_files(self, shop: Bench) -> None:
        both = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        both["documentChanges"] += edit(shop.path("use.py"), (2, 13, 18, "amount"))["documentChanges"]
        servers = with_servers(shop, textDocument_rename=lambda question: both)
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert "2 places in 2 files, by fake (lsp)" in result.text
        assert shop.text("cart.py") == CART.replace("total", "amount")
        assert shop.text("use.py") == USE.replace("().total()", "().amount()")
        question = servers.asked[0]
        assert (question.start, question.more) == (CART.index("total"), {"newName": "amount"})

    async def test_undone_as_one_step(self, shop: Bench) -> None:
        with_servers(shop, textDocument_rename=lambda question: edit(shop.path("cart.py"), (1, 8, 13, "amount")))
        await shop.call("rename_symbol", path="cart.py", line=2, new_name="amount")
        shop.staging.undo()
        assert not shop.changeset

    async def test_one_that_leaves_out_a_file_is_refused(self, shop: Bench) -> None:
        uses = [at(shop.path("use.py"), 2, 13, 18), at("/usr/lib/other.py", 1, 0, 5)]
        with_servers(
            shop,
            textDocument_rename=lambda question: edit(shop.path("cart.py"), (1, 8, 13, "amount")),
            textDocument_references=lambda question: uses,
        )
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert not result.ok
        assert "fake would leave out 1 of 1 files that use total (use.py)" in result.text
        assert not shop.changeset

    @pytest.mark.parametrize(
        "lie",
        [
            (0, 6, 10, "amount"),  # other text
            (1, 8, 99, "amount"),  # beyond the line
            (77, 0, 5, "amount"),  # beyond the text
            (1, 13, 8, "amount"),  # backwards
            (1, 8, 13, "am ount("),  # breaks the syntax
            (1, 8, 13, "amount(self): ...\n\n    def total"),  # more than a name
        ],
    )
    async def test_a_server_that_lies_changes_nothing(self, shop: Bench, lie: tuple[int, int, int, str]) -> None:
        with_servers(shop, textDocument_rename=lambda question: edit(shop.path("cart.py"), lie))
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert not result.ok
        assert not shop.changeset

    async def test_nothing_outside_of_the_workspace(self, shop: Bench) -> None:
        with_servers(shop, textDocument_rename=lambda question: edit("/etc/hosts", (0, 0, 0, "x")))
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert not result.ok
        assert not shop.changeset

    async def test_edits_that_overlap_are_refused(self, shop: Bench) -> None:
        made = edit(shop.path("cart.py"), (1, 8, 13, "amount"), (1, 8, 13, "sum"))
        with_servers(shop, textDocument_rename=lambda question: made)
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert "overlap" in result.text
        assert not shop.changeset

    async def test_an_edit_of_a_version_that_never_was_is_refused(self, shop: Bench) -> None:
        made = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        made["documentChanges"][0]["textDocument"]["version"] = -3
        with_servers(shop, textDocument_rename=lambda question: made)
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert "never was" in result.text
        assert not shop.changeset

    @pytest.mark.parametrize(("more", "right"), [("", True), ("import os\n", False)])
    async def test_a_whole_file_may_differ_in_the_name_alone(self, shop: Bench, more: str, right: bool) -> None:
        made = edit(shop.path("cart.py"), (0, 0, 0, more + CART.replace("total", "amount")))
        made["documentChanges"][0]["edits"][0]["range"]["end"] = {"line": 3, "character": 0}
        with_servers(shop, textDocument_rename=lambda question: made)
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert result.ok is right and bool(shop.changeset) is right

    @pytest.mark.parametrize("version", [-1, -(10**30), True, 1.5, "7", [], 6, 8])
    async def test_an_edit_of_another_version_is_refused(self, shop: Bench, version: Any) -> None:
        shop.open("cart.py", CART, version=7)
        made = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        made["documentChanges"][0]["textDocument"]["version"] = version
        servers = with_servers(shop, textDocument_rename=lambda question: made)
        servers.lent = True
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert not result.ok and "version" in result.text
        assert not shop.changeset
        made["documentChanges"][0]["textDocument"]["version"] = 7
        assert (await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")).ok

    @pytest.mark.parametrize(("mode", "made_it"), [("ask", True), ("acceptEdits", False), ("bypass", False)])
    async def test_what_a_server_wants_confirmed_is_not_applied_unseen(
        self, shop: Bench, mode: Any, made_it: bool
    ) -> None:
        made = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        made["documentChanges"][0]["edits"][0]["annotationId"] = "risky"
        made["changeAnnotations"] = {"risky": {"label": "Also in\x1b[2J comments", "needsConfirmation": True}}
        with_servers(shop, textDocument_rename=lambda question: made)
        shop.configure(replace(Settings(), permissions=PermissionsSettings(mode=mode)))
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert result.ok is made_it and "Also in comments" in result.text
        assert bool(shop.changeset) is made_it

    async def test_the_users_rules_hold_for_every_file(self, shop: Bench) -> None:
        both = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        both["documentChanges"] += edit(shop.path("use.py"), (2, 13, 18, "amount"))["documentChanges"]
        with_servers(shop, textDocument_rename=lambda question: both)
        shop.configure(replace(Settings(), permissions=PermissionsSettings(deny=("edit_file(use.py)",))))
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert result.status == "denied"
        assert "use.py" in result.text
        assert not shop.changeset

    @pytest.mark.parametrize("rule", ["use.py", "/use.py", "*.py\n!cart.py"])
    async def test_files_that_the_users_ignore_file_names_are_left_alone(self, shop: Bench, rule: str) -> None:
        both = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        both["documentChanges"] += edit(shop.path("use.py"), (2, 13, 18, "amount"))["documentChanges"]
        with_servers(shop, textDocument_rename=lambda question: both)
        shop.write(".codeagentignore", rule + "\n")
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert result.status == "denied"
        assert "it would change use.py, which .codeagentignore names" in result.text
        assert not shop.changeset

    async def test_staged_text_counts(self, shop: Bench) -> None:
        await shop.call("write_file", path="cart.py", content=f"# one more line\n{CART}")
        with_servers(shop, textDocument_rename=lambda question: edit(shop.path("cart.py"), (2, 8, 13, "amount")))
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert result.ok
        assert shop.text("cart.py") == f"# one more line\n{CART}".replace("total", "amount")

    async def test_what_is_typed_while_it_is_verified_is_kept(
        self, shop: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shop.open("cart.py", CART)
        with_servers(shop, textDocument_rename=lambda question: edit(shop.path("cart.py"), (1, 8, 13, "amount")))
        verified = server_tools._verify

        def slow(*given: Any) -> Any:
            made = verified(*given)
            shop.open("cart.py", f"{CART}USER_TYPED = 2\n")
            return made

        monkeypatch.setattr(server_tools, "_verify", slow)
        assert (await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")).ok
        (change,) = shop.changeset
        assert (change.base, change.text) == (CART, CART.replace("total", "amount"))
        merged = shop.changeset.rebase({change.path: Current(f"{CART}USER_TYPED = 2\n")})
        assert merged.changeset.files[0].text == f"{CART.replace('total', 'amount')}USER_TYPED = 2\n"

    @pytest.mark.parametrize("decision", ["a file of the users own", "the staged text is discarded"])
    async def test_what_is_decided_while_it_is_verified_stops_it(
        self, shop: Bench, monkeypatch: pytest.MonkeyPatch, decision: str
    ) -> None:
        if decision.startswith("the staged"):
            shop.staging.write({shop.path("cart.py"): f"{CART}# staged\n"})
        made = edit(shop.path("cart.py"), (1, 8, 13, "amount"))
        made["documentChanges"].insert(0, {"kind": "create", "uri": uris.from_path(shop.path("new.py"))})
        with_servers(shop, textDocument_rename=lambda question: made)
        verified = server_tools._verify

        def slow(*given: Any) -> Any:
            found = verified(*given)
            if decision.startswith("the staged"):
                shop.staging.reset(Changeset())
            else:
                shop.open("new.py", "mine\n")
            return found

        monkeypatch.setattr(server_tools, "_verify", slow)
        result = await shop.call("rename_symbol", path="cart.py", symbol="Cart.total", new_name="amount")
        assert "has changed while its edit was made" in result.text
        assert not shop.changeset

    async def test_a_shorthand_gets_its_new_name_beside_it(self, shop: Bench) -> None:
        shop.write("a.js", "const total = 1;\nconst o = { total };\n")
        made = edit(shop.path("a.js"), (0, 6, 11, "sum"), (1, 12, 17, "total: sum"))
        with_servers(shop, textDocument_rename=lambda question: made)
        await shop.call("rename_symbol", path="a.js", symbol="total", new_name="sum")
        assert shop.text("a.js") == "const sum = 1;\nconst o = { total: sum };\n"

    async def test_without_a_server_what_is_sure_is_renamed_and_the_rest_is_told(self, shop: Bench) -> None:
        shop.write("vat.py", "def vat(x):\n    return vat(x - 1)\n")
        shop.write("till.py", "from vat import vat\n\nprint(vat(1), bill.vat)\n")
        result = await shop.call("rename_symbol", path="vat.py", symbol="vat", new_name="tax")
        assert result.ok and "4 places in 2 files, by syntax, as no language server answered" in result.text
        assert shop.text("vat.py") == "def tax(x):\n    return tax(x - 1)\n"
        assert shop.text("till.py") == "from vat import tax\n\nprint(tax(1), bill.vat)\n"
        assert result.text.splitlines()[-1] == "  till.py: 1, 3"
        shop.staging.undo()
        assert not shop.changeset

    async def test_without_a_server_the_definition_is_needed(self, shop: Bench) -> None:
        result = await shop.call("rename_symbol", path="use.py", symbol="Cart", new_name="Basket")
        assert not result.ok and "Cart is not defined in use.py. Give the file that defines it." in result.text
        shop.write("a.txt", "total = 1\n")
        result = await shop.call("rename_symbol", path="a.txt", symbol="total", new_name="sum")
        assert not result.ok and "No language server answered for a.txt" in result.text
        assert not shop.changeset

    async def test_without_a_place_nothing_is_renamed(self, shop: Bench) -> None:
        result = await shop.call("rename_symbol", path="cart.py", symbol="nothing", new_name="amount")
        assert "There is no nothing in cart.py" in result.text
        result = await shop.call("rename_symbol", path="cart.py", new_name="amount")
        assert "Give symbol or line" in result.text

    async def test_a_new_file_and_a_move(self, shop: Bench) -> None:
        made: dict[str, Any] = {
            "documentChanges": [
                {"kind": "create", "uri": f"file://{shop.path('new.py')}"},
                {"textDocument": {"uri": f"file://{shop.path('new.py')}"}, "edits": [
                    {"range": span(0, 0, 0), "newText": "total = 1\n"}]},
                {"kind": "rename", "oldUri": f"file://{shop.path('use.py')}", "newUri": f"file://{shop.path('u.py')}"},
                {"kind": "delete", "uri": f"file://{shop.path('cart.py')}"},
            ]
        }  # fmt: skip
        offered = [{"title": "Move", "kind": "refactor", "edit": made}]
        with_servers(shop, textDocument_codeAction=lambda question: offered)
        result = await shop.call("code_actions", path="cart.py", apply="Move")
        assert result.ok, result.text
        assert shop.text("new.py") == "total = 1\n"
        assert shop.text("u.py") == USE
        assert not shop.seen("cart.py")
        assert not shop.seen("use.py")


class TestCodeActions:
    async def test_listed_without_commands(self, shop: Bench) -> None:
        offered = [
            {"title": "Import", "kind": "quickfix", "edit": edit(shop.path("cart.py"), (0, 0, 0, "import x\n"))},
            {"title": "Run it", "command": {"command": "run", "title": "Run it"}},
            {"title": "Only a command", "command": "run"},
            {"title": "Not now", "kind": "refactor", "disabled": {"reason": "no"}, "edit": {"changes": {}}},
            {"title": "Later", "kind": "refactor", "data": 7},
            "nonsense",
        ]
        with_servers(shop, textDocument_codeAction=lambda question: offered)
        result = await shop.call("code_actions", path="cart.py")
        assert result.text.splitlines() == ["Import (quickfix, fake)", "Later (refactor, fake)"]
        assert not shop.changeset

    async def test_one_that_is_resolved_first(self, shop: Bench) -> None:
        def resolved(question: ServerQuestion) -> Any:
            item = question.more["item"]
            return {**item, "edit": edit(shop.path("cart.py"), (0, 0, 0, "import x\n")), "command": {"command": "bad"}}

        offered = [{"title": "Import", "kind": "quickfix", "data": 7}]
        with_servers(shop, textDocument_codeAction=lambda question: offered, codeAction_resolve=resolved)
        result = await shop.call("code_actions", path="cart.py", line_start=2, apply="Import")
        assert result.ok
        assert shop.text("cart.py") == f"import x\n{CART}"

    async def test_a_wrong_title_names_the_right_ones(self, shop: Bench) -> None:
        offered = [{"title": "Import", "edit": {"changes": {}}}]
        with_servers(shop, textDocument_codeAction=lambda question: offered)
        result = await shop.call("code_actions", path="cart.py", apply="import it")
        assert "Offered: Import" in result.text

    async def test_snippets_are_refused(self, shop: Bench) -> None:
        made = edit(shop.path("cart.py"), (0, 0, 0, "x"))
        made["documentChanges"][0]["edits"][0] = {"range": span(0, 0, 0), "snippet": {"value": "$1"}}
        with_servers(shop, textDocument_codeAction=lambda question: [{"title": "A", "edit": made}])
        result = await shop.call("code_actions", path="cart.py", apply="A")
        assert not result.ok
        assert not shop.changeset


class TestAnswers:
    async def test_references_are_exact_and_say_so(self, shop: Bench) -> None:
        found = [
            at(shop.path("cart.py"), 1, 8, 13),
            at(shop.path("use.py"), 2, 13, 18),
            at(shop.path("use.py"), 99, 0, 1),
        ]
        servers = with_servers(shop, textDocument_references=lambda question: found)
        result = await shop.call("find_references", symbol="Cart.total")
        assert result.text.splitlines()[-1] == "(lsp: fake)"
        assert [(each["path"], each["line"], each["column"]) for each in result.data["references"]] == [
            ("use.py", 3, 14)
        ]
        assert servers.asked[0].more == {"context": {"includeDeclaration": True}}

    async def test_the_index_answers_where_no_server_does(self, shop: Bench) -> None:
        result = await shop.call("find_references", symbol="Cart.total")
        assert result.text.splitlines()[-1] == "(index, by name and syntax)"

    async def test_hidden_files_stay_hidden(self, shop: Bench) -> None:
        shop.rules(deny=("read_file(use.py)",))
        found = [at(shop.path("cart.py"), 1, 8, 13), at(shop.path("use.py"), 2, 13, 18)]
        with_servers(shop, textDocument_references=lambda question: found)
        result = await shop.call("find_references", symbol="Cart.total")
        assert "use.py" not in result.text
        assert "(1 in files that may not be shown)" in result.text

    async def test_a_definition_outside_of_the_workspace(self, shop: Bench) -> None:
        with_servers(shop, textDocument_definition=lambda question: at("/usr/lib/python3/sum.py", 4, 0, 3))
        result = await shop.call("find_definition", symbol="Cart", path="use.py")
        assert result.text.splitlines() == ["/usr/lib/python3/sum.py:5", "(lsp: fake)"]

    async def test_hover(self, shop: Bench) -> None:
        with_servers(shop, textDocument_hover=lambda question: {"contents": ["one", {"language": "x", "value": "two"}]})
        assert (await shop.call("hover", path="use.py", symbol="Cart")).text == "one\n\ntwo"

    async def test_calls(self, shop: Bench) -> None:
        total = {"name": "total", **at(shop.path("cart.py"), 1, 8, 13), "selectionRange": span(1, 8, 13)}
        user = {"name": "main", **at(shop.path("use.py"), 2, 0, 5), "selectionRange": span(2, 0, 5)}
        with_servers(
            shop,
            textDocument_prepareCallHierarchy=lambda question: [total],
            callHierarchy_incomingCalls=lambda question: [{"from": user}] if question.more["item"] == total else [],
        )
        result = await shop.call("call_graph", function_name="Cart.total", depth=3)
        assert "main (use.py:3) -> total" in result.text
        assert result.text.splitlines()[-1] == "(lsp: fake)"

    async def test_types(self, shop: Bench) -> None:
        cart = {"name": "Cart", **at(shop.path("cart.py"), 0, 6, 10), "selectionRange": span(0, 6, 10)}
        with_servers(
            shop,
            textDocument_prepareTypeHierarchy=lambda question: [cart],
            typeHierarchy_subtypes=lambda question: [{**cart, "name": "BigCart"}],
        )
        result = await shop.call("type_hierarchy", path="cart.py", symbol="Cart")
        assert "Subtypes of Cart: 1\n  BigCart cart.py:1" in result.text

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "nonsense", [None, 1, "x", [], {}, [1], [{}], {"contents": 5}, [{"uri": 3}], {"changes": 1}, [[[]]]]
    )
    async def test_nonsense_is_no_answer(self, shop: Bench, nonsense: Any) -> None:
        every = (
            "definition",
            "references",
            "hover",
            "rename",
            "codeAction",
            "prepareCallHierarchy",
            "prepareTypeHierarchy",
        )
        with_servers(shop, **{f"textDocument_{name}": lambda question: nonsense for name in every})
        for name, arguments in (
            ("find_definition", {"symbol": "Cart", "path": "use.py"}),
            ("find_references", {"symbol": "Cart.total"}),
            ("hover", {"path": "use.py", "symbol": "Cart"}),
            ("rename_symbol", {"path": "cart.py", "symbol": "Cart.total", "new_name": "amount"}),
            ("code_actions", {"path": "cart.py"}),
            ("call_graph", {"function_name": "Cart.total"}),
            ("type_hierarchy", {"path": "cart.py", "symbol": "Cart"}),
        ):
            await shop.call(name, **arguments)
        assert not shop.changeset
