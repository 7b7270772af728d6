"""The repository map of `aider-chat`, asked in a process of its own environment: no model, the same trees and budgets.

Its own code finds the names and files that a message mentions; the tokens are counted with the tokenizer that its
distribution carries. Run by `repomap.py`; the lower half of this file is what runs over there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

OTHER_SIDE = r"""
import json, os, pathlib, resource, sys, time, types
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
import litellm
tokens = pathlib.Path(litellm.__file__).parent / "litellm_core_utils" / "tokenizers"
os.environ["TIKTOKEN_CACHE_DIR"] = str(tokens)
import tiktoken
from aider.coders.base_coder import Coder
from aider.io import InputOutput
from aider.repomap import RepoMap
counter = tiktoken.get_encoding("cl100k_base")
model = types.SimpleNamespace(token_count=lambda text: len(counter.encode(text, disallowed_special=())))
root = sys.argv[1]
io = InputOutput(yes=True, pretty=False, fancy_input=False)
maps = {}
for line in sys.stdin:
    ask = json.loads(line)
    if "count" in ask:
        print(json.dumps(model.token_count(ask["count"])), file=out, flush=True)
        continue
    files = [name for name in ask["files"] if os.path.exists(os.path.join(root, name))]
    coder = types.SimpleNamespace(
        get_all_relative_files=lambda: files, get_inchat_relative_files=lambda: [],
        get_addable_relative_files=lambda: set(files), abs_fnames=set(), abs_read_only_fnames=set(),
        get_rel_fname=lambda name: os.path.relpath(name, root))
    names = Coder.get_ident_mentions(coder, ask["message"])
    mentioned = Coder.get_file_mentions(coder, ask["message"]) | Coder.get_ident_filename_matches(coder, names)
    if ask["budget"] not in maps:
        maps[ask["budget"]] = RepoMap(ask["budget"], root=root, main_model=model, io=io, map_mul_no_files=1)
    started = time.perf_counter()
    paths = [os.path.join(root, name) for name in files]
    text = maps[ask["budget"]].get_repo_map([], paths, mentioned, names) or ""
    seconds = time.perf_counter() - started
    known = set(files)
    found = [name for name in (line.rstrip().removesuffix(":") for line in text.splitlines()) if name in known]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps([found, seconds, memory, text]), file=out, flush=True)
"""


VERSION = "0.86.2"


def environment(place: Path, requirement: str = f"aider-chat=={VERSION}") -> str:
    """Make an environment with the peer, or another package, by pip, which takes minutes; its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = str(place / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", requirement], check=True)
    return python


class Peer:
    """One process of the peer, over a folder that is filled with the files of a tree."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._blobs: dict[str, str] = {}
        self._process = subprocess.Popen(
            [python, "-I", "-c", OTHER_SIDE, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=folder,
        )  # fmt: skip

    def fill(self, tree: Mapping[str, str], read: Callable[[Iterable[str]], Mapping[str, bytes]]) -> None:
        """Make the folder hold these files."""
        changed = {path: blob for path, blob in tree.items() if self._blobs.get(path) != blob}
        contents = read(set(changed.values()))
        for path in self._blobs.keys() - tree.keys():
            (self.folder / path).unlink(missing_ok=True)
        for path, blob in changed.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents[blob])
        self._blobs = dict(tree)

    def ask(self, message: str, files: list[str], budget: int) -> tuple[list[str], float, int]:
        """The files in its map, the seconds it took, and the most memory so far in MB."""
        found, seconds, memory, _ = self._say({"message": message, "files": files, "budget": budget})
        return found, seconds, memory

    def map_text(self, message: str, files: list[str], budget: int) -> str:
        """The text of its map."""
        return str(self._say({"message": message, "files": files, "budget": budget})[3])

    def count(self, text: str) -> int:
        """Tokens of a text by the tokenizer that it uses."""
        return int(self._say({"count": text}))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(10)

    def _say(self, question: object) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
