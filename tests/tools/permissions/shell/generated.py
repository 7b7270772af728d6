"""Command lines without end: from the grammars of harmless commands, and by changing known ones. Seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator

from codeagent_lsp.tools.permissions.shell.argument_programs import WITH_FILE, WITH_TEXT, WITHOUT_VALUE
from codeagent_lsp.tools.permissions.shell.harmless import GRAMMARS
from tests.tools.permissions.shell.everyday import EVERYDAY

OPERANDS = (
    *("README.md", "a.txt", "b.txt", "src", "src/main.py", "src/*.py", "*.py", ".", "data.bin", "'a b'", '"x"'),
    *("needle", "conf"),
    *("package.json", "./src", "src/app", "no-such", "-", "made", "link", "5", "+%F", "a=b", "'-o'", "--", "''"),
    *("'$(touch made)'",),
    *("'a[$(touch made)]'", '"; touch made"', "'`touch made`'", "'*'", "made/x", "s/a/b/w", "1,3p", "'$p'"),
    *(".name", "trap.py"),
)  # fmt: skip
VALUES = ("1", "3", "x", "'*.py'", "needle", "made", "+1", "c", "%s", "','", "README.md", "trap.py", "'touch made'")
JOINTS = (" | ", " && ", " || ", "; ", "\n", " 2>/dev/null | ", " > /dev/null 2>&1; ")
CHANGES = (
    *("; touch made", "\ntouch made\n", " && touch made", " | tee made", " > made", ">made", " >> made "),
    *(" & touch made & ", "$(touch made)"),
    *("`touch made`", "${x:-$(touch made)}", "<(touch made)", "$((a[$(touch made)]))", " -o made"),
    *(" --output=made", " -exec touch made \\;"),
    *(" -delete ", " -i ", " --pre=./trap.py ", "'", '"', "\\", "\\\n", "\n", "\r", "\t", " ", ";", "&", "|"),
    *("<", ">", "(", ")", "{", "}"),
    *("$", "`", "*", "?", "[", "]", "~", "!", "#", "=", "%", "^", ",", "$'", '$"', "\u00a0", "\u2003", "\u202e"),
    *("\u200b", "\ufeff", "\x00"),
    *("env ", "sudo ", "xargs ", "timeout 2 ", "nohup ", "command ", "exec ", "eval ", "bash -c ", "time ", "! "),
    *("coproc ", "x=1 ", "'a'", '"b"'),
    *("touch made", "made", "-", "--", "-e", "-f", "<<E\n", "<<<", "$\\\n(touch made)", "{a,b}", "||", "&&"),
    *("|&", ";;", "<>made", "2>made", ">|made"),
)  # fmt: skip


def from_grammars(seed: int) -> Iterator[str]:
    """Commands and pipelines as the grammars let them be, with operands that are traps where they can."""
    chance = random.Random(seed)
    while True:
        parts = [_command(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
        text = parts[0]
        for part in parts[1:]:
            text += chance.choice(JOINTS) + part
        yield text


def mutants(seed: int) -> Iterator[str]:
    """Known commands with one to three pieces put in or characters taken out."""
    chance = random.Random(seed)
    while True:
        text = chance.choice(EVERYDAY)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            place = chance.randint(0, len(text))
            kept = place + (chance.random() < 0.2)
            text = text[:place] + chance.choice(CHANGES) + text[kept:]
        yield text


def _command(chance: random.Random) -> str:
    name = chance.choice((*GRAMMARS, "find", "find", "test", "sed", "printf", "echo", "jq", "date", "xxd", "xxd"))
    if name == "find":
        return _find(chance)
    words = [name]
    rules = GRAMMARS.get(name)
    while chance.random() < 0.5:
        long = () if rules is None else (*sorted(rules.long), *sorted(rules.long_values))
        words.append(_option(chance, rules.flags if rules else "", rules.values if rules else "", long))
    words += [chance.choice(OPERANDS) for _ in range(chance.choice((0, 1, 1, 2, 2, 3)))]
    chance.shuffle(tail := words[1:])
    return " ".join((name, *tail))


def _option(chance: random.Random, flags: str, values: str, long: tuple[str, ...]) -> str:
    kind = chance.random()
    if kind < 0.4 and flags:
        return "-" + "".join(chance.choice(flags) for _ in range(chance.choice((1, 1, 2))))
    if kind < 0.7 and values:
        return f"-{chance.choice(values)}{chance.choice((' ', ''))}{chance.choice(VALUES)}"
    if long:
        return f"--{chance.choice(long)}" + (f"={chance.choice(VALUES)}" if chance.random() < 0.5 else "")
    return f"-{chance.choice('abcdefghijklmnopqrstuvwxyz')}{chance.choice(('', 'o', '5', ' 5', 'i'))}"


def _find(chance: random.Random) -> str:
    words = ["find", chance.choice((".", "src", "a.txt", "'src'"))]
    for _ in range(chance.randint(0, 4)):
        kind = chance.random()
        if kind < 0.5:
            words += [chance.choice(sorted(WITH_TEXT)), chance.choice(("x", "'*.py'", "f", "2", "made", "-delete"))]
        elif kind < 0.6:
            words += [chance.choice(sorted(WITH_FILE)), chance.choice(OPERANDS)]
        else:
            words.append(chance.choice(sorted(WITHOUT_VALUE)).replace("(", "\\(").replace(")", "\\)"))
    return " ".join(words)
