"""The commands `codeagent-lsp map` and `codeagent-lsp search`: the index's answers, as the model gets them.

Not here: bringing the index up to date (`index_place.py`), finding the answers (`index/answers.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from codeagent_lsp.errors import UsageError
from codeagent_lsp.index.answers import Answers
from codeagent_lsp.index.chunks import Chunk
from codeagent_lsp.index.rank import Task
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.policy_file import read_policy
from codeagent_lsp.settings_layers import environment_layer, load
from codeagent_lsp.terminal.index_place import DONE, FAILED, IndexLocation, brought_up, say, with_index
from codeagent_lsp.terminal.safe import one_line, visible
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, NothingStaged
from codeagent_lsp.workspace.files.paths import Roots


def map_command(workspace: str, query: str, tokens: int, *, as_json: bool) -> int:
    """Print the map for a task, or the overview, and return the exit code; 1 if there is nothing to show."""

    def action(place: IndexLocation) -> int:
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        may_read = _as_the_model(files.roots)
        made = (
            answers.task_map(files, Task(query), tokens, may_read)
            if query.strip()
            else answers.overview(files, tokens, may_read)
        )
        if as_json:
            say(_json({"text": made.text, "tokens": estimate_tokens(made.text), "files": made.shown}))
        else:
            say(visible(made.text).rstrip("\n") if made.text else text("index.no_map", place.language))
        return DONE if made.text else FAILED

    return with_index(workspace, action)


def search_command(workspace: str, query: str, limit: int, *, as_json: bool) -> int:
    """Print the best matching pieces of code with path, lines and score, and return the exit code;
    1 if there are none.
    """

    def action(place: IndexLocation) -> int:
        if not query.strip():
            raise UsageError("index.no_query")
        brought_up(place)
        answers, files = Answers(place.store, place.folders), _on_disk(place)
        found = answers.search(files, query, limit, lambda path: True)
        if as_json:
            say(_json([_fields(chunk) for chunk in found]))
        elif found:
            say("\n".join(_line(chunk) for chunk in found))
        else:
            say(text("index.nothing_found", place.language))
        return DONE if found else FAILED

    return with_index(workspace, action)


def _on_disk(place: IndexLocation) -> FileView:
    return FileView(Roots([place.folder]), NoBuffers(), NothingStaged())


def _as_the_model(roots: Roots) -> Callable[[str], bool]:
    """Return a predicate of what the model may read without asking; a map shows only the names of other files."""
    from codeagent_lsp.tools.permissions.may_read import may_read  # late: a search does without it

    settings, _ = load(environment_layer(), policy=read_policy())
    return may_read(settings.permissions, roots)


def _line(chunk: Chunk) -> str:
    place = f"{chunk.path}:{chunk.line_start}-{chunk.line_end}"
    return one_line("  ".join(filter(None, (place, f"{chunk.score:.2f}", chunk.symbol))), width=400)


def _fields(chunk: Chunk) -> dict[str, object]:
    return {
        "path": chunk.path,
        "line_start": chunk.line_start,
        "line_end": chunk.line_end,
        "score": chunk.score,
        "symbol": chunk.symbol,
        "text": chunk.text,
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
