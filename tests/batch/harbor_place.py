"""An environment for Harbor without a container engine: commands run in bubblewrap, in a file system of their own.

Only Harbor's own process imports this; it has the programs of this machine, and `/app`, `/logs`, `/tests` of the trial.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

from codeagent_lsp.harbor import HOME

MADE = ("app", "logs/agent", "logs/verifier", "logs/artifacts", "tests", "solution", "installed-agent", "tmp", "root")
SEEN = ("/usr", "/bin", "/lib", "/lib64", "/etc", "/opt")
PROGRAM = "HARBOR_PLACE_PROGRAM"  # a codeagent-lsp that is there as if it was in the image
VARIABLE = "HARBOR_PLACE_SEEN"  # more folders that are seen, separated by colons


class HarborPlace(BaseEnvironment):  # type: ignore[misc]  # Harbor needs a newer Python than we do
    """One trial's file system, below the trial's folder."""

    @staticmethod
    def type() -> str:
        return "place"

    def _validate_definition(self) -> None:
        """Anything goes: no image is built."""

    async def start(self, force_build: bool) -> None:
        for name in MADE:
            (self._root / name).mkdir(parents=True, exist_ok=True)
        given = self.environment_dir / "app"
        if given.is_dir():
            shutil.copytree(given, self._root / "app", dirs_exist_ok=True)
        if program := os.environ.get(PROGRAM):
            self._real(f"{HOME}/bin").mkdir(parents=True)
            self._real(f"{HOME}/bin/codeagent-lsp").symlink_to(program)

    async def stop(self, delete: bool) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._real(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._real(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._real(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy(self._real(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._real(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        words = ["bwrap", "--unshare-pid", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
        for name in SEEN:
            words += ["--ro-bind-try", name, name]
        for name in sorted({name.split("/")[0] for name in MADE} - {"root"}):
            words += ["--bind", str(self._root / name), f"/{name}"]
        for name in filter(None, os.environ.get(VARIABLE, "").split(":")):  # they may be below /tmp
            words += ["--ro-bind", name, name]
        variables = {"HOME": "/tmp", "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(env or {})}
        words += ["--clearenv", *(word for name, value in variables.items() for word in ("--setenv", name, value))]
        process = await asyncio.create_subprocess_exec(
            *words, "--chdir", cwd or "/app", "bash", "-c", command,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        stdout, stderr = out.decode(errors="replace"), err.decode(errors="replace")
        return ExecResult(stdout=stdout, stderr=stderr, return_code=process.returncode or 0)

    @property
    def _root(self) -> Path:
        root: Any = self.trial_paths.trial_dir
        return Path(root) / "place"

    def _real(self, path: str) -> Path:
        return self._root / path.lstrip("/")
