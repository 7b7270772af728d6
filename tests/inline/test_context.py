"""Pieces: what looks alike, definitions of near names, the budget, and their order."""

from __future__ import annotations

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.inline.context import SLOW, Material, Place, definitions, names_near, pieces_for, similar

OTHER = """import os


def unrelated(value):
    for item in range(3):
        print(item)


def load_users(database, limit):
    rows = database.select("users", limit=limit)
    users = [User.from_row(row) for row in rows]
    log.info("loaded %d users", len(users))
    return users
"""
HERE = """def load_orders(database, limit):
    rows = database.select("orders", limit=limit)
    """


class Index:
    """An index with one class and one function."""

    SYMBOLS = (
        SymbolInfo("User", "class", "models.py", 1, 9, "class User:"),
        SymbolInfo("from_row", "method", "models.py", 2, 3, "def from_row(row) -> User", parent="User"),
        SymbolInfo("save", "method", "models.py", 4, 5, "def save(self) -> None", parent="User"),
        SymbolInfo("main", "function", "models.py", 7, 9, "def main()"),
    )

    def defining(self, name: str) -> tuple[str, ...]:
        return ("models.py",) if name in ("User", "main") else ("a.py", "b.py", "c.py", "d.py") if name == "get" else ()

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]:
        return self.SYMBOLS


def end(text: str, path: str = "here.py") -> Place:
    return Place(path, text, len(text))


def test_the_lines_that_look_alike_come_with_those_that_follow() -> None:
    best = similar(end(HERE), [("other.py", OTHER)], 1)[0]
    assert best.path == "other.py"
    assert "database.select" in best.text and "return users" in best.text


def test_pieces_do_not_overlap_and_the_cursors_own_lines_are_none() -> None:
    text = OTHER * 5
    found = similar(end(text + HERE), [("here.py", text + HERE)], 4)
    for one in found:
        assert all(one is other or one.end <= other.start or other.end <= one.start for other in found)
        assert "load_orders" not in one.text


def test_nothing_alike_is_nothing() -> None:
    assert similar(end("zzz_unknown(qqq)"), [("other.py", OTHER)], 4) == []
    assert similar(end(""), [("other.py", OTHER)], 4) == []


def test_near_names_with_the_called_ones_first() -> None:
    assert names_near(end("result = compute(total)\nuser = User.load(name"))[:3] == ["load", "User", "name"]


def test_a_class_is_described_with_its_members() -> None:
    (piece,) = definitions(end("user = User("), Index())
    assert piece.path == "models.py"
    assert piece.text == "class User:\n    def from_row(row) -> User\n    def save(self) -> None"


def test_names_that_say_nothing_have_no_definition() -> None:
    assert definitions(end("x.get("), Index()) == [], "too many files define it"
    assert definitions(end("User(", "models.py"), Index()) == [], "it is in this file"
    assert definitions(end("User("), Index(), ["class User:\n"]) == [], "it is shown already"


def test_the_most_telling_piece_is_last_and_the_budget_holds() -> None:
    material = Material((("other.py", OTHER), ("far.py", OTHER.replace("users", "things"))), Index())
    pieces = pieces_for(end(HERE + "users = [User("), material, SLOW)
    assert pieces[0].path == "models.py"
    assert pieces[-1].path == "other.py"
    assert sum(len(piece.path) + len(piece.text) for piece in pieces) <= SLOW.pieces
