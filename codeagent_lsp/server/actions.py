"""Code actions and code lenses: on a selection, a diagnostic or a file, and for what waits for the user, pending
changes and questions. Commands built from memory, well within 10 ms.

No model, no parsing, no file is read here: an empty range is widened to the symbol around it when the command runs. To
compare documents, links in their paths are followed on disk, which takes about 25 µs each. Not here: what the commands
do (`commands/commands.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.protocol import KIND_QUICKFIX, KIND_REWRITE, KIND_SOURCE
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.visible import cut, in_box

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run


KINDS = (KIND_REWRITE, KIND_QUICKFIX, KIND_SOURCE)

_ON_SELECTION = ("explain", "fix", "refactor", "document", "test")
_ON_FILE = (("explain", "explain"), ("document", "document"), ("test", "test"))
_TITLE_LENGTH = 80

MOST_COMMANDS = 12
"""How many of the users' own commands are offered: a longer menu hides the other actions."""

Answer = list[types.CodeAction | types.Command]

QUESTION_LENGTH = 240
TASK_LENGTH = 40


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


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that waits for the user. `uri` is the document it is about, None for none, and `line` the line in it,
    from 0; `actions` are (title, command, argument). With `lens` False it is offered as code actions alone. With a
    `last` line, the actions are offered from `line` to that only, and their titles need no other words.
    """

    kind: str
    title: str
    uri: str | None
    actions: tuple[tuple[str, str, dict[str, Any]], ...]
    line: int = 0
    lens: bool = True
    last: int | None = None

    def without(self, titles: Collection[str]) -> Waiting:
        """Return this without the actions of these titles."""
        return replace(self, actions=tuple(action for action in self.actions if action[0] not in titles))


def at_work(run_id: str, title: str, language: str) -> Waiting:
    """Return the offers for a run that has not ended: to say something to it, and to stop it; code actions alone, their
    words in `language` (`en`, `zh-cn`), as for all functions here.
    """
    argument = {"runId": run_id}
    offers = (
        (text("lens.steer", language), "codeagent.steer", argument),
        (text("lens.stop", language), "codeagent.cancel", argument),
    )
    return Waiting("run", text("lens.run", language, title=title), None, offers, lens=False)


def task_of(run: Run, runs: Iterable[Run]) -> str:
    """Return the title of a run to distinguish what is offered about its changes; '' while no other run has changes
    that wait.
    """
    waiting = [each for each in runs if each.proposal.changeset and not (each.record.foreign or each.record.attempt_of)]
    return run.record.title if len(waiting) > 1 and run in waiting else ""


def pending_changes(
    run_id: str, paths: tuple[str, ...], language: str, *, foreign: bool = False, task: str = ""
) -> tuple[Waiting, ...]:
    """Return the offers for a staged changeset, one `Waiting` for each of its files (absolute paths). Changes of
    another program (`foreign`) are in the files already: they are kept or taken back. `task` distinguishes the run from
    others, '' if there is one only.
    """
    apply, discard = ("choice.keep", "choice.revert") if foreign else ("choice.apply", "choice.discard")
    offers = (
        (text("choice.review", language), "codeagent.review", {"runId": run_id}),
        (text(apply, language), "codeagent.apply", {"runId": run_id}),
        (text(discard, language), "codeagent.discard", {"runId": run_id}),
    )
    title = text("lens.foreign" if foreign else "lens.changes", language, count=len(paths))
    if task:
        title = text("lens.changes_of", language, count=len(paths), task=_short(task))
    return tuple(Waiting("changes", title, uris.from_path(path), offers) for path in paths)


def pending_part(
    run_id: str,
    part: dict[str, Any],
    uri: str,
    lines: tuple[int, int],
    language: str,
    *,
    name: str = "",
    foreign: bool = False,
    task: str = "",
) -> Waiting:
    """Return the offers for a part of a changeset at its place in a document: a hunk, or a file with its `name`. `part`
    has the arguments of the commands: hunks or files, and perhaps the digest of the review. `foreign` and `task` are as
    for `pending_changes`.
    """
    argument = {"runId": run_id, **part}

    def title(verb: str) -> str:
        if foreign and name:
            return text(f"lens.foreign.file.{verb}", language, name=name)
        if foreign:
            return text(f"lens.foreign.hunk.{verb}", language)
        return text(f"lens.file.{verb}", language, name=name) if name else text(f"lens.hunk.{verb}", language)

    of = text("lens.of", language, task=_short(task)) if task else ""
    offers = tuple((title(verb) + of, f"codeagent.{verb}", argument) for verb in ("apply", "discard"))
    return Waiting("part", "", uri, offers, line=lines[0], last=lines[1])


def other_attempt(run_id: str, title: str, language: str) -> Waiting:
    """Return the offers for an attempt that was not proposed: as code actions alone, since another one was."""
    offers = (
        (text("choice.review", language), "codeagent.review", {"runId": run_id}),
        (text("choice.discard", language), "codeagent.discard", {"runId": run_id}),
    )
    return Waiting("changes", text("lens.attempt", language, title=title), None, offers, lens=False)


def pending_question(
    request_id: str, title: str, choices: tuple[str, ...], uri: str | None, language: str, *, by_agent: bool = False
) -> Waiting:
    """Return the offer for an open question: to answer with one of its choices, at most 5, or, if it asks for text, to
    show it again. The title of a question `by_agent` says itself who asks.
    """
    offers = tuple((choice, "codeagent.respond", {"requestId": request_id, "answer": choice}) for choice in choices[:5])
    offers = offers or ((text("lens.answer", language), "codeagent.respond", {"requestId": request_id}),)
    short = title[:QUESTION_LENGTH]
    shown = f"{short} ·" if by_agent else text("lens.question", language, title=short)
    return Waiting("question", shown, uri, offers)


def pending_plan(run_id: str, step_id: str, label: str, language: str) -> Waiting:
    """Return the offer for a plan that is paused, in every document: `label` names its next step, cut at 80
    characters.
    """
    argument = {"runId": run_id, "stepId": step_id}
    offers = (
        (text("lens.show_plan", language), "codeagent.plan.show", {"runId": run_id}),
        (text("lens.retry", language), "codeagent.plan.retryStep", argument),
        (text("lens.skip", language), "codeagent.plan.skipStep", argument),
    )
    return Waiting("plan", text("lens.plan", language, step=label[:80]), None, offers)


def pending_rollback(run_id: str, step_id: str, language: str) -> Waiting:
    """Return the offer to go back to before a step that has begun."""
    offer = (text("lens.rollback", language), "codeagent.plan.rollback", {"runId": run_id, "stepId": step_id})
    return Waiting("plan", text("lens.plan", language, step=step_id), None, (offer,))


def lenses(waiting: tuple[Waiting, ...], uri: str) -> list[types.CodeLens]:
    """Return the lenses of a document, of all that is `waiting`, most of them on its first line; offers about no
    document are in every one; [] for none.
    """
    key = uris.key(uri)
    found = []
    for item in waiting:
        if item.lens and (item.uri is None or uris.key(item.uri) == key):
            top = types.Range(types.Position(item.line, 0), types.Position(item.line, 0))
            for number, (title, command, argument) in enumerate(item.actions):
                # lenses of one line stand side by side, so the first one's title is enough
                label = f"{item.title} {title}".strip() if number == 0 else title
                shown = types.Command(title=in_box(label), command=command, arguments=[argument])
                found.append(types.CodeLens(top, shown))
    return found


def waiting_actions(
    waiting: tuple[Waiting, ...], uri: str, lines: tuple[int, int]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the same offers as (title, command, argument), for the code action menu at these lines (the first and the
    last, from 0): first those for the code there.
    """
    key = uris.key(uri)
    here = [item for item in waiting if item.uri is None or uris.key(item.uri) == key]
    placed = [item for item in here if item.last is not None and item.line <= lines[1] and lines[0] <= item.last]
    return [
        (in_box(f"{item.title} {title}".strip()), command, argument)
        for item in (*placed, *(item for item in here if item.last is None))
        for title, command, argument in item.actions
    ]


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


def _short(task: str) -> str:
    return cut(" ".join(task.split()), TASK_LENGTH)
