"""A git repository with Python code that a seed makes up: classes, nested blocks, docstrings, boilerplate, commits.

Not here: real histories, which `perturbations.hunks_from_git` reads just the same.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

_NOUNS = [
    "order",
    "invoice",
    "parcel",
    "ticket",
    "account",
    "ledger",
    "route",
    "sensor",
    "reading",
    "profile",
    "basket",
    "voucher",
]
_VERBS = [
    "load",
    "store",
    "check",
    "merge",
    "split",
    "count",
    "rename",
    "refresh",
    "collect",
    "publish",
    "archive",
    "restore",
]
_FIELDS = ["name", "total", "status", "owner", "created", "updated", "limit", "offset", "parent", "label"]


def build_history(folder: Path, *, seed: int, files: int = 4, commits: int = 60) -> Path:
    """Make the repository in `folder` and return its path; the same seed gives the same commits."""
    rng = random.Random(seed)
    _git(folder, "init", "-q")
    sources = {f"module_{number}.py": _module(rng) for number in range(files)}
    _commit(folder, sources)
    for _ in range(commits):
        for name in sources:
            sources[name] = _edited(sources[name], rng)
        _commit(folder, sources)
    return folder


def _git(folder: Path, *arguments: str) -> None:
    who = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t"}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=os.environ | who | quiet)


def _commit(folder: Path, sources: dict[str, str]) -> None:
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "--allow-empty", "-m", "change")


def _module(rng: random.Random) -> str:
    parts = ['"""Made-up code."""\n\nfrom __future__ import annotations\n\nimport logging\n']
    parts += [_class(rng) for _ in range(rng.randint(3, 5))]
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


def _class(rng: random.Random) -> str:
    noun = rng.choice(_NOUNS)
    fields = rng.sample(_FIELDS, 4)
    lines = [f"class {noun.title()}{rng.randint(1, 999)}:", f'    """One {noun}, with its {fields[0]}."""', ""]
    lines += [f"    def __init__(self, {', '.join(fields)}):"]
    lines += [f"        self.{field} = {field}" for field in fields]
    for _ in range(rng.randint(3, 6)):
        lines += ["", *_method(rng, noun)]
    return "\n".join(lines) + "\n"


def _method(rng: random.Random, noun: str) -> list[str]:
    lines = [f"    def {rng.choice(_VERBS)}_{rng.choice(_FIELDS)}_{rng.randint(1, 99)}(self, items):"]
    if rng.random() < 0.6:
        lines.append(f'        """Go through the {noun}\'s items - all of them."""')
    for _ in range(rng.randint(2, 4)):
        lines += _statement(rng, "        ", depth=0)
        if rng.random() < 0.3:
            lines.append("")
    return [*lines, f"        return self.{rng.choice(_FIELDS)}"]


def _statement(rng: random.Random, pad: str, *, depth: int) -> list[str]:
    verb, field, noun = rng.choice(_VERBS), rng.choice(_FIELDS), rng.choice(_NOUNS)
    if depth > 2 or rng.random() < 0.5:
        plain = (
            f'{pad}logging.info("{verb} {noun}: %s", self.{field})',
            f"{pad}self.{field} = {verb}_{noun}(self.{rng.choice(_FIELDS)}, key='{field}')",
            f"{pad}# {verb} the {noun} before its {field} is read",
            f'{pad}{noun} = f"{{self.{field}}}-{rng.randint(1, 500)}"',
        )
        return [rng.choice(plain)]
    heads = (f"for {noun} in items:", f"if {noun} is None:", f"with self.{verb}() as {noun}:", "try:")
    head = rng.choice(heads)
    inner = [line for _ in range(rng.randint(1, 3)) for line in _statement(rng, pad + "    ", depth=depth + 1)]
    tail = [f"{pad}except KeyError:", f"{pad}    raise ValueError('no {field}') from None"] if head == "try:" else []
    if all(line.lstrip().startswith("#") for line in inner):
        inner.append(f"{pad}    pass")
    return [pad + head, *inner, *tail]


def _edited(text: str, rng: random.Random) -> str:
    """One to three changes: lines replaced, removed, added, or a block moved one level in."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        inside = [i for i in range(8, len(lines) - 6) if all(map(str.strip, lines[i - 1 : i + 3]))]
        at = rng.choice([i for i in inside if lines[i].startswith(" " * 8)] or [8])
        pad = lines[at][: len(lines[at]) - len(lines[at].lstrip())] or "    "
        kind = rng.random()
        if kind < 0.35:
            lines[at : at + rng.randint(1, 3)] = _statement(rng, pad, depth=1)
        elif kind < 0.7:
            lines[at:at] = [*_statement(rng, pad, depth=0), *([""] if rng.random() < 0.3 else [])]
        elif kind < 0.85:
            del lines[at : at + rng.randint(1, 3)]
        else:
            block = lines[at : at + 3]
            lines[at : at + 3] = [f"{pad}if self.{rng.choice(_FIELDS)}:", *("    " + b if b else b for b in block)]
    return "\n".join(lines)
