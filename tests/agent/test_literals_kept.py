"""What stands inside strings stays as it is, however a model has moved the code around it: in every language."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.agent.forms.answer import Files, read_answer
from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.workspace.edits.match import replace
from tests.agent.literals import LANGUAGES, Written, case, moved

WAYS = ("same", "dedented", "deeper", "other blanks")
ROUNDS = 30


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_a_quick_action(written: Written, way: str) -> None:
    chance = random.Random(f"{written.path}{way}")
    for _ in range(ROUNDS):
        given = case(written, chance)
        if way == "other blanks" and written.path.endswith((".kt", ".lua", ".pl")):
            continue  # without a grammar tabs and blanks stay as a model gives them
        wanted = given.text[: given.start] + given.changed + given.text[given.end :]
        reply = moved(given.changed, given, way)
        assert replaced(given.text, given.start, given.end, reply, given.path) == wanted, reply


INDEXED = {name: written for name, written in LANGUAGES.items() if not written.path.endswith((".kt", ".lua", ".pl"))}


@pytest.mark.parametrize("way", ["same", "dedented", "deeper"])
@pytest.mark.parametrize("written", INDEXED.values(), ids=INDEXED.keys())
def test_the_form_function_and_the_tool_edit_by_ast(written: Written, way: str) -> None:
    chance = random.Random(f"{written.path}{way}")
    name = "F" if written.path.endswith(".cs") else "f"
    for _ in range(ROUNDS):
        given = case(written, chance)
        wanted = given.text[: given.start] + given.changed + given.text[given.end :]
        reply = moved(given.changed, given, way)
        assert edited(given.path, given.text, [AstEdit(name, "replace", reply)]).text == wanted, reply
        answer = read_answer(f"```\n{reply}```", Files({given.path: given.text}), "function")
        assert answer.texts == {given.path: wanted}, answer.problem


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("written", LANGUAGES.values(), ids=LANGUAGES.keys())
def test_an_edit_of_lines_places_them_right_or_not_at_all(written: Written, way: str) -> None:
    chance, placed = random.Random(f"{written.path}{way}"), 0
    for _ in range(ROUNDS):
        given = case(written, chance)
        old = given.text[given.start : given.end]
        opening = f"{written.literal[0]}\n"
        new = given.changed.replace(opening, f"{opening}\tmore\n    less\n")
        wanted = given.text[: given.start] + new + given.text[given.end :]
        try:
            found = replace(given.text, moved(old, given, way), moved(new, given, way)).text
        except EditRefused:
            continue
        placed += 1
        assert found == wanted
    assert placed == ROUNDS or way != "same"
