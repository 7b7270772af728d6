"""An accepted change is in the text or known not to be, whatever the editor's habits and its user's: scenarios by a
generator, each judged by what stands in the editor's own text afterwards.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange
from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.files.uris import from_path
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, position_at, split_lines
from tests.leaping import leaping

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
ANSWERS = ("yes", "yes", "yes", "no", "no, and does it", "yes, and does it later", "error", "silence")
EVENTS = ("nothing", "above", "below", "end", "typed and undone", "opened anew", "opened with other text", "on disk")
TAILS = ("", " é", " 😀 漢字", " e\u0301\u200d🚀", " " + "x" * 3_000)
TYPED = re.compile("TYPED\n?")


@dataclass
class Habits:
    """What one scenario is made of, all of it by the seed."""

    seed: int

    def __post_init__(self) -> None:
        chosen = self.chosen = random.Random(self.seed)
        self.encoding = chosen.choice(ENCODINGS)
        self.versioned, self.counts = chosen.random() < 0.8, chosen.random() < 0.9
        self.skips = chosen.random() < 0.4  # says yes to an edit of another version, and leaves it out
        self.whole_text, self.is_open = chosen.random() < 0.4, chosen.random() < 0.9
        self.tells_after = chosen.choice((0.0, 0.001, 0.05, 0.3))
        self.answer, self.event = chosen.choice(ANSWERS), chosen.choice(EVENTS)
        self.before_request = chosen.random() < 0.4
        self.ends = chosen.choice((("\n",), ("\r\n",), ("\n", "\r\n")))

    def texts(self) -> tuple[str, str]:
        """Return a text and what the change makes of it."""
        chosen, tail = self.chosen, self.chosen.choice(TAILS)
        base = [f"line {number}{tail}{chosen.choice(self.ends)}" for number in range(chosen.randint(1, 30))]
        if chosen.random() < 0.25:
            base[-1] = base[-1].rstrip("\r\n")
        text = [*base]
        for number in range(chosen.randint(1, 4)):
            place = chosen.randrange(len(text) or 1)
            new = [f"NEW {number}{chosen.choice(self.ends)}"]
            text[place : place + chosen.randint(0, 1)] = chosen.choice((new, new, []))
        return "".join(base), "".join(text)


@dataclass
class HabitClient:
    """An editor with a text of its own and one file. `documents` is what it has told the server."""

    habits: Habits
    path: Path
    own: Document | None = None
    asked: int = 0
    _untold: list[Callable[[], Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.documents = Documents(self.habits.encoding)
        policy = ClientPolicy(
            versioned_edits=self.habits.versioned,
            applies_edits=True,
            drops_stale=self.habits.versioned and self.habits.skips,
        )
        client = Client(cast("CodeAgentServer", self), policy=policy)
        self.editor = LspEditor(client, lambda path: Path(path).read_bytes().decode())

    @property
    def text(self) -> str:
        return self.own.text if self.own else self.path.read_bytes().decode()

    def open(self, text: str) -> None:
        document = self.own = Document(from_path(str(self.path)), text, 1)
        self._tell(lambda: self.documents.open(document), after=0.0)

    def happens(self) -> None:
        """Do what the user or another program does meanwhile."""
        event, text = self.habits.event, self.text
        if event == "on disk":
            self.path.write_bytes(f"TYPED\n{text}".encode())
            if self.own:
                self._change([Change(f"TYPED\n{text}")])
        elif self.own and event.startswith("opened"):
            self._tell(lambda: self.documents.close(from_path(str(self.path))), after=0.0)
            self.open(f"TYPED\n{text}" if "other" in event else text)
        elif self.own and event != "nothing":
            last = position_at(text, LineIndex.of(text), len(text), self.habits.encoding)
            lines = {"below": len(split_lines(text)) - 1}
            at = (last.line, last.character) if event == "end" else (max(0, lines.get(event, 0)), 0)
            self._change([Change("TYPED" if event == "end" else "TYPED\n", at, at)])
            if event == "typed and undone":
                self._change([Change("", (0, 0), (1, 0))])

    async def request(self, method: str, params: types.ApplyWorkspaceEditParams, seconds: float) -> Any:
        self.asked += 1
        answer = self.habits.answer if self.asked == 1 else "yes"
        if self.asked == 1 and not self.habits.before_request:
            self.happens()
        await asyncio.sleep(0.001)
        if answer in ("error", "no"):
            if answer == "error":
                raise EditorError("editor.error", method=method, message="it cannot", code=-1)
            return types.ApplyWorkspaceEditResult(applied=False)
        if "later" in answer:
            asyncio.get_running_loop().call_later(0.5, self._carry_out, params)
            return types.ApplyWorkspaceEditResult(applied=True)
        done = self._carry_out(params)
        if answer == "silence":
            await asyncio.sleep(seconds)
            raise EditorError("editor.timeout", method=method, seconds=seconds)
        said = answer == "yes" and (done or self.habits.skips)
        return types.ApplyWorkspaceEditResult(applied=said)

    def _carry_out(self, params: types.ApplyWorkspaceEditParams) -> bool:
        wanted = params.edit.document_changes
        given = cast("types.TextDocumentEdit", wanted[0]) if wanted else None
        edits = given.edits if given else next(iter((params.edit.changes or {}).values()))
        if self.own is None:
            self.open(self.text)
        version = given.text_document.version if given else None
        if version is not None and self.own and version != self.own.version:
            return False
        ranges = [(cast("types.TextEdit", each).new_text, each.range) for each in reversed(edits)]
        self._change([Change(t, (r.start.line, r.start.character), (r.end.line, r.end.character)) for t, r in ranges])
        return True

    def _change(self, changes: list[Change]) -> None:
        assert self.own is not None
        for change in changes:
            self.own = self.own.apply(change, self.habits.encoding, version=self.own.version)
        uri, version = self.own.uri, (self.own.version or 0) + self.habits.counts
        self.own = replace(self.own, version=version)
        told = [Change(self.own.text)] if self.habits.whole_text else changes
        self._tell(lambda: self.documents.change(uri, version, told), self.habits.tells_after)

    def _tell(self, what: Callable[[], Any], after: float) -> None:
        """Tell the server in the order of what happens; the opening of a file at once, with all before it."""
        self._untold.append(what)

        def told() -> None:
            for each in self._untold:
                each()
            self._untold.clear()

        if after:
            asyncio.get_running_loop().call_later(after, told)
        else:
            told()


async def scenario(seed: int, path: Path) -> str:
    """Return what is wrong after one scenario, or ""."""
    habits = Habits(seed)
    base, text = habits.texts()
    _write(path, base)
    client = HabitClient(habits, path)
    if habits.is_open:
        client.open(base)
    if habits.before_request:
        client.happens()
    if base == text:
        return ""
    wanted = Changeset((FileChange(str(path), base, text, version=1 if habits.is_open else None),))
    applied = await client.editor.apply(wanted, "label")
    await asyncio.sleep(60)
    problem = _problem(client, base, text, applied)
    if problem or applied.outcome == "full" or applied.conflicts:
        return problem
    again = await client.editor.apply(applied.left, "label")  # as its user would, now that it does as it says
    await asyncio.sleep(60)
    return "" if again.conflicts else _problem(client, base, text, again)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def _problem(client: HabitClient, base: str, text: str, applied: Applied) -> str:
    runs = len(list(merge.runs(base, text)))
    chosen = [frozenset(number for number in range(runs) if bits >> number & 1) for bits in range(1 << runs)]
    found = {merge.select_hunks(base, text, some): len(some) for some in chosen}
    now = client.text
    came = next((found[each] for each in (now, TYPED.sub("", now)) if each in found), None)
    if client.own and client.documents.get(client.own.uri) != client.own:
        return "the server has another text"
    if applied.conflicts:
        return ""  # where lines meet, the runs are others
    if came is None:
        return f"neither in nor out: {now!r}"
    said = {"full": came == runs, "none": came == 0, "partial": 0 < came < runs, "unknown": True}[applied.outcome]
    return "" if said else f"{applied.outcome}, but {came} of {runs} are there"


@pytest.mark.slow
@pytest.mark.parametrize("some", range(3))
@leaping
async def test_it_is_in_the_text_or_known_not_to_be(tmp_path: Path, some: int) -> None:
    assert {seed: told for seed in range(some, 30, 3) if (told := await scenario(seed, tmp_path / "a.py"))} == {}


@pytest.mark.slow
@pytest.mark.parametrize("some", range(8))
@leaping
async def test_nor_in_many_scenarios(tmp_path: Path, some: int) -> None:
    assert {seed: told for seed in range(some, 1_200, 8) if (told := await scenario(seed, tmp_path / "a.py"))} == {}


@leaping
async def test_two_runs_that_change_one_file_at_once_both_land(tmp_path: Path) -> None:
    """In an editor without versions, what one has sent moves the lines of the other's edits."""
    habits = replace(Habits(0))
    habits.versioned, habits.is_open, habits.answer, habits.event = False, True, "yes", "nothing"
    path, base = tmp_path / "a.py", "".join(f"line {number}\n" for number in range(9))
    texts = [base.replace("line 1\n", "NEW\nline 1\n"), base.replace("line 7\n", "7\n")]
    client = HabitClient(habits, path)
    client.open(base)
    changes = [Changeset((FileChange(str(path), base, text, version=1),)) for text in texts]
    applied = await asyncio.gather(*(client.editor.apply(change, "label") for change in changes))
    assert [each.outcome for each in applied] == ["full", "full"]
    assert client.text == texts[0].replace("line 7\n", "7\n")


@leaping
async def test_a_file_for_which_the_editor_does_not_answer_keeps_no_other_back(tmp_path: Path) -> None:
    habits = replace(Habits(0))
    habits.versioned, habits.is_open, habits.answer, habits.event = True, False, "silence", "nothing"
    client = HabitClient(habits, tmp_path / "a.py")
    ended: dict[str, float] = {}

    async def change(name: str) -> None:
        path = tmp_path / name
        _write(path, "one\n")
        await client.editor.apply(Changeset((FileChange(str(path), "one\n", "two\n"),)), "label")
        ended[name] = asyncio.get_running_loop().time()

    await asyncio.gather(change("a.py"), change("b.py"))
    assert ended["b.py"] < ended["a.py"]
