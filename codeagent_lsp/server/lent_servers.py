"""Asks the client's other language servers a question, by a request of our own, if the client announces support for it.

Nothing that a client answers is trusted: shapes, sizes, names and encodings are checked, and commands beside edits are
dropped, because no command of another server is ever run. Not here: converting results, or the tools that use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

from codeagent_lsp.errors import EditorError
from codeagent_lsp.language_servers.values import ServerAnswer
from codeagent_lsp.protocol import LENT_METHODS, LSP_METHOD
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.position import Encoding

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client

SECONDS = 3.0
MAX_ANSWERS = 8
MAX_ENTRIES = 64  # of a list that is answered, those beyond are not looked at
MAX_NAME = 100
MAX_CHARACTERS = 2 * 1024 * 1024
MAX_NODES = 100_000
MAX_DEPTH = 100  # so that any later walk through a result may be recursive


class LentServers:
    """The other language servers of one client: the `EditorServers` of its runs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def encoding(self) -> Encoding:
        """Return the position encoding of questions."""
        return self._client.server.documents.encoding

    async def ask(
        self, uri: str, method: str, params: Mapping[str, Any], seconds: float = SECONDS
    ) -> tuple[ServerAnswer, ...]:
        """Return the answers of the other servers about the current text of `uri`, at most `MAX_ANSWERS`.

        `params` are those of `method` in LSP, with positions in the encoding negotiated with the client. The result is
        empty when the client lends no servers, refuses, is late, answers in a wrong shape, or the text changed. A
        client may open a file to ask about it: whether its text is the one that was meant, the caller has to see.
        """
        if not self._client.policy.lsp or method not in LENT_METHODS:
            return ()
        documents = self._client.server.documents
        uri = documents.uri(uris.to_path(uri) or uri)
        document = documents.get(uri)
        question = {"uri": uri, "method": method, "params": {**params, "textDocument": {"uri": uri}}}
        try:
            answer = await self._client.server.request(LSP_METHOD, question, seconds)
        except EditorError:
            return ()
        if document is not None and documents.get(uri) is not document:  # the text has changed since the request
            return ()
        return read(answer, method, documents.encoding)


def read(answer: Any, method: str, agreed: Encoding) -> tuple[ServerAnswer, ...]:
    """Return the valid entries of an answer; `agreed` is the encoding of those that name none."""
    if not isinstance(answer, list):
        return ()
    entries = (_entry(item, method, agreed) for item in answer[:MAX_ENTRIES])
    return tuple(islice((entry for entry in entries if entry is not None), MAX_ANSWERS))


def _entry(item: Any, method: str, agreed: Encoding) -> ServerAnswer | None:
    if not isinstance(item, dict) or not isinstance(item.get("server"), str) or not is_small(item.get("result")):
        return None
    server = "".join(character for character in item["server"] if character.isprintable())[:MAX_NAME].strip()
    encoding, result = item.get("positionEncoding") or agreed, _without_commands(item.get("result"), method)
    if not server or result is None or encoding not in get_args(Encoding):
        return None
    return ServerAnswer(server, result, encoding, lent=True)


def is_small(value: Any) -> bool:
    """Return whether a JSON value is within `MAX_NODES`, `MAX_CHARACTERS` of texts and keys, and `MAX_DEPTH`."""
    nodes = characters = 0
    rest = [(value, 0)]
    while rest:
        node, depth = rest.pop()
        nodes += 1
        if isinstance(node, str):
            characters += len(node)
        elif isinstance(node, dict):
            characters += sum(map(len, node))
            rest += [(child, depth + 1) for child in node.values()]
        elif isinstance(node, list):
            rest += [(child, depth + 1) for child in node]
        if nodes + len(rest) > MAX_NODES or characters > MAX_CHARACTERS or depth > MAX_DEPTH:
            return False
    return True


def _without_commands(result: Any, method: str) -> Any:
    """Return the result; code actions without their commands, and without those that are nothing else."""
    if method == "codeAction/resolve":
        return _action(result) if isinstance(result, dict) and result.get("edit") else None
    if method != "textDocument/codeAction":
        return result
    return [_action(item) for item in result if _may_edit(item)] if isinstance(result, list) else None


def _may_edit(item: Any) -> bool:
    """Return whether a code action has an edit, or may have one when it is resolved by its `data`."""
    return isinstance(item, dict) and (bool(item.get("edit")) or item.get("data") is not None)


def _action(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "command"}
