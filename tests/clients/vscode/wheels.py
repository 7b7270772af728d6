"""A folder of wheels that needs no package index: the server's own, and its dependencies as they are installed here."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.clients.vscode.support import ROOT

OURS = "codeagent-lsp"


def own_wheel(folder: Path) -> Path:
    """The server as a wheel, from the checkout."""
    files = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "codeagent_lsp").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    return _written(folder, distribution(OURS), files, "py3-none-any")


def wheels_of_dependencies(folder: Path, extra: str = "") -> None:
    """The wheels of all that the server needs, with what an `extra` needs, and of what that needs."""
    for found in _needed(distribution(OURS), set(), extra):
        if _name(found) != OURS:
            about = found.read_text("WHEEL") or ""
            tags = re.findall(r"^Tag: (\S+)", about, re.MULTILINE)
            files = {
                str(path): Path(str(path.locate())).read_bytes()
                for path in found.files or ()
                if not str(path).startswith("..") and "__pycache__" not in path.parts and path.name != "RECORD"
            }
            _written(folder, found, files, _joined(tags))


def _needed(of: Distribution, seen: set[str], extra: str = "") -> Iterator[Distribution]:
    if _name(of) in seen:
        return
    seen.add(_name(of))
    yield of
    for line in of.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
            yield from _needed(distribution(wanted.name), seen)


def _name(of: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", of.metadata["Name"]).lower()


def _joined(tags: list[str]) -> str:
    """The tags as the name of a wheel has them: each part once."""
    parts = zip(*(tag.split("-") for tag in tags), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in parts)


def _written(folder: Path, of: Distribution, files: dict[str, bytes], tags: str) -> Path:
    stem = f"{_name(of).replace('-', '_')}-{of.version}"
    about = f"{stem}.dist-info"
    kept = {name: data for name, data in files.items() if ".dist-info/" not in name}
    lines = "".join(f"Tag: {tag}\n" for tag in _tags(tags))
    kept[f"{about}/METADATA"] = (of.read_text("METADATA") or "").encode()
    kept[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n{lines}".encode()
    if entries := of.read_text("entry_points.txt"):
        kept[f"{about}/entry_points.txt"] = entries.encode()
    rows = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in kept.items()]
    kept[f"{about}/RECORD"] = "\n".join([*rows, f"{about}/RECORD,,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{stem}-{tags}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, data in kept.items():
            packed.writestr(name, data)
    return target


def _tags(joined: str) -> Iterator[str]:
    python, abi, platform = joined.split("-")
    for one in python.split("."):
        for two in abi.split("."):
            yield from (f"{one}-{two}-{three}" for three in platform.split("."))


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
