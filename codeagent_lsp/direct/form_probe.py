"""Probes a model: asks for tiny edits in each answer form, and counts how many come out right.

An answer that can be read proves nothing; the edited file has to have the right syntax tree. Tool calls are tried
first: a model that does all of its edits by them is asked for nothing else. Not here: keeping the result
(`aptitude.py`), choosing a form for a task (`direct/question.py`).
"""

from __future__ import annotations

import ast
import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import History
from codeagent_lsp.agent.limits import LoopLimits
from codeagent_lsp.agent.loop import AgentLoop
from codeagent_lsp.agent.prompt import load
from codeagent_lsp.config import Settings
from codeagent_lsp.direct import TEXT_FORMS, AnswerForm, TextForm
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.aptitude import Proof, Score
from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import messages_for
from codeagent_lsp.errors import ContextOverflow, ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.llm.model import Model, ModelRequest, Reply
from codeagent_lsp.messages import Message
from codeagent_lsp.tools.context import tool_context
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.files.edit_tools import EditFile, WriteFile
from codeagent_lsp.tools.files.read_tools import ReadFile
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileText, FileView, NoBuffers
from codeagent_lsp.workspace.files.paths import Roots

FILE = "shapes.py"
TOOL_CALLS = 5
"""Limit of model calls for one edit by tools: reading, editing, answering, and two failures."""
# More than any of these edits needs in any form; a model that loops must not take minutes.
REPLY_TOKENS = 500

TEXT = '''"""Areas and lengths of plane shapes."""

LIMIT = 100


def rectangle_area(width, height):
    """The area of a rectangle."""
    return width + height


def square_area(side):
    """The area of a square."""
    return rectangle_area(side, side)


class Circle:
    """A circle around the origin."""

    def __init__(self, radius):
        self.radius = radius

    def diameter(self):
        """The length of the longest line through it."""
        return self.radius
'''


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit of the probe: what the model is asked, the text to replace in the sample file, and the right new
    text.
    """

    words: str
    before: str
    after: str


EDITS = (
    Edit(
        "rectangle_area in shapes.py adds where it should multiply. Fix it.",
        "return width + height",
        "return width * height",
    ),
    Edit(
        "The method diameter of Circle in shapes.py returns the radius. It should return twice the radius. Fix it.",
        "return self.radius\n",
        "return 2 * self.radius\n",
    ),
    Edit(
        "In shapes.py, give rectangle_area a third parameter named scale with the default 1, and multiply the sum "
        "width + height by it.",
        'def rectangle_area(width, height):\n    """The area of a rectangle."""\n    return width + height',
        'def rectangle_area(width, height, scale=1):\n    """The area of a rectangle."""\n'
        "    return (width + height) * scale",
    ),
)


async def probe(model: Model, on_form: Callable[[AnswerForm, Score], None] = lambda form, score: None) -> Proof:
    """Probe a model with three small edits in each answer form, the text forms only if tool calls were not all right;
    may take minutes. `on_form` is called after each form with its score.

    ModelError if the model cannot be reached. A reply that cannot be read counts as a failed edit.
    """
    scores: dict[AnswerForm, Score] = {}
    tools = scores["tools"] = await _try_form(model, "tools")
    on_form("tools", tools)
    for form in TEXT_FORMS if tools.share < 1.0 else ():
        scores[form] = await _try_form(model, form)
        on_form(form, scores[form])
    return Proof(scores, "probed")


def is_right(edit: Edit, text: str) -> bool:
    """Return whether `text` is the sample file with the edit done: the same syntax tree apart from docstrings and the
    order of operands of + and *. False if it does not parse.
    """
    wanted = TEXT.replace(edit.before, edit.after)
    try:
        return _form_of(text) == _form_of(wanted)
    except (SyntaxError, ValueError, RecursionError):
        return False


def _form_of(text: str) -> str:
    """Return the code as a dumped syntax tree without docstrings, with the operands of + and * in one order."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
            # `2 * self.radius` and `self.radius * 2` are both right.
            node.left, node.right = sorted((node.left, node.right), key=ast.dump)
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and len(body) > 1
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            del body[0]
    return ast.dump(tree)


async def _try_form(model: Model, form: AnswerForm) -> Score:
    """Return the score of one form over all edits."""
    meter = _Meter()
    begun = time.monotonic()
    done = 0
    for edit in EDITS:
        try:
            text = await (_by_tools(model, edit, meter) if form == "tools" else _by_text(model, edit, form, meter))
        except (ModelReplyInvalid, ModelStreamBroken, ContextOverflow):  # counts as a failed edit
            continue
        done += is_right(edit, text)
    seconds = time.monotonic() - begun
    return Score(done, len(EDITS), meter.prompt_tokens, meter.completion_tokens, seconds)


@dataclass(slots=True)
class _Meter:
    """Counts tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def take(self, event: events.Event) -> None:
        if isinstance(event, events.UsageReported):
            self.prompt_tokens += event.prompt_tokens
            self.completion_tokens += event.completion_tokens


async def _by_text(model: Model, edit: Edit, form: TextForm, meter: _Meter) -> str:
    """Return the file after an answer in one of the text forms; unchanged where the answer cannot be used."""
    material = Material((ShownFile(FILE, FileText(FILE, TEXT, "disk"), has_definitions=True),))
    request = ModelRequest(messages_for(edit.words, material, form), max_tokens=REPLY_TOKENS)
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                meter.prompt_tokens += item.usage.prompt_tokens
                meter.completion_tokens += item.usage.completion_tokens
                return read_answer(item.text, Files({FILE: TEXT}, creates=False), form).texts.get(FILE, TEXT)
    return TEXT


async def _by_tools(model: Model, edit: Edit, meter: _Meter) -> str:
    """Return the file after a loop of tool calls in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        # On macOS the folder for temporary files is a link, and paths are compared resolved.
        folder = await asyncio.to_thread(Path(name).resolve)
        await asyncio.to_thread((folder / FILE).write_text, TEXT, "utf-8")
        plain = FileView(Roots([str(folder)]), NoBuffers(), Staging(lambda path: None))
        staging = Staging(plain.base)
        view = FileView(Roots([str(folder)]), NoBuffers(), staging)
        context = tool_context(view, staging, Settings())
        registry = ToolRegistry([ReadFile(), EditFile(), WriteFile()])
        history = History([Message("system", load("system")), Message("user", edit.words)])
        executor = ToolExecutor(registry, context, lambda: "ask", Approvals())
        specs = registry.specs(("read", "write"), ("core",))
        limits = LoopLimits(TOOL_CALLS, reply_tokens=REPLY_TOKENS)
        await AgentLoop(model, executor, history, lambda: specs, meter.take, limits).run()
        return (await asyncio.to_thread(view.read, str(folder / FILE))).text
