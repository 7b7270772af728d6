"""The check that a `sed` script only selects, changes and prints lines, and writes or runs nothing. Pure functions."""

from __future__ import annotations

import re

from codeagent_lsp.tools.permissions.shell.awk_programs import REGEX_BODY
from codeagent_lsp.tools.permissions.shell.grammar import Unknown

_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{REGEX_BODY}+/I?)"
_RANGE = rf"(?:{_ADDRESS}(?:[ ]*,[ ]*(?:{_ADDRESS}|[+~]\d+))?[ ]*(?:![ ]*)?)?"
_REPLACEMENT = r"(?:\\[^\n]|[^\\/\n])*"
_SUBSTITUTIONS = "|".join(
    f"s{re.escape(mark)}{REGEX_BODY.replace('/', re.escape(mark))}+{re.escape(mark)}"
    rf"{_REPLACEMENT.replace('/', re.escape(mark))}{re.escape(mark)}[gpiIm0-9]*"
    for mark in "/|,@:"
)
_COMMAND = re.compile(rf"[ \n;]*{_RANGE}(?:[pqd=DNPGHhgxnl]|{_SUBSTITUTIONS})[ ]*(?=[;\n]|$)")
_MAX_CHARS, _MAX_COMMANDS = 500, 20


def check_sed(script: str) -> None:
    """Check that a script only prints and changes lines on their way. Unknown if not."""
    place = count = 0
    while place < len(script.rstrip(" ;\n")):
        match = _COMMAND.match(script, place) if len(script) <= _MAX_CHARS and count < _MAX_COMMANDS else None
        if match is None:
            raise Unknown("Only `sed` that selects, changes and prints lines is known to be harmless.")
        place, count = match.end(), count + 1
    if not count:
        raise Unknown("The `sed` script is empty.")
