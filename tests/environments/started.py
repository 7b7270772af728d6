"""A process that starts a web terminal or a desktop, says where it is, and waits to be killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import ScreenKind, ScreenRequest
from tests.environments.screens import rig


async def main(kind: ScreenKind, folder: str, image: str) -> None:
    async with rig(Path(folder), ShellSettings(container_image=image or None)) as made:
        status = await made.run.start(kind, ScreenRequest())
        print(status.url, flush=True)
        await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main("desktop" if sys.argv[1] == "desktop" else "terminal", *sys.argv[2:]))
