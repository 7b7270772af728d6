"""Repairs that real language servers prove, in Python, TypeScript, JavaScript and Go; and those that they do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codeagent_lsp.inline.finish_change.finishing import Finished, changed_declarations, finish
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers
from codeagent_lsp.workspace.files.paths import Roots
from tests.language_servers.real import missing, real_session
from tests.language_servers.rig import Staged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SECONDS = 100.0


async def finished(folder: Path, server: str, project: str, edited: Mapping[str, str], **files: str) -> Finished:
    """Write a project, change some of its files by hand, and finish that. Names of files have `_` for their dot."""
    if reason := missing(server):
        pytest.skip(reason)
    workspace = folder / "ws"
    workspace.mkdir()
    name, _, text = project.partition(":")
    (workspace / name).write_text(text)
    written = {name.replace("_", "."): text for name, text in files.items()}
    for name, text in written.items():
        (workspace / name).write_text(text)

    def over(texts: Mapping[str, str]) -> FileView:
        staged = Staged()
        staged.texts.update(texts)
        return FileView(Roots([str(workspace)]), NoBuffers(), staged)

    bases = {str(workspace / name): written.get(name, "") for name in edited}
    texts = {str(workspace / name): edited.get(name, text) for name, text in {**written, **edited}.items()}
    async with real_session(folder / "state") as servers:
        found = await finish(changed_declarations(bases, texts), bases, texts, servers, over, SECONDS)
    assert {name: (workspace / name).read_text() for name in written} == written, "nothing is written"
    return found


def text_of(found: Finished, name: str) -> str:
    return next((text for path, text in found.texts.items() if Path(path).name == name), "")


PYPROJECT = "pyproject.toml:[project]\nname = 'x'\n"


async def test_only_proved_repairs_are_made_in_python(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "basedpyright",
        PYPROJECT,
        {"lib.py": "def load(name: str, folder: str) -> str:\n    return name + folder\n"},
        lib_py="def load(name: str) -> str:\n    return name\n",
        # In the second the name is that of something else, and the server says so.
        use_py="from lib import load\n\n\ndef one(folder: str) -> str:\n    return load('a')\n\n\n"
        "def two(folder: int) -> str:\n    return load('b')\n",
        any_py="class Other:\n    def load(self, name: str) -> str:\n        return name\n\n\nOther().load('c')\n",
    )
    assert text_of(found, "use.py").count(", folder)") == 1
    assert "load('a', folder)" in text_of(found, "use.py")
    assert [each.line for each in found.left] == [8]
    assert text_of(found, "any.py") == "", "that is another function"


@pytest.mark.parametrize("written", ["Missing", "absent.Missing"])
async def test_a_definition_that_means_nothing_proves_nothing(tmp_path: Path, written: str) -> None:
    found = await finished(
        tmp_path,
        "basedpyright",
        PYPROJECT,
        {"lib.py": f"import absent\n\n\nclass Box:\n    breadth: {written}\n    height: int = 0\n"},
        lib_py="import absent\n\n\nclass Box:\n    width: str\n    height: int = 0\n",
        absent_py="",
        use_py="from lib import Box\n\n\ndef use(box: Box) -> str:\n    return box.width.upper()\n",
    )
    assert not found.texts, "of a type that is not there the server says nothing"


async def test_a_chain_of_imports_is_renamed_in_python(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "basedpyright",
        PYPROJECT,
        {"lib.py": "def read(name: str) -> str:\n    return open(name).read()\n"},
        lib_py="def load(name: str) -> str:\n    return open(name).read()\n",
        front_py="from lib import load\n\n__all__ = ['load']\n",
        use_py="from front import load\n\nload('a')\n",
    )
    assert text_of(found, "use.py") == "from front import read\n\nread('a')\n"


async def test_an_optional_result_is_not_repaired(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "basedpyright",
        PYPROJECT,
        {"lib.py": "def load(name: str) -> str | None:\n    return name or None\n"},
        lib_py="def load(name: str) -> str:\n    return name\n",
        use_py="from lib import load\n\nload('a').upper()\n",
    )
    assert not found.texts


async def test_typescript(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "typescript-language-server",
        'tsconfig.json:{"compilerOptions": {"strict": true, "module": "esnext", "moduleResolution": "node"}}',
        {
            "lib.ts": "export function load(folder: string, name: number) { return name; }\n"
            "export interface Box { breadth: number; height: number }\n"
        },
        lib_ts="export function load(name: number, folder: string) { return name; }\n"
        "export interface Box { width: number; height: number }\n",
        use_ts='import { load, Box } from "./lib";\n\nload(1, "a");\n'
        "export const box: Box = { width: 1, height: 2 };\nbox.width = load(2, `b`);\n",
    )
    assert text_of(found, "use.ts") == (
        'import { load, Box } from "./lib";\n\nload("a", 1);\n'
        "export const box: Box = { breadth: 1, height: 2 };\nbox.breadth = load(`b`, 2);\n"
    )
    assert found.left == ()


async def test_javascript(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "typescript-language-server",
        'jsconfig.json:{"compilerOptions": {"checkJs": true, "module": "esnext"}}',
        {"lib.js": "export function load(name) { return name; }\n"},
        lib_js="export function load(name, folder) { return name; }\n",
        use_js='import { load } from "./lib.js";\n\nload(1, 2);\n',
    )
    assert text_of(found, "use.js") == 'import { load } from "./lib.js";\n\nload(1);\n'


async def test_go(tmp_path: Path) -> None:
    found = await finished(
        tmp_path,
        "gopls",
        "go.mod:module example.com/x\n\ngo 1.18\n",
        {
            "lib.go": 'package x\n\nimport "context"\n\nfunc Load(ctx context.Context, name string) error '
            "{ _ = ctx; _ = name; return nil }\n"
        },
        lib_go="package x\n\nfunc Load(name string) error { _ = name; return nil }\n",
        use_go='package x\n\nimport "context"\n\nfunc one(ctx context.Context) error { return Load("a") }\n\n'
        'func two() error { return Load("b") }\n',
    )
    assert 'return Load(ctx, "a")' in text_of(found, "use.go")
    assert 'return Load("b")' in text_of(found, "use.go")
    assert [each.line for each in found.left] == [6]
