"""Rendering of a page in a real browser, for pages built by scripts; each page gets a browser of its own.

It runs below a watchdog, in a folder of its own, and reaches the network only through the checking proxy. Not here:
what it does with the page (`programs/browse.py`), when it is worth it (`scraping.py`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.web.child import Program, answer_of
from codeagent_lsp.tools.web.dialing import Dialer
from codeagent_lsp.tools.web.proxy import USER, CheckingProxy
from codeagent_lsp.tools.web.urls import Target

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSE = Program("browse", "Opening the page in a browser", 45.0, memory=2 << 30, processes=256)
PAGE_SECONDS = 20.0


def browser_of(path: str, folders: Iterable[str] = ()) -> str | None:
    """Return the system's browser by `PATH`, ignoring relative entries and those inside `folders` (the workspace)."""
    inside = tuple(f"{folder}/" for folder in folders)
    entries = [entry for entry in path.split(os.pathsep) if entry.startswith("/")]
    outside = os.pathsep.join(entry for entry in entries if not f"{entry}/".startswith(inside))
    return next(filter(None, (shutil.which(name, path=outside) for name in NAMES)), None) if outside else None


async def browsed(program: str | None, target: Target, selector: str | None, dialer: Dialer) -> str:
    """Return the HTML of the page after its scripts have run. ToolFailed if there is no browser or it fails."""
    if program is None:
        raise ToolFailed("no Chromium is installed here", ErrorCode.NOT_FOUND)
    async with CheckingProxy(dialer) as proxy:
        question = {
            "url": target.url,
            "host": target.host.removeprefix("www."),
            "browser": program,
            "proxy": proxy.address,
            "user": USER,
            "token": proxy.token,
            "seconds": PAGE_SECONDS,
            "selector": selector,
            "sandbox": os.geteuid() != 0,  # Chromium's own does not start for the superuser
        }
        return str((await answer_of(BROWSE, question))["html"])
