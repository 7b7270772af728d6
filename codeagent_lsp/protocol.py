"""The names of everything in the protocol beyond plain LSP: commands, custom methods, kinds, schemes, and the arguments
of each command.

Each is defined once; the clients' mirrors and the protocol page are generated from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["string", "integer", "boolean", "object", "array", "range", "uri", "any"]

EVENT_METHOD = "codeagent/event"
INPUT_METHOD = "codeagent/input"
DIAGNOSTICS_METHOD = "codeagent/diagnostics"
LSP_METHOD = "codeagent/lsp"
SYNC_METHOD = "codeagent/sync"
INLINE_STATUS_METHOD = "codeagent/inlineStatus"
INLINE_STATES = ("off", "starting", "ready", "asking", "unavailable")
EXPERIMENTAL_KEY = "codeagent"
DOCUMENT_SCHEME = "codeagent"
PROMPT_TRIGGERS = ("@", "#", "/")
SECTION = "codeagent"
SOURCE = "codeagent"
TERMINAL_CLIENT = "codeagent-lsp terminal"
"""The name by which `codeagent-lsp run` introduces itself as a client."""
ACP_CLIENT = "codeagent-lsp acp"
"""The same of `codeagent-lsp acp`, which stands between this server and a client of the Agent Client Protocol."""

KIND_REWRITE = "refactor.rewrite.codeagent"
KIND_QUICKFIX = "quickfix.codeagent"
KIND_SOURCE = "source.codeagent"

# What may be asked of the client's other language servers: questions only, nothing that edits, saves or shows.
LENT_METHODS = (
    "textDocument/definition",
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/typeDefinition",
    "textDocument/hover",
    "textDocument/documentSymbol",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/codeAction",
    "textDocument/formatting",
    "textDocument/rangeFormatting",
    "textDocument/signatureHelp",
    "textDocument/prepareCallHierarchy",
    "textDocument/prepareTypeHierarchy",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
    "typeHierarchy/supertypes",
    "typeHierarchy/subtypes",
    "workspace/symbol",
    "codeAction/resolve",
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One member of a command's argument object: its name, its kind, such as `string` or `range`, and whether it must
    be given; `choices` lists the values that a string may have, () for any.
    """

    name: str
    kind: Kind
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """One command of `workspace/executeCommand`. Those with `starts_run` answer `{"runId": …, "sessionId": …}` before
    the run ends; with `"queued": true` where the session is at work, so that the run begins later.
    """

    name: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    starts_run: bool = False


def _needs(name: str, kind: Kind = "string", *choices: str) -> Argument:
    return Argument(name, kind, required=True, choices=choices)


def _may(name: str, kind: Kind = "string", *choices: str) -> Argument:
    return Argument(name, kind, choices=choices)


_PLACE = (_may("uri", "uri"), _may("range", "range"))
_ATTACHED = _may("attachments", "array")
_SELECTION = (
    _needs("uri", "uri"),
    _needs("range", "range"),
    _may("instruction"),
    _may("diagnostics", "array"),
    _may("sessionId"),
)

