"""Derives from a client's capabilities and name what it supports and how it behaves.

The facts were tried on the real editors; each is a field here and a case in the tests. Not here: acting on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from codeagent_lsp.protocol import ACP_CLIENT, EXPERIMENTAL_KEY, TERMINAL_CLIENT
from codeagent_lsp.workspace.text.position import Encoding


@dataclass(frozen=True, slots=True)
class ClientPolicy:
    """The features of one client: what it supports and how it behaves. `versioned_edits`: takes `documentChanges` with
    versions (Neovim does, though it does not say so). `ended_lines`: keeps a buffer as lines that all end, also the
    last one (Neovim). `drops_stale`: answers *yes* although it has left out edits of an older version (Neovim).
    `transactional`: applies the text edits of a request wholly or not at all, so several files may share one.
    `creates`, `deletes`, `renames`: carries out that resource operation as LSP specifies it. `reads_as_we`: reads files
    in the encodings in which we do: our own clients that are no editors. `applies_edits`: False only if it says that it
    cannot; Kate can and says nothing, and a client that cannot and says nothing answers with an error. `hunks`: has
    events, and shows the lenses at hunks nevertheless.

    `syncs`: has to be asked for the texts that its user has not saved; `asks`: puts our questions to the user by their
    events, and answers by command. `inline`: shows inline completions; `inline_registers`: accepts their registration
    later. `completion`: shows a list of completions; `cuts_words`: takes only the part of an edit there before the
    first blank, and indents the lines of a text by that of the first one (Neovim without a completion plugin).
    """

    name: str = ""
    versioned_edits: bool = False
    ended_lines: bool = False
    drops_stale: bool = False
    transactional: bool = False
    creates: bool = False
    deletes: bool = False
    renames: bool = False
    reads_as_we: bool = False
    applies_edits: bool = False
    shows_documents: bool = False
    progress: bool = False
    configuration: bool = False
    action_literals: bool = False
    action_tags: bool = False
    lens_refresh: bool = False
    text_content: bool = False
    watches_files: bool = False
    events: bool = False
    input: bool = False
    diagnostics: bool = False
    lsp: bool = False
    syncs: bool = False
    asks: bool = False
    inline: bool = False
    inline_registers: bool = False
    inline_status: bool = False
    completion: bool = False
    cuts_words: bool = False
    hunks: bool = False


def policy_of(params: types.InitializeParams) -> ClientPolicy:
    """Return the policy for the client that sent these `initialize` parameters: by its capabilities (LSP, ours under
    `experimental`), and for some editors by its name. Pure.
    """
    capabilities = params.capabilities
    name = params.client_info.name if params.client_info else ""
    workspace = capabilities.workspace
    edits = workspace.workspace_edit if workspace else None
    # A kind or a handling that LSP does not define comes as a plain string.
    operations = {str(getattr(kind, "value", kind)) for kind in (edits and edits.resource_operations) or ()}
    failure = str(getattr(edits and edits.failure_handling, "value", (edits and edits.failure_handling) or ""))
    watched = workspace.did_change_watched_files if workspace else None
    window, text_document = capabilities.window, capabilities.text_document
    action = text_document.code_action if text_document else None
    inline = text_document.inline_completion if text_document else None
    ours = _experimental(capabilities.experimental)
    versioned = bool(edits and edits.document_changes) or _is_neovim(name)
    operations = operations if versioned else set()  # `changes`, the older shape of an edit, cannot hold them
    return ClientPolicy(
        name=name,
        versioned_edits=versioned,
        ended_lines=_is_neovim(name),
        drops_stale=_is_neovim(name),
        # "undo" counts, too: what failed is taken back, so nothing is left half done.
        transactional=failure in ("transactional", "undo", "textOnlyTransactional"),
        creates="create" in operations,
        deletes="delete" in operations,
        renames="rename" in operations,
        reads_as_we=name in (TERMINAL_CLIENT, ACP_CLIENT),
        applies_edits=not (workspace and workspace.apply_edit is False),
        shows_documents=bool(window and window.show_document and window.show_document.support),
        progress=bool(window and window.work_done_progress),
        configuration=bool(workspace and workspace.configuration),
        action_literals=bool(action and action.code_action_literal_support),
        action_tags=_supports_tags(action),
        lens_refresh=bool(workspace and workspace.code_lens and workspace.code_lens.refresh_support),
        watches_files=bool(watched and watched.dynamic_registration),
        text_content=bool(workspace and getattr(workspace, "text_document_content", None)),
        events=bool(ours.get("event")),
        input=bool(ours.get("input")),
        diagnostics=bool(ours.get("diagnostics")),
        lsp=ours.get("lsp") is True,
        syncs=ours.get("sync") is True,
        asks=ours.get("ask") is True,
        inline=inline is not None,
        inline_registers=inline is not None and inline.dynamic_registration is True,
        inline_status=ours.get("inlineStatus") is True,
        completion=bool(text_document and text_document.completion),
        cuts_words=_is_neovim(name) and not _replaces(text_document),
        hunks=ours.get("hunks") is True,
    )


def completes_always(params: types.InitializeParams) -> bool:
    """Return whether inline completion has to be announced in the answer to `initialize`, as this client takes no later
    registration.
    """
    policy = policy_of(params)
    return policy.inline and not policy.inline_registers


def real_encoding(params: types.InitializeParams, agreed: Encoding) -> Encoding:
    """Return how this client counts positions: as agreed, except that lsp-mode (Emacs) counts characters without saying
    so.
    """
    general = params.capabilities.general
    says_nothing = not (general and general.position_encodings)
    is_lsp_mode = params.client_info is not None and params.client_info.name == "emacs"
    return "utf-32" if says_nothing and is_lsp_mode else agreed


def loses_behind_answers(params: types.InitializeParams) -> bool:
    """Return whether this client loses, or leaves lying, what it reads together with an answer that it has waited for:
    Emacs, whose older Eglot gives no name.
    """
    name = params.client_info.name.lower() if params.client_info else ""
    return name in ("", "emacs", "eglot")


def _experimental(value: Any) -> dict[str, Any]:
    ours = value.get(EXPERIMENTAL_KEY) if isinstance(value, dict) else getattr(value, EXPERIMENTAL_KEY, None)
    if isinstance(ours, dict):
        return ours
    return (
        {
            key: getattr(ours, key, None)
            for key in ("event", "input", "diagnostics", "lsp", "inlineStatus", "hunks", "sync", "ask")
        }
        if ours
        else {}
    )


def _is_neovim(name: str) -> bool:
    return name.lower() == "neovim"


def _replaces(text_document: types.TextDocumentClientCapabilities | None) -> bool:
    """Return whether a client tells inserting from replacing, as completion plugins do: they carry out edits."""
    completion = text_document.completion if text_document else None
    item = completion.completion_item if completion else None
    return bool(item and item.insert_replace_support)


def _supports_tags(action: Any) -> bool:
    support = getattr(action, "tag_support", None)
    return bool(support and support.value_set)
