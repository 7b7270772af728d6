"""The secrets of a server's own settings, and what masks them in records. Heavy parts are imported late.

Not here: finding secrets in texts (`records/sanitizer.py`), masking what a model reads (`session/redaction`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from codeagent_lsp.network import secrets_of
from codeagent_lsp.server.front import Front
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.shadow.environment import is_secret
from codeagent_lsp.tools.mcp.settings import LEAST_SECRET, secrets_in

if TYPE_CHECKING:
    from codeagent_lsp.config import ModelSettings
    from codeagent_lsp.records.sanitizer import Sanitizer
    from codeagent_lsp.session.redaction.recording import OpenRecords


def redactor_for(front: Front, state: Path) -> Redactor:
    """Return the redactor of a server, not loaded yet, whose records go into the folder `state`. It follows changes of
    the settings; the caller closes it.
    """

    def keys() -> list[str]:
        return secret_settings(front)

    def load() -> OpenRecords:
        from codeagent_lsp.session.redaction.recording import open_records  # late: heavy

        return open_records(state, front.settings().trace, keys(), front.client.policy.name)

    redactor = Redactor(load, keys)
    front.settings_link.on_change.append(redactor.settings_changed)
    return redactor


def sanitizer_for(front: Front, redactor: Redactor) -> Sanitizer:
    """Return the sanitizer that removes secrets from stored texts, including the keys in the settings: that of the
    redactor if it is loaded, else a new one, which is slow to make: call it in a thread.
    """
    if redactor.opened is not None:
        return redactor.opened.masking.sanitizer
    from codeagent_lsp.records.sanitizer import Sanitizer  # late: heavy

    return Sanitizer(secrets=secret_settings(front), identities=False, homes=())


def secret_settings(front: Front) -> list[str]:
    """Return the secrets in the current settings: of the model, of the web search, of MCP servers, of the proxy."""
    settings = front.settings()
    keys = filter(None, (settings.model.api_key, settings.web.search_api_key, *added_secrets(settings.model)))
    return [*keys, *secrets_of(settings.network), *secrets_in(settings.mcp.servers, os.environ)]


def added_secrets(model: ModelSettings) -> list[str]:
    """Return the secrets in a model's headers and URL parameters: header values, whole and without a scheme such as
    `Bearer`, and parameters that look secret.
    """
    headers = [part for value in model.headers.values() for part in (value, value.rpartition(" ")[2])]
    query = [value for name, value in model.query.items() if is_secret(name, value)]
    return [value for value in (*headers, *query) if len(value) >= LEAST_SECRET]
