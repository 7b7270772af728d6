"""Opens the masking and the records of a server by its settings. Imported late, as its imports are heavy."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from codeagent_lsp.config import TraceSettings
from codeagent_lsp.records.audit import AuditLog
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TraceWriter
from codeagent_lsp.session.redaction.recording import Recording
from codeagent_lsp.session.redaction.redactor import OpenRecords


def open_records(folder: Path, settings: TraceSettings, secrets: Iterable[str], client: str) -> OpenRecords:
    """Open the records in `folder`, and the masking. What a model reads is always masked, records unless the settings
    turn that off. `secrets` are our own keys, `client` is the name of the editor.
    """
    masking = Masking(secrets)
    sanitizer = Sanitizer(settings.sanitize, secrets=masking.own, marker=masking.marker)
    trace = TraceWriter(folder, sanitizer) if settings.enabled else None
    return OpenRecords(masking, Recording(trace, AuditLog(folder, sanitizer), client))
