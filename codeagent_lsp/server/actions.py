"""LSP code actions on a selection, a diagnostic or a file: commands built from memory, well within 10 ms.

No model, no parsing, no file is used here: an empty range is widened to the symbol around it when the command runs. Not
here: what the commands do (`commands/commands.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from codeagent_lsp.protocol import KIND_QUICKFIX, KIND_REWRITE, KIND_SOURCE
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.lenses import Waiting, waiting_actions
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import cut

KINDS = (KIND_REWRITE, KIND_QUICKFIX, KIND_SOURCE)

_ON_SELECTION = ("explain", "fix", "refactor", "document", "test")
_ON_FILE = (("explain", "explain"), ("document", "document"), ("test", "test"))
_TITLE_LENGTH = 80

MOST_COMMANDS = 12
"""How many of the users' own commands are offered: a longer menu hides the other actions."""

Answer = list[types.CodeAction | types.Command]


@dataclass(frozen=True, slots=True)
class Offers:
    """The code actions besides the fixed ones: for what waits for the user, and for the commands that users wrote, as
    names with descriptions. `is_review`: the document is a diff, in which only what waits is offered.
    """

    waiting: tuple[Waiting, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()
    is_review: bool = False


def code_actions(
    params: types.CodeActionParams,
    policy: ClientPolicy,
    offers: Offers,
    whole_file: types.Range | None,
    language: str,
) -> Answer:
    """Return all code actions for a range, of the kinds that the client asked for (`context.only`; none: all), as plain
    commands for a client without code action literals. `whole_file` is the range of the document, None when it is not
    open. Pure.
    """
    wanted = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
    uri = params.text_document.uri
    found: list[types.CodeAction] = []
    lines = (params.range.start.line, params.range.end.line)
    for title, command, argument in waiting_actions(offers.waiting, uri, lines):
        found.append(_action(title, KIND_QUICKFIX, command, argument, policy))
    if not offers.is_review:
        found.extend(_on_code(params, policy, offers, whole_file, language, wanted))
    chosen = [item for item in found if not wanted or any(_covers(kind, str(item.kind)) for kind in wanted)]
    # An older client knows only commands.
    return list(chosen) if policy.action_literals else [item.command for item in chosen if item.command]


def _on_code(
    params: types.CodeActionParams,
    policy: ClientPolicy,
    offers: Offers,
    whole_file: types.Range | None,
    language: str,
    wanted: Sequence[str],
) -> list[types.CodeAction]:
    uri, found = params.text_document.uri, list[types.CodeAction]()
    for diagnostic in params.context.diagnostics:
        found.append(_fix(uri, diagnostic, policy, language))
    place = {"uri": uri, "range": _range(params.range)}
    for name in _ON_SELECTION:
        kind = KIND_QUICKFIX if name == "fix" else KIND_REWRITE
        found.append(_action(text(f"action.{name}", language), kind, f"codeagent.{name}", place, policy))
    for name in ("edit", "ask", "prompt"):
        found.append(_action(text(f"action.{name}", language), KIND_REWRITE, f"codeagent.{name}", place, policy))
    for name, description in offers.commands[:MOST_COMMANDS]:
        title = f"/{name}: {description}"[:_TITLE_LENGTH] if description else f"/{name}"
        found.append(_action(title, KIND_REWRITE, "codeagent.command", {"name": name, **place}, policy))
    # Only if asked for by name: clients show `source` actions in a menu of their own.
    if whole_file is not None and any(_covers(kind, KIND_SOURCE) for kind in wanted):
        place = {"uri": uri, "range": _range(whole_file)}
        for name, command in _ON_FILE:
            title = text(f"action.file.{name}", language)
            found.append(_action(title, f"{KIND_SOURCE}.{name}", f"codeagent.{command}", place, policy))
    return found


def _fix(uri: str, diagnostic: types.Diagnostic, policy: ClientPolicy, language: str) -> types.CodeAction:
    short = cut(" ".join(diagnostic.message.split()), _TITLE_LENGTH)
    argument = {
        "uri": uri,
        "range": _range(diagnostic.range),
        "diagnostics": [{"message": diagnostic.message, "line": diagnostic.range.start.line + 1}],
    }
    title = text("action.fix_diagnostic", language, message=short)
    action = _action(title, KIND_QUICKFIX, "codeagent.fix", argument, policy)
    action.diagnostics = [diagnostic]
    return action


def _action(title: str, kind: str, command: str, argument: dict[str, Any], policy: ClientPolicy) -> types.CodeAction:
    order = types.Command(title=title, command=command, arguments=[argument])
    action = types.CodeAction(title=title, kind=kind, command=order)
    if policy.action_tags:
        action.tags = [types.CodeActionTag.LlmGenerated]
    return action


def _covers(wanted: str, kind: str) -> bool:
    return kind == wanted or kind.startswith(f"{wanted}.")


def _range(value: types.Range) -> dict[str, Any]:
    return {
        "start": {"line": value.start.line, "character": value.start.character},
        "end": {"line": value.end.line, "character": value.end.character},
    }
