"""Groups the parts of one run, with small functions that several stages of its work need.

Not here: the work itself (`conversation/conversation.py`, `solving/direct_path.py`, `plan_execution.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codeagent_lsp import events
from codeagent_lsp.agent.prompt import Selection
from codeagent_lsp.direct.workspace_files import WorkspaceFiles
from codeagent_lsp.messages import Message
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.replay import message_to_dict
from codeagent_lsp.session.request import Target
from codeagent_lsp.session.run_models import RunModels
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.toolbox import Toolbox
from codeagent_lsp.tools.permissions.policy import may_read
from codeagent_lsp.workspace.files.paths import Roots
from codeagent_lsp.workspace.text.position import LineIndex

Ended = tuple[events.RunStatus, str]
"""The final status of a run, and a summary for the user."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """The parts of one run, passed to every stage of its work; they live as long as the run."""

    session: Session
    record: RunRecord
    services: Services
    output: RunOutput
    proposal: Proposal
    toolbox: Toolbox
    models: RunModels


def remember(parts: RunParts, message: Message) -> None:
    """Append a message to the run's conversation and write it to the session's file, before anything else is done with
    it.
    """
    parts.record.messages.append(message)
    parts.output.emit(events.MessageAdded(message=message_to_dict(message)))


def hear(parts: RunParts, wanted: Callable[[str], bool] = lambda words: True) -> tuple[Message, ...]:
    """Return, as messages, what the user has said to the run since the last call, as far as it is `wanted`, () for
    nothing; each is stored with its item's id and emitted as delivered, so that nothing is given to the model twice.
    """
    heard = []
    said_since = parts.session.context.waiting.said_to(parts.record.run_id)
    for said in (each for each in said_since if wanted(each.text)):
        message = Message("user", said.text)
        parts.record.messages.append(message)
        parts.record.heard.append(said.text)
        parts.output.emit(events.MessageAdded(message=message_to_dict(message), item_id=said.item_id))
        parts.output.emit(events.SteerDelivered(item_id=said.item_id, text=said.text))
        heard.append(message)
    return tuple(heard)


def files_of(parts: RunParts) -> WorkspaceFiles:
    """Return the files of the run's workspace that may be read without asking, each read and parsed once, when it is
    asked for: its methods block.
    """
    view = parts.proposal.view
    return WorkspaceFiles(view, may_read(parts.services.user.settings().permissions, view.roots))


def selection_of(target: Target, roots: Roots) -> Selection:
    """Return the user's selection for the prompt: the file's path relative to the workspace, its first and last line
    (1-based), the code.
    """
    whole = target.file.text
    lines = LineIndex.of(whole)
    first, last = lines.line_at(target.start) + 1, lines.line_at(max(target.start, target.end - 1)) + 1
    return Selection(roots.relative(target.file.path), first, last, whole[target.start : target.end])
