"""The built-in deny list: commands that are never run, in no mode and through no wrapper; and the paths that none may
delete or write: the system, a home folder, a device, settings of a program. Pure functions.

It judges the words of a command and the targets of its redirections, by the text alone. It guards against accidents and
plain malice; the security boundary is the isolation. Not here: what workspace files run later
(`workspace/files/sensitive.py`), confinement (`workspace/files/paths.py`).
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING

from codeagent_lsp.tools.permissions.shell.reading import Invocation, Script
from codeagent_lsp.tools.permissions.shell.syntax import NodePlace, text_of, walk
from codeagent_lsp.tools.permissions.shell.wrappers import INTERPRETERS, Everything, is_wrapper
from codeagent_lsp.workspace.files import sensitive

if TYPE_CHECKING:
    from tree_sitter import Node

_DISK_TOOLS = frozenset(("wipefs", "blkdiscard", "mkswap", "newfs", "mke2fs", "mkdosfs", "badblocks"))
_PARTITIONERS = frozenset(("fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted", "hdparm", "shred", "cryptsetup"))
_READING_DISKS = frozenset(("-l", "--list", "print", "-p", "-I", "-i", "-t", "-T", "--help", "--version", "-V"))
_POWER = frozenset(("shutdown", "reboot", "halt", "poweroff", "kexec"))
_POWER_UNITS = frozenset("poweroff reboot halt kexec rescue emergency suspend hibernate".split())  # noqa: SIM905
_EDITORS = frozenset(("code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "code-server", "zed"))
_EXECS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_REMOVERS = frozenset(("rm", "grm", "srm", "chmod", "chown", "find", "shred"))
_TAKE_WORDS = frozenset(
    "echo printf print grep egrep fgrep rg ag ack git man info which whereis type whatis apropos tldr help".split()  # noqa: SIM905
)
"""Commands that do not run the words behind them."""
_MOST_WORDS = 64
_PATTERN = re.compile(r"(?=.{0,16}[a-z])(?=.{0,16}[*?\[])[\w*?\[\]!-]{1,16}")
"""A command's name that the shell matches with names of programs."""
_REMOVER = re.compile(r"(?:^|[\s/;&|(])(?:rm|unlink|shred|rmdir)(?:\s|$)")
_FREE_FIND = frozenset(("-mindepth", "-maxdepth", "-type", "-depth", "-xdev", "-mount", "-print", "-print0", "-delete"))
_REMOVES_TREE = re.compile(
    r"(?:rmtree|rmSync|rmdirSync|rimraf(?:\.sync)?|rm_rf|rm_r|remove_entry|remove_tree|remove_dir_all|removeSync"
    r"|RemoveAll)"
    r"[\s(]{0,9}(?P<target>[^;\n]{0,80})"
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+::?(?=[/~])")
_QUOTED = re.compile(r"['\"]([^'\"]+)['\"]")
# `Path.home()`, `os.homedir()`, `Dir.home`, `process.env.HOME`.
_HOME_IN_CODE = re.compile(
    r"[\w.\[(]{0,40}(?:Path\.home\(|homedir\(|Dir\.home|UserHomeDir\(|['\"]HOME['\"]|env\.HOME\b)"
)
MAX_FUNCTIONS = 40
MAX_DEPTH = 64
_CONDITIONS = frozenset(("if_statement", "case_statement", "list"))
_BESIDE = frozenset(("pipeline", "subshell", "command_substitution", "process_substitution"))
# `:(){ :|:& };:` with any name; below, `$0 | $0 &`.
_SPELLED = re.compile(
    r"(?<![^\s(){};|&])(?P<name>[^\s(){};|&]{1,200})\s{0,9}\(\s{0,9}\)\s{0,9}[{(]\s{0,9}(?P=name)\s{0,9}[|&]\s{0,9}(?P=name)"
)
_ITSELF = re.compile(
    r"(?:^|[\s;(])(?:\w{0,9}sh\s{1,9})?(?:\"?\$0\"?|\$BASH_SOURCE)\s{0,9}(?:[|&](?!&)\s{0,9})(?:\w{0,9}sh\s{1,9})?\"?\$0"
)
_ENDLESS = re.compile(
    r"while\s+(?:true|:|\[ 1 \]|\(\(\s*1?\s*\)\))\s*$|until\s+false\s*$|for\s*\(\(\s*;\s*;\s*\)\)\s*$"
)
# `yes | while read x; do y & done` has no end either.
_FED = re.compile(r"\b(?:yes|cat[ \t]+/dev/(?:zero|u?random))\b[^|;&\n]{0,200}\|[ \t\n]*while\b")
_READS = re.compile(r"\s*while\s+(?:IFS=\S*\s+)?read\b")
# `while True: os.fork()`, `fork while fork`, `loop { fork }`.
_PROGRAM = re.compile(
    r"fork\s{0,9}(?:\(\s{0,9}\))?\s{0,9}while\s{0,9}(?:\(?\s{0,9}(?:1|true|fork)\b)"
    r"|while\s{0,9}\(?\s{0,9}(?:1|true)\s{0,9}\)?\s{0,9}[:{;]?\s{0,9}(?:do\s{1,9})?(?:os\.|posix\.)?fork\b"
    r"|loop\s{0,9}(?:\{|do)?\s{0,9}fork\b",
    re.IGNORECASE,
)
_SYSTEM = frozenset(
    """
    / /bin /boot /dev /etc /home /lib /lib32 /lib64 /libx32 /opt /proc /root /run /sbin /srv /sys /usr /usr/bin
    /usr/lib /usr/local /usr/sbin /usr/share /var /var/lib /var/log /Users /System /Library /Applications /private
    /Volumes /mnt /media c: c:/ /c /mnt/c
    """.casefold().split()
)
_HOME = re.compile(r"~[\w.-]*|/home/[^/]+|/users/[^/]+|/var/root")
# `~/..` and `~user/../..`.
_ABOVE_HOME = re.compile(r"~[\w.-]*(?:/+\.{1,2})+/*")
_GLOB = re.compile(r"[?*\[]")
_GLOB_TOP = re.compile(r"/[?*\[][^/]*")
# `/*`, `/.*`, `/{*,.*}`, `/.[!.]*`, `/.`: all that is in a folder.
_ALL_OF_IT = re.compile(r"(?:/(?:\*\*?|\.\*|\{\*,\.\*\}|\.\?\*|\.\[!\.\]\*|\.))+/?$|/+$")
_LONGEST = 4_096  # no system call takes a longer path
_LONGEST_PATTERN = 64
_SLASHES = re.compile(r"//+")
# Everything in /dev but streams, terminals and bash's network paths.
_DEVICE = re.compile(
    r"/dev/(?!(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|ptmx)$|(?:fd|shm|pts|tcp|udp)/).+"
)
_CRITICAL = re.compile(
    r"/etc/(?:passwd|shadow|group|gshadow|sudoers(?:\.d/.*)?|fstab|ld\.so\.preload|crontab|cron\..*|pam\.d/.*|hosts)"
    r"|/boot/.*|/proc/sysrq-trigger|/proc/sys/.*|/sys/.*|/var/spool/cron/.*"
)


def denial(everything: Everything) -> str | None:
    """Return the reason, in English, why the script is never run; None if it is not denied. Pure; the first reason
    found counts.
    """
    return next(_denials(everything), None)


def _denials(everything: Everything) -> Iterator[str]:
    for script in everything.scripts:
        if is_bomb(script):
            yield "A fork bomb is never run."
    yield from (reason for target in everything.writes if (reason := _write_refusal(target)))
    folder = ""
    for invocation in everything.invocations:
        # `cd / && rm -r etc`; without an operand, `cd` goes home.
        if invocation.name in ("cd", "pushd"):
            folder = join_path(folder, next(iter(_operands(invocation.words)), "~"))
        for command in (invocation, *_behind(invocation)):
            checks = (check(command, folder) for check in _checks(command.name))
            yield from filter(None, checks)
        yield from (reason for target in _targets(invocation) if (reason := _write_refusal(target)))


Check = Callable[[Invocation, str], str | None]


def _checks(name: str) -> Iterator[Check]:
    """Yield the checks of a command by its name, which may be a pattern that the shell matches."""
    if _PATTERN.fullmatch(name):
        yield from (check for known, check in _CHECKS.items() if fnmatchcase(known, name))
    elif (check := _CHECKS.get(name) or _by_family(name)) is not None:
        yield check


def _behind(invocation: Invocation) -> Iterator[Invocation]:
    """Yield what would remove a tree if the command ran the words behind it, as wrappers that are not known do."""
    if invocation.name in _TAKE_WORDS or is_wrapper(invocation.name):
        return
    for place, word in enumerate(invocation.words[1:_MOST_WORDS], 1):
        if word.rsplit("/", 1)[-1] in _REMOVERS:
            yield Invocation(invocation.words[place:], invocation.text)


def _by_family(name: str) -> Check | None:
    if name.startswith("mkfs") or name in _DISK_TOOLS:
        return _disk
    return _program if INTERPRETERS.fullmatch(name) else None


def _remove(command: Invocation, folder: str) -> str | None:
    flags = _flags(command.words)
    if any(_abbreviates(flag, "--no-preserve-root", "--n") for flag in flags):
        return "Removing the root folder is never run."
    if not any(_abbreviates(flag, "--recursive", "--r") or re.match(r"-\w*[rR]", flag) for flag in flags):
        return None
    return _catastrophe(command, folder, "Removing the system or a home folder is never run.")


def _own(command: Invocation, folder: str) -> str | None:
    flags = _flags(command.words)
    if not any(_abbreviates(flag, "--recursive", "--rec") or re.match(r"-\w*R", flag) for flag in flags):
        return None
    return _catastrophe(command, folder, "Changing the rights of the system or a home folder is never run.")


def _move(command: Invocation, folder: str) -> str | None:
    # The last word is where to, which moving does not remove.
    moved = Invocation(command.words[:-1], command.text)
    return _catastrophe(moved, folder, "Moving the system or a home folder is never run.")


def _catastrophe(command: Invocation, folder: str, reason: str) -> str | None:
    places = (join_path(folder, operand) for operand in _operands(command.words))
    return reason if any(map(is_catastrophic, places)) else None


def _find(command: Invocation, folder: str) -> str | None:
    """Return the denial of `find / -delete` and the like; None if a test narrows the search."""
    words = command.words[1:]
    starts = next((place for place, word in enumerate(words) if word in _EXECS), len(words))
    removes = "-delete" in words or any(map(_REMOVER.search, words[starts + 1 :]))
    words = words[:starts]
    first = next((place for place, word in enumerate(words) if word.startswith(("-", "(", "!"))), len(words))
    # A test that everything passes (`-name '*'`) narrows nothing.
    named = [word for word, value in pairwise((*words[first:], "")) if value != "*"]
    if not removes or {word for word in named if re.fullmatch(r"-[a-z0-9]{2,}", word)} - _FREE_FIND:
        return None
    return _catastrophe(Invocation(("find", *words[:first]), ""), folder, "Removing the system is never run.")


def _rsync(command: Invocation, folder: str) -> str | None:
    """Return the denial of a copy that deletes whatever else is in the system or a home folder."""
    flags = _flags(command.words)
    if any(_abbreviates(flag, "--delete", "--del") or flag.startswith("--delete-") for flag in flags):
        local = (_REMOTE.sub("", operand) for operand in _operands(command.words)[-1:])
        target = Invocation(("rsync", *local), "")
        return _catastrophe(target, folder, "Emptying the system or a home folder is never run.")
    return None


def _disk(command: Invocation, folder: str) -> str | None:
    return "Making or wiping a file system is never run." if _operands(command.words) else None


def _partition(command: Invocation, folder: str) -> str | None:
    writes = any(map(is_device, _operands(command.words))) and _READING_DISKS.isdisjoint(command.words)
    return "Changing a disk is never run." if writes else None


def _power(command: Invocation, folder: str) -> str | None:
    asked = {"--help", "--version", "-c", "--show"} & set(command.words)
    return None if asked else "Stopping the machine is never run."


def _init(command: Invocation, folder: str) -> str | None:
    return "Stopping the machine is never run." if {"0", "6"} & set(command.words[1:]) else None


def _systemctl(command: Invocation, folder: str) -> str | None:
    return "Stopping the machine is never run." if _POWER_UNITS & set(_operands(command.words)[:1]) else None


def _kill(command: Invocation, folder: str) -> str | None:
    # `kill -1 42` sends signal 1: only from the second word on, -1 stands for all processes. 1 is init.
    targets = [word for word in command.words[2:] if word in ("-1", "1")]
    lone = command.words[1:] in (("1",), ("--", "-1"))
    return "Ending all processes is never run." if targets or lone else None


def _kill_all(command: Invocation, folder: str) -> str | None:
    return "Ending all processes is never run."


def _crontab(command: Invocation, folder: str) -> str | None:
    return None if "-l" in command.words else "Commands that run at set times are not installed from here."


def _git(command: Invocation, folder: str) -> str | None:
    words = command.words[1:]
    if "config" not in words or not {"--global", "--system"} & set(words):
        return None
    asked = {"--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"} & set(words)
    # A name alone is read; with a second word it is set.
    names = [word for word in words[words.index("config") + 1 :] if not word.startswith("-")]
    changes = len(names) > 1 or {"--unset", "--unset-all", "--edit", "-e", "--remove-section"} & set(words)
    return "Git's settings for the user or the machine are not changed from here." if changes and not asked else None


def _editor(command: Invocation, folder: str) -> str | None:
    installs = any(word.partition("=")[0] == "--install-extension" for word in command.words)
    return "Extensions of an editor are not installed from here." if installs else None


def _program(command: Invocation, folder: str) -> str | None:
    text = f"{' '.join(command.words[1:])}\n{command.stdin or ''}"
    if is_program_bomb(text):
        return "A fork bomb is never run."
    gone = any(_removes_all(match["target"]) for match in _REMOVES_TREE.finditer(text))
    return "Removing the system or a home folder is never run." if gone else None


def _removes_all(target: str) -> bool:
    """Return whether the argument of a function that removes a tree names the system or a home folder."""
    path = _QUOTED.search(target)
    return bool(_HOME_IN_CODE.match(target)) or (path is not None and is_catastrophic(path[1]))


_CHECKS: dict[str, Check] = {
    "rm": _remove,
    "grm": _remove,
    "srm": _remove,
    "chmod": _own,
    "chown": _own,
    "chgrp": _own,
    "chattr": _own,
    "mv": _move,
    "find": _find,
    "gfind": _find,
    "rsync": _rsync,
    "init": _init,
    "telinit": _init,
    "systemctl": _systemctl,
    "loginctl": _systemctl,
    "kill": _kill,
    "killall5": _kill_all,
    "crontab": _crontab,
    "git": _git,
    **dict.fromkeys(_PARTITIONERS, _partition),
    **dict.fromkeys(_POWER, _power),
    **dict.fromkeys(_EDITORS, _editor),
}


def _write_refusal(target: str) -> str | None:
    """Return the reason why a command may not write to `target`; None if it may."""
    if is_device(target):
        return "Writing to a device is never run."
    if is_critical(target):
        return "Writing to a file that the system depends on is never run."
    if is_settings(target):
        return "A command does not write settings that say what programs run. Propose the file as an edit instead."
    return None


def _targets(command: Invocation) -> tuple[str, ...]:
    """Return the files that a command's arguments tell it to write."""
    name, words = command.name, command.words
    operands = _operands(words)
    if name == "dd":
        return tuple(word[3:] for word in words[1:] if word.startswith("of="))
    if name in ("tee", "sponge", "truncate"):
        return operands
    if name in ("cp", "mv", "ln", "install", "rsync", "scp"):
        return _copy_targets(words, operands)
    if name in ("sed", "gsed", "perl") and any(re.match(r"-\w*i|--in-place", word) for word in words[1:]):
        return operands
    return ()


def _copy_targets(words: Sequence[str], operands: tuple[str, ...]) -> tuple[str, ...]:
    given = [word.partition("=")[2] for word in words if word.startswith("--target-directory=")]
    given += [words[place + 1] for place, word in enumerate(words[:-1]) if word == "-t"]
    folders = given or list(operands[-1:])
    # `cp passwd /etc` writes `/etc/passwd`.
    inside = [f"{folder}/{source.rsplit('/', 1)[-1]}" for folder in folders for source in operands[:64]]
    return (*folders, *inside) if len(operands) > 1 or given else ()


def _abbreviates(flag: str, option: str, least: str) -> bool:
    """Return whether a flag is a long option, maybe abbreviated; `least` is its shortest form that is not another's."""
    # GNU programs take any beginning of a long option that fits no other.
    return option.startswith(flag.partition("=")[0]) and flag.startswith(least)


def _flags(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words[1:] if word.startswith("-") and word != "-")


def _operands(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for word in words[1:] if not word.startswith("-"))


# Detection of fork bombs in any spelling: code that unconditionally starts itself concurrently. Pure functions.


def is_bomb(script: Script) -> bool:
    """Return whether the script is a fork bomb: a function or loop that starts itself or others endlessly, as far as
    its text shows.
    """
    text = script.text
    # Without any of these, nothing runs beside anything else; most commands end here, cheaply.
    if "&" not in text and "|" not in text and "$(" not in text and "`" not in text and "(" not in text:
        return False
    if _SPELLED.search(text) or _ITSELF.search(text):
        return True
    if script.tree is None or ("(" not in text and "function" not in text and "do" not in text):
        return False
    places, fed = list(walk(script.tree.root_node)), bool(_FED.search(text))
    return _calls_itself(places) or any(_endless_spawn(place.node, fed=fed) for place in places)


def is_program_bomb(code: str) -> bool:
    """Return whether a program in another language, given on the command line, forks endlessly, by known spellings of
    that.
    """
    return bool(_PROGRAM.search(code))


def _calls_itself(places: list[NodePlace]) -> bool:
    """Return whether a function reaches itself by concurrent calls that no condition guards."""
    calls: dict[str, set[str]] = {}
    for place in places:
        if place.node.type == "command_name" and (function := _free_in(place)) is not None:
            calls.setdefault(_name(function), set()).add(text_of(place.node))
    return any(_reaches(calls, name) for name in list(calls)[:MAX_FUNCTIONS])


def _reaches(calls: dict[str, set[str]], name: str) -> bool:
    reached: set[str] = set()
    waiting = set(calls[name])
    while waiting:
        called = waiting.pop()
        if called == name:
            return True
        reached.add(called)
        waiting |= calls.get(called, set()) - reached
    return False


def _free_in(place: NodePlace) -> Node | None:
    """Return the function that runs a command concurrently and unconditionally; None if there is none."""
    above, beside = place.above, False
    for _ in range(MAX_DEPTH):
        if above is None or above.node.type in _CONDITIONS:
            return None
        if above.node.type == "function_definition":
            return above.node if beside else None
        # A call that is waited for only recurses, until the stack is full; one beside it doubles.
        beside = beside or above.node.type in _BESIDE or above.following == "&"
        above = above.above
    return None


def _endless_spawn(node: Node, *, fed: bool) -> bool:
    """Return whether a node is an endless loop that starts background processes and never waits.

    `fed`: a program that never stops feeds the loops that read.
    """
    if node.type not in ("while_statement", "c_style_for_statement"):
        return False
    body = node.child_by_field_name("body") or next((part for part in node.children if part.type == "do_group"), None)
    if body is None or body.end_byte - body.start_byte > 1_024:
        return False
    head = (node.text or b"")[: body.start_byte - node.start_byte].decode(errors="replace").rstrip().rstrip(";")
    spawns = any(part.node.type == "&" for part in walk(body))
    waits = re.search(r"\b(?:wait|sleep|read|break|exit|return)\b", text_of(body))
    endless = _ENDLESS.search(head.strip()) or (fed and _READS.match(head))
    return bool(spawns and not waits and endless)


def _name(function: Node) -> str:
    name = function.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def is_catastrophic(path: str) -> bool:
    """Return whether removing this path, as a script writes it, recursively would remove the system or a home folder.
    By its text alone.
    """
    whole = _whole(path)
    if len(path) <= _LONGEST and _ABOVE_HOME.fullmatch(path):
        return True
    # Without case, as macOS and Windows compare names; the table has their folders and drives, too.
    return whole in _SYSTEM or bool(_HOME.fullmatch(whole) or _GLOB_TOP.fullmatch(whole)) or _may_be_system(whole)


def is_device(path: str) -> bool:
    """Return whether the path is a device, such as a disk or memory, other than a harmless stream such as `/dev/null`;
    by its text alone.
    """
    return bool(_DEVICE.fullmatch(_normal(path)))


def is_critical(path: str) -> bool:
    """Return whether the path, as a script writes it, is a file that the system depends on to start or to let users in,
    such as `/etc/passwd`; by its text alone.
    """
    return bool(_CRITICAL.fullmatch(_normal(path)))


def is_settings(path: str) -> bool:
    """Return whether the path is a settings file that determines what an editor, an agent, a shell or git runs; by its
    text alone.
    """
    return sensitive.is_settings([part for part in _normal(path).split("/") if part])


def join_path(folder: str, path: str) -> str:
    """Return `path` as seen after `cd folder`; '' as folder, and a path that begins with `/` or `~`, leaves it as it
    is.
    """
    return path if path.startswith(("/", "~")) or not folder else f"{folder[:_LONGEST]}/{path}"


def _may_be_system(path: str) -> bool:
    """Return whether a pattern of file names, such as `/e*c`, matches a folder of the system."""
    if not path.startswith("/") or not _GLOB.search(path) or len(path) > _LONGEST_PATTERN:
        return False
    alike = (name for name in _SYSTEM if name.count("/") == path.count("/"))
    return any(fnmatch.fnmatchcase(name, path) for name in alike)


def _whole(path: str) -> str:
    """Return the folder meant by a pattern for all its contents: `/etc/*` is `/etc`."""
    if len(path) > _LONGEST:
        return path
    path = _SLASHES.sub("/", path)
    text = _ALL_OF_IT.sub("", path)
    # Patterns may stand one behind the other: `/etc/./*`.
    while text != path:
        path, text = text, _ALL_OF_IT.sub("", text)
    return _normal(text or "/").casefold()


def _normal(path: str) -> str:
    return posixpath.normpath(_SLASHES.sub("/", path)) if 0 < len(path) <= _LONGEST else ""