COMMANDS: tuple[Command, ...] = (
    Command(
        "codeagent.run",
        "The agent works on a task; of several `attempts` the best is proposed, by tests and diagnostics. With "
        "`untilProven` they end as soon as all tests pass on the change of one.",
        (
            _needs("task"),
            _may("mode", "string", "auto", "direct", "plan"),
            *_PLACE,
            _ATTACHED,
            _may("attempts", "integer"),
            _may("untilProven", "boolean"),
            _may("sessionId"),
        ),
        starts_run=True,
    ),
    Command(
        "codeagent.ask",
        "Answers a question without any tool that writes or runs.",
        (_may("question"), *_PLACE, _ATTACHED, _may("sessionId")),
        starts_run=True,
    ),
    Command(
        "codeagent.edit",
        "One quick rewrite of the selection, without the tool loop.",
        (_may("instruction"), _needs("uri", "uri"), _needs("range", "range"), _ATTACHED, _may("sessionId")),
        starts_run=True,
    ),
    Command("codeagent.explain", "Explains the selection.", _SELECTION, starts_run=True),
    Command("codeagent.fix", "Fixes the selection or a diagnostic.", _SELECTION, starts_run=True),
    Command("codeagent.refactor", "Refactors the selection.", _SELECTION, starts_run=True),
    Command("codeagent.document", "Adds documentation to the selection.", _SELECTION, starts_run=True),
    Command("codeagent.test", "Writes tests for the selection.", _SELECTION, starts_run=True),
    Command(
        "codeagent.runFile",
        "Runs one file as it is in the editor, in the shadow workspace, and shows what it prints.",
        (_needs("uri", "uri"), _may("args", "array"), _may("sessionId")),
        starts_run=True,
    ),
    Command(
        "codeagent.cancel",
        "Stops a run within a second and keeps what was staged for a decision.",
        (_may("runId"),),
    ),
    Command(
        "codeagent.enqueue",
        "A task that begins when its session is free; `queued` says whether it waits.",
        (_needs("task"), _may("mode", "string", "auto", "direct", "plan"), *_PLACE, _ATTACHED, _may("sessionId")),
    ),
    Command(
        "codeagent.prompt",
        "Opens a Markdown file to write a task in, with completion of files, names and commands; `range` is mentioned.",
        (_may("text"), *_PLACE),
    ),
    Command(
        "codeagent.prompt.send",
        "Sends the task that is written in a prompt document.",
        (
            _needs("uri", "uri"),
            _may("mode", "string", "auto", "direct", "plan"),
            _may("attempts", "integer"),
            _may("sessionId"),
        ),
    ),
    Command(
        "codeagent.prompt.complete",
        "What may stand at the end of `text`, a task that is written in a field of the client: files and what the "
        "editor knows after `@`, definitions after `#`, commands after `/`. Each is `{label, words, detail, start}`: "
        "`words` take the place of `text` from `start` (in code points).",
        (_needs("text"),),
    ),
    Command(
        "codeagent.steer",
        "Says something to a run at work, the newest one without `runId`; the model is given it with its next call. "
        "Where the run has ended, the words are the session's next task. Without `text` the user is asked.",
        (_may("runId"), _may("text")),
    ),
    Command(
        "codeagent.withdraw", "Takes back words that wait, by the `itemId` in `codeagent.pending`.", (_needs("itemId"),)
    ),
    Command(
        "codeagent.runs",
        "Lists the runs of this workspace, the newest first: state, step, tokens, cost, the share from the cache.",
        (_may("limit", "integer"),),
    ),
    Command("codeagent.pending", "Open approvals and questions, changes, paused plans, and words that wait."),
    Command(
        "codeagent.respond",
        "Answers an approval or a question; the first answer wins. Without an answer, the question is shown again; "
        "with `dismiss` it is closed as one that nobody answered.",
        (_needs("requestId"), _may("answer", "any"), _may("dismiss", "boolean")),
    ),
    Command("codeagent.review", "Shows the changes of a run as a diff.", (_needs("runId"),)),
    Command(
        "codeagent.apply",
        "Applies all changes of a run, some files or some hunks; with the `digest` of a review only as it showed them. "
        "A hunk is `path#id`, as the diff of the review names it; an id that is no longer staged is refused.",
        (_needs("runId"), _may("files", "array"), _may("hunks", "array"), _may("digest")),
    ),
    Command(
        "codeagent.discard",
        "Drops all changes of a run, some files or some hunks; with the `digest` of a review only as it showed them. "
        "Hunks are named as for `codeagent.apply`.",
        (_needs("runId"), _may("files", "array"), _may("hunks", "array"), _may("digest")),
    ),
    Command(
        "codeagent.undo",
        "Takes back what a run, or a step of its plan, changed, in all files or in some, and keeps what the user typed "
        "since. Without `runId` it is the run whose changes were applied last.",
        (_may("runId"), _may("stepId"), _may("files", "array")),
    ),
    Command(
        "codeagent.nextEdit.apply",
        "Proposes the change that was made last where it is due as well.",
        starts_run=True,
    ),
    Command("codeagent.nextEdit.dismiss", "Offers that change no more."),
    Command(
        "codeagent.finishChange",
        "Repairs the callers of what was changed by hand, a signature, a name or a place, as far as a language server "
        "proves it, and proposes that.",
        starts_run=True,
    ),
    Command("codeagent.finishChange.dismiss", "Offers to finish that change no more."),
    Command(
        "codeagent.prove",
        "Runs the tests with and without the changes of a run, and proposes these again with the results.",
        (_needs("runId"),),
        starts_run=True,
    ),
    Command(
        "codeagent.minimize",
        "Finds the smallest part of a run's changes with which the same tests pass, and marks the others.",
        (_needs("runId"),),
        starts_run=True,
    ),
    Command("codeagent.plan.show", "Shows the plan of a run.", (_needs("runId"), _may("stepId"))),
    Command(
        "codeagent.plan.edit",
        "Arranges the steps of a plan that have not begun: `steps` are all of them in their new order, each "
        "`{stepId?, title, description?}`; one without `stepId` is new.",
        (_needs("runId"), _needs("steps", "array")),
    ),
    Command(
        "codeagent.plan.retryStep",
        "Does a step of a plan that did not go well, or is next, and goes on from there.",
        (_needs("runId"), _needs("stepId")),
    ),
    Command(
        "codeagent.plan.skipStep",
        "Leaves a step of a plan out and goes on after it.",
        (_needs("runId"), _needs("stepId")),
    ),
    Command(
        "codeagent.plan.rollback",
        "Goes back to before a step: takes its changes and all later ones back. A run at work is stopped first.",
        (_needs("runId"), _needs("stepId")),
    ),
    Command("codeagent.session.new", "Starts a new session."),
    Command("codeagent.session.list", "Lists the sessions of this workspace."),
    Command("codeagent.session.resume", "Continues a session.", (_needs("sessionId"),)),
    Command(
        "codeagent.session.events",
        "What was shown of a session, as events for a client that shows it again: `{sessionId, title, events, more}`. "
        "A run begins with `{type: run_started, task, title}`; each answer is one `token`; of `file_change` only the "
        "state at the end. Of a long session the end: then `more` is true. The talk that a fork began with comes "
        "first, as runs with `earlier`, of which nothing but the words is known.",
        (_may("sessionId"),),
    ),
    Command(
        "codeagent.session.rewind",
        "Goes back to before a run, the last one without `runId`: takes back what it and all later runs of its session "
        "changed, said, or both; what was typed since stays. `preview` only tells what that is. `codeagent.undo` with "
        "the new run's id undoes it.",
        (
            _may("runId"),
            _may("what", "string", "changes", "talk", "both"),
            _may("preview", "boolean"),
        ),
    ),
    Command(
        "codeagent.session.fork",
        "Starts a new session with the conversation as it was before a run, or as it is now.",
        (_may("runId"), _may("sessionId")),
    ),
    Command(
        "codeagent.session.search",
        "Finds runs by words in what was asked, said and changed.",
        (_needs("query"), _may("limit", "integer")),
    ),
    Command("codeagent.session.delete", "Deletes a session.", (_needs("sessionId"),)),
    Command(
        "codeagent.session.export",
        "Exports a session as Markdown; with `context`, also its state as JSON.",
        (_may("sessionId"), _may("context", "boolean")),
    ),
    Command(
        "codeagent.command",
        "Runs a command that is a Markdown file, as `/name arguments` in a task does.",
        (_needs("name"), _may("arguments"), *_PLACE, _may("sessionId")),
    ),
    Command("codeagent.commands.list", "Lists these commands."),
    Command("codeagent.skills.list", "Lists skills and agents, and what is wrong with broken ones."),
    Command(
        "codeagent.skills.install",
        "Installs a skill from a repository or a folder, after showing it.",
        (
            _may("source"),
            _may("name"),
            _may("location", "string", "project", "global"),
            _may("branch"),
            _may("sessionId"),
        ),
        starts_run=True,
    ),
    Command(
        "codeagent.trust",
        "Asks whether you trust what this workspace brings, one kind of it, or the one of that name or path, as it is "
        "now; also what you declined.",
        (_may("what", "string", "skills", "commands", "agents", "hooks", "tools"), _may("name"), _may("sessionId")),
        starts_run=True,
    ),
    Command(
        "codeagent.trust.list",
        "Lists what this workspace brings and whether you trust it: skills, commands, agents, hooks and own tools.",
    ),
    Command("codeagent.memory.show", "Shows what is remembered of this workspace."),
    Command("codeagent.memory.forget", "Forgets one remembered thing, or all.", (_may("id"),)),
    Command(
        "codeagent.model.list",
        "Lists the models the endpoint offers; with `details` as objects, with what is known of each and from where "
        "(`facts`: `{value, source}`), and the answer forms that they have proved. With `check` an endpoint that is "
        "not there or refuses the key is an error, which says why; else it offers none.",
        (_may("details", "boolean"), _may("check", "boolean")),
    ),
    Command("codeagent.model.select", "Uses another model from now on.", (_needs("name"),)),
    Command(
        "codeagent.mode.set",
        "Sets what the agent may do without asking; without a mode it only answers which one holds.",
        (_may("mode", "string", "ask", "acceptEdits", "readOnly", "bypass"),),
    ),
    Command(
        "codeagent.approvals.list",
        "Lists the calls that are always allowed in this workspace, trusted skills, agents and own tools, and the "
        "other agents that you have decided about.",
    ),
    Command(
        "codeagent.approvals.revoke",
        "Takes back one of them, or all: they are asked for again.",
        (_may("approvalId"),),
    ),
    Command("codeagent.tools.list", "Lists the tools with their state."),
    Command("codeagent.tools.enable", "Switches a tool on.", (_needs("name"),)),
    Command("codeagent.tools.disable", "Switches a tool off.", (_needs("name"),)),
    Command("codeagent.tools.stats", "Calls, errors and times of the tools.", (_may("name"),)),
    Command("codeagent.mcp.status", "The MCP servers with their states and tools."),
    Command(
        "codeagent.mcp.reload", "Stops the MCP servers and starts those that the settings name, in the background."
    ),
    Command("codeagent.index.status", "How the code index stands."),
    Command("codeagent.index.rebuild", "Builds the code index anew, in the background."),
    Command(
        "codeagent.index.graph",
        "Shows who calls a function and what it calls, else which file imports which, as a document.",
        (_may("function"), _may("uri", "uri")),
    ),
    Command(
        "codeagent.lend.list",
        "The other agents that asked for this editor: `{client, allow, attached}`, with `ask`, `always` or `never` as "
        "`allow`.",
    ),
    Command(
        "codeagent.lend.revoke",
        "Forgets what you decided about another agent, or all, and ends its use of this editor: you are asked again.",
        (_may("client"),),
    ),
    Command("codeagent.doctor", "What works here, and what to do about what does not."),
)


def command(name: str) -> Command | None:
    """Return the command with this name, such as `codeagent.run`; None if there is none."""
    return next((item for item in COMMANDS if item.name == name), None)
