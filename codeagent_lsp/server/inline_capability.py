"""Says to the client whether there are inline completions: by registration, and by a status of our own.

Not here: the completions (`inline_completions.py`), whether there can be any (`inline.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.protocol import INLINE_STATUS_METHOD

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client

REGISTER_SECONDS = 10.0
_ID = "codeagent-inline"

State = Literal["off", "starting", "ready", "asking", "unavailable"]


class InlineCapability:
    """What one client knows of inline completion. A client that takes no registrations was told at its start."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._registered = False
        self._told: tuple[State, str] | None = None

    async def offer(self, *, offered: bool) -> None:
        """Register or unregister, if that changes anything; a client that refuses is asked again at the next change."""
        policy = self._client.policy
        if not (policy.inline and policy.inline_registers) or offered == self._registered:
            return
        method = types.TEXT_DOCUMENT_INLINE_COMPLETION
        try:
            if offered:
                registration = types.Registration(_ID, method, {})
                params = types.RegistrationParams([registration])
                await self._client.server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
            else:
                ended = types.UnregistrationParams([types.Unregistration(_ID, method)])
                await self._client.server.request(types.CLIENT_UNREGISTER_CAPABILITY, ended, REGISTER_SECONDS)
        except EditorError:
            return
        self._registered = offered

    def tell(self, state: State, detail: str = "") -> None:
        """Show the state to a client that shows it; nothing if it is the same as before. `detail` is a sentence."""
        if not self._client.policy.inline_status or self._told == (state, detail):
            return
        self._told = (state, detail)
        self._client.server.notify(INLINE_STATUS_METHOD, {"state": state, "detail": detail})
