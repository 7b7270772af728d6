"""How long completion in a prompt document takes: `python -m tests.bench.prompt_completion [--files N] [--keys N]`.

Every key of words that are typed asks, in a workspace of so many generated files: `@` with parts of paths, `@path#`,
`#` with parts of names. An editor with its own server, over the wire; the median, the 99th percentile and the longest.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path

from codeagent_lsp.workspace.files.uris import to_path
from tests.index.workspaces import many
from tests.server.stock_editor import StockEditor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2500)
    parser.add_argument("--keys", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name) / "ws"
        workspace.mkdir()
        many(workspace, options.files)
        found = measured(workspace, options.keys)
    ordered = sorted(found)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    print(f"{len(found)} keys: median {middle:.1f} ms, 99th percentile {late:.1f} ms, longest {ordered[-1]:.1f} ms")
    print(f"the first ten: {', '.join(f'{value:.1f}' for value in found[:10])} ms")


def measured(workspace: Path, keys: int) -> list[float]:
    """Return the milliseconds of each request."""
    rng = random.Random(1)
    files = [str(path.relative_to(workspace)) for path in workspace.rglob("*.py")]
    found: list[float] = []
    with StockEditor(workspace, workspace.parent / "state") as editor:
        editor.command("codeagent.index.rebuild")
        editor.wait_until(lambda: editor.command("codeagent.index.status")["state"] == "ready", 300)
        editor.command("codeagent.prompt")
        editor.wait_until(lambda: bool(editor.shown))
        uri = editor.open(Path(to_path(editor.shown[-1]) or ""))
        while len(found) < keys:
            found += _typed(editor, uri, _words(rng, files))
    return found


def _words(rng: random.Random, files: list[str]) -> str:
    path = rng.choice(files)
    return rng.choice([f"@{path}", f"@{Path(path).name}", f"@{path}#f", f"#{Path(path).stem}", "#fun", "@dia", "@zqx"])


def _typed(editor: StockEditor, uri: str, words: str) -> list[float]:
    """Type words key by key into an empty line at the end, asking at each, and take them out again."""
    line = editor.buffers[uri].text.count("\n")
    found = []
    for number, key in enumerate(words):
        editor.type(uri, (line, number), (line, number), key)
        about = {"textDocument": {"uri": uri}, "position": {"line": line, "character": number + 1}}
        began = time.perf_counter()
        editor.client.result("textDocument/completion", about)
        found.append((time.perf_counter() - began) * 1000)
    editor.type(uri, (line, 0), (line, len(words)), "")
    return found


if __name__ == "__main__":
    main()
