"""Storage of a command's long output, masked piece by piece, for the model to read on.

The raw file is removed afterwards, however this ends. Not here: where results are kept and for how long (`outputs.py`),
what a secret is (`records/`).
"""

from __future__ import annotations

import asyncio
import codecs
import os
from pathlib import Path
from typing import BinaryIO

from codeagent_lsp.records.stream import StreamSanitizer
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.variables.variables import MaskedStream, Variables

PIECE = 256 * 1024


async def keep_whole(file: str, context: ToolContext) -> str:
    """Store the raw output in `file`, masked, and return its name for the model; '' if it cannot be stored.

    Only one piece at a time is in memory. Cancelling takes effect after the current piece.
    """
    raw = Path(file)
    clean = raw.with_name(f"{raw.name}.masked")
    try:
        outputs = context.get(OutputStore)
        if outputs is None:
            return ""
        await _masked(raw, clean, context)
        return await asyncio.to_thread(outputs.adopt, str(clean))
    except OSError:  # a full disk takes the rest, not the result
        return ""
    finally:
        _remove(raw, clean)


async def _masked(raw: Path, clean: Path, context: ToolContext) -> None:
    """Write the contents of `raw`, with secrets masked, to the new file `clean`."""
    masks = _Masks(context)
    with raw.open("rb") as source, os.fdopen(os.open(clean, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as into:
        while await asyncio.to_thread(_copy, source, into, masks):
            pass


def _remove(*files: Path) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _copy(source: BinaryIO, into: BinaryIO, masks: _Masks) -> bool:
    """Mask one piece and return whether more may follow."""
    data = source.read(PIECE)
    into.write(masks.feed(data).encode("utf-8", "replace"))
    return bool(data)


class _Masks:
    """Both masks of a run, for variables and for secrets, applied to bytes in pieces."""

    def __init__(self, context: ToolContext) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._values = MaskedStream(context.get(Variables) or Variables())
        self._secrets = StreamSanitizer(context.redaction.hide)

    def feed(self, data: bytes) -> str:
        """Take a piece, an empty one at the end, and return the masked text that is safe to write."""
        if data:
            # a character, a value or a secret may lie across two pieces: each step holds back what may still grow
            return self._secrets.feed(self._values.feed(self._decoder.decode(data)))
        rest = self._values.feed(self._decoder.decode(b"", final=True)) + self._values.close()
        return self._secrets.feed(rest) + self._secrets.close()
