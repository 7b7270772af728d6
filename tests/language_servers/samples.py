"""Small projects of one language each for the real servers: a function, fifty files that use it, how to break it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

USERS = 50


@dataclass(frozen=True)
class Sample:
    """`library` defines `total`, the file of `user(n)` uses it. `bad` has an error of its own, `changed` another
    signature, `fresh` is a new file's name and text, and `wrong_use` the text of a user that uses it wrongly.
    """

    server: str
    suffix: str
    files: Mapping[str, str]
    library: str
    use: str
    bad: str
    changed: str
    fresh: tuple[str, str]
    wrong_use: str
    comment: str
    deletable: bool = True
    fix: tuple[str, str, str] = ("", "", "")  # text of a new file, a word at which to ask, a part of the fixed text
    more: Mapping[str, str] = field(default_factory=dict)

    def user(self, number: int) -> str:
        return f"m{number}.{self.suffix}"

    def lay(self, folder: Path) -> None:
        """Write the project."""
        users = {self.user(number): self.use.replace("#N", str(number)) for number in range(USERS)}
        for name, text in {**self.files, **users}.items():
            (folder / name).write_text(text)
        if self.suffix == "c":
            names = (self.library, *users)
            commands = [{"directory": str(folder), "command": f"cc -c {name}", "file": name} for name in names]
            (folder / "compile_commands.json").write_text(json.dumps(commands))


PYTHON = Sample(
    server="basedpyright",
    suffix="py",
    files={"pyproject.toml": "", "lib.py": "def total(x: int) -> int:\n    return x\n"},
    library="lib.py",
    use="from lib import total\n\n\ndef use_#N() -> int:\n    return total(1)\n",
    bad="def total(x: int) -> int:\n    return 'x'\n",
    changed="def total(x: str) -> int:\n    return len(x)\n",
    fresh=("fresh.py", "def fresh(y: str) -> None: ...\n"),
    wrong_use="from fresh import fresh\n\nfresh(3)\n",
    comment="# staged\n",
    fix=("import os\n\nx = 1\n", "import os", "x = 1\n"),  # by ruff
)
TYPESCRIPT = Sample(
    server="typescript-language-server",
    suffix="ts",
    files={
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "commonjs"}}',
        "lib.ts": "export function total(x: number): number {\n  return x;\n}\n",
    },
    library="lib.ts",
    use="import { total } from './lib';\n\nexport function use#N(): number {\n  return total(1);\n}\n",
    bad="export function total(x: number): number {\n  return 'x';\n}\n",
    changed="export function total(x: string): number {\n  return x.length;\n}\n",
    fresh=("fresh.ts", "export function fresh(y: string) {}\n"),
    wrong_use="import { fresh } from './fresh';\n\nfresh(3);\n",
    comment="// staged\n",
    fix=("export const y = total(1);\n", "total", 'import { total } from "./lib"'),
)
GO = Sample(
    server="gopls",
    suffix="go",
    files={"go.mod": "module x\n\ngo 1.18\n", "lib.go": "package x\n\nfunc total(x int) int {\n\treturn x\n}\n"},
    library="lib.go",
    use="package x\n\nfunc use#N() int {\n\treturn total(1)\n}\n",
    bad='package x\n\nfunc total(x int) int {\n\treturn "x"\n}\n',
    changed="package x\n\nfunc total(x string) int {\n\treturn len(x)\n}\n",
    fresh=("fresh.go", "package x\n\nfunc fresh(s string) {}\n"),
    wrong_use="package x\n\nfunc use0() {\n\tfresh(3)\n}\n",
    comment="// staged\n\n",
)
C = Sample(
    server="clangd",
    suffix="c",
    files={"lib.h": "int total(int x);\n", "lib.c": '#include "lib.h"\nint total(int x) {\n  return x;\n}\n'},
    library="lib.c",
    use='#include "lib.h"\nint use#N(void) {\n  return total(1);\n}\n',
    bad='#include "lib.h"\nint total(int x) {\n  return "x" * 2;\n}\n',
    changed='#include "lib.h"\nint total(char *x, int y) {\n  return y;\n}\n',
    fresh=("fresh.h", "void fresh(char *s);\n"),
    wrong_use='#include "fresh.h"\nvoid use0(void) {\n  fresh(3.5);\n}\n',
    comment="// staged\n",
    deletable=False,
    fix=("int y(void) {\n  return 1\n}\n", "}", "return 1;"),
)
SAMPLES = (PYTHON, TYPESCRIPT, GO, C)
