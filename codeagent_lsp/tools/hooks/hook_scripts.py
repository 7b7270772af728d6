"""The files of a workspace that a hook's command runs, which the user's trust in the hook is bound to.

Found by their spelling, also in the scripts themselves: named where a command stands, behind a program that runs files,
sourced, imported, or in the file of a task runner. Files that are only read are left out, as the agent may well change
these. A command can reach a file in ways that no spelling shows; what it then does stays in the sandbox. Not here: the
files that define hooks (`hook_files.py`), asking for trust (`hooks.py`).
"""

# ruff: noqa: PTH118, PTH119, PTH120 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import glob
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from codeagent_lsp.errors import AgentError
from codeagent_lsp.system import open_following
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import path_of

MOST_SCRIPTS = 100
MOST_BYTES = 1 << 20
"""A longer script is known by its size and times instead of its content."""
MOST_WORDS = 2000
MOST_QUOTED = 1 << 16
"""Characters of a shell text in which quoted words are put together."""
MOST_LOOKED_AT = 1 << 20
"""Characters of scripts, over all scripts of a command, in which others are looked for."""

_HOOK_FOLDERS = (".claude", ".codeagent")
_SHELL_SUFFIXES = (".sh", ".bash", ".zsh", ".ksh", ".fish")
_RUNNERS = re.compile(
    r"(?<![\w.-])"
    r"(?:(?:ba|da|z|k|fi)?sh|source|eval|exec|env|timeout|nice|nohup|stdbuf|setsid|sudo|-exec(?:dir)?"
    r"|python|pypy|node|deno|bun|bunx|ruby|perl|php|lua|uv|uvx|run|npx|npm|pnpm|yarn|tsx|ts-node|poetry|pipenv|pdm|hatch"
    r"|rye|rscript|osascript|pwsh|dotnet|java|go|bundle)[0-9.]*(?=[\s\"']|$)"
    r"|^\s*\.(?=\s)|(?<!\S)(?:entry|include|-f|--(?:make|just)?file|run-parts)[:=]?(?=\s)",
    re.IGNORECASE | re.MULTILINE,
)
_READERS = re.compile(
    r"\s*(?:(?:npx|bunx|uvx|xargs|yarn|(?:pnpm|npm) exec|(?:uv|poetry|pipenv|pdm|hatch|rye) run|bundle exec"
    r"|python[0-9.]* -m)\s+)*(?:py_compile|compileall|json\.tool|black|ruff|isort|flake8|mypy|pyright|autopep8|yapf"
    r"|prettier|eslint|biome|tsc|gofmt|rustfmt|shellcheck)(?=[\s\"']|$)"
)
"""Programs that check or format the files behind them, and run none of them but those that their options name."""
# `ruff check --fix src`: these take no value, so what follows is still a file that is only read.
_SWITCHES = re.compile(
    r"(?:-[wqilu]|--(?:write|fix|fix-only|unsafe-fixes|check|diff|quiet|in-place|list-different|apply|silent|noEmit))\s+$"
)
# `--config x.py`: the value of an option may be run.
_OPTION = re.compile(r"(?:^|\s)--?[\w-]+(?:=|\s+)[\"']?$")
# `node -r./a.js`
_GLUED = re.compile(r"-[A-Za-z][.~/]")
_BARE_RUNNER = re.compile(
    r"(?:^|[\s/\"'])(?:(?:ba|da|z|k)?sh|eval|python[0-9.]*|node)"
    r"(?:\s{1,4}-\w{1,32}){0,8}\s{0,4}[\"']?\s{0,4}(?:<|\$?$|\$\()"
)
_VARIABLE = re.compile(r"\$\{[^{}]*\}|\$\w+")
_SEGMENT = re.compile(r"[;&|\n()`]+")
_PATH = re.compile(r"[^\s\"'`;&|()<>{}$=,:*?!\\\[\]]+")
_ENTERED = re.compile(
    r"(?:(?:\b(?:cd|pushd)|-C|--(?:prefix|dir|cwd|directory))[\s=]+|(?<!\S)-I\s*)[\"']?([^\s\"';&|():]+)"
)
_SEARCHES = re.compile(r"(?<![\w-])(?:\w*path|perl5lib|rubylib)(?![\w.-])|\bfish_add_path\b", re.IGNORECASE)
"""A variable with the folders in which programs and modules are looked for. It is set in too many ways to read which
(`PATH=tools`, `P=tools; PATH+=":$P"`, `read PATH`, `path=(tools $path)`): any folder that the command names may be."""
_FOLDER = re.compile(r"[^\s\"'`;&|()<>{}=,:*?!\[\]]+")
_NO_SIGNS = re.compile(r"\"\"|''|\\")
_OBEYED = re.compile(
    r"(?<![\w-])(?:\w*OPT(?:S|IONS)?|\w*PRELOAD|\w*ENV|PYTHONSTARTUP|LD_\w+|DYLD_\w+|GIT_\w+|\w*RC|\w*SHELL|\w*EDITOR"
    r"|\w*PAGER|\w*COMMAND|\w*CMD)\+?=(\"[^\"]*\"|'[^']*'|\S+)"
)
"""A variable by which a program is told to run or load a file, with its value."""
_LOADED = re.compile(r"(?<![^\s=\"'])-(?:[rM]\s*)([A-Za-z_][\w:/-]*)(?![\w./])")
"""`perl -MFoo::Bar`, `ruby -rfoo`."""
_MODULE = re.compile(r"(?<!\S)-m\s+([\w.]+)")
# `from .a import b, c`, `from a import (b, c)`, `import a.b, c`, also in `-c 'import a'`.
_PYTHON_IMPORT = re.compile(
    r"(?:^|[;:'\"])[ \t]*"
    r"(?:from[ \t]+([.\w]+)[ \t]+import[ \t]*(?:\(([\w,\s*]*)|([\w, \t*]+))|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
_GLOB = re.compile(r"[*?\[]")
_SCRIPT_IMPORT = re.compile(r"(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*[\"'](\.{1,2}/[^\"'\n]+)[\"']")
_SCRIPT_SUFFIXES = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
_TASK_FILES: Mapping[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "composer": ("composer.json",),
    "tox": ("tox.ini", "pyproject.toml"),
    "hatch": ("pyproject.toml", "hatch.toml"),
    "pytest": ("conftest.py", "tests/conftest.py"),
    "gradlew": ("build.gradle", "build.gradle.kts"),
    "eslint": tuple(f"eslint.config.{end}" for end in ("js", "mjs", "cjs", "ts")),
    "prettier": tuple(f"prettier.config.{end}" for end in ("js", "mjs", "cjs", "ts")),
    "rake": ("Rakefile",),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "lefthook": ("lefthook.yml", ".lefthook.yml", "lefthook.yaml"),
}
_TASK_RUNNER = re.compile(rf"(?<![\w.-])({'|'.join(_TASK_FILES)})(?![\w./-])")


@dataclass(frozen=True, slots=True)
class _Named:
    """What a text names: words that may be paths, and whether such a file is run; folders that are entered; modules."""

    words: tuple[tuple[str, bool], ...]
    entered: tuple[str, ...]
    modules: tuple[str, ...]
    tasks: tuple[str, ...]


class ScriptFinder:
    """Finds the files that commands run; the names found in a text are cached as long as it lives. Methods block."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, bool], _Named] = {}

    def scripts_of(self, command: str, folder: str, view: FileView) -> dict[str, bytes]:
        """Return the files that a command runs when it is started in `folder`, an absolute path of the workspace: their
        paths, and their content on the disk and, as `unsaved:PATH`, in the editor or staged; {} for none. At most 100
        files are followed.
        """
        search = _ScriptSearch(view, self._named_files)
        search.look_at(command, (folder,))
        return search.found

    def _named_files(self, text: str, shell: bool) -> _Named:
        found = self._kept.get((text, shell))
        if found is None:
            if len(self._kept) >= MOST_SCRIPTS:
                self._kept.clear()
            found = self._kept[text, shell] = _names_in(text, shell=shell)
        return found


@dataclass
class _ScriptSearch:
    """The scripts of one command, found so far."""

    view: FileView
    named: Callable[[str, bool], _Named]
    found: dict[str, bytes] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _listed: dict[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._left = MOST_LOOKED_AT
        self._over_disk = frozenset(self.view.over_disk())

    def look_at(self, text: str, bases: tuple[str, ...], *, shell: bool = True) -> None:
        """Take the files that a text runs from one of the folders `bases`; each of its lines is a command if it is a
        `shell` text, else some may contain one.
        """
        named = self.named(text, shell)
        # Every folder that may be the working folder, as what a condition or a variable makes of it is not followed: a
        # script too many only asks the user once more.
        bases = (*bases, *self._entered_folders(named.entered, bases))
        for word, is_run in named.words:
            for path in self._places(word, bases):
                # A file that is only named is data, and may change as often as it likes.
                if is_run or self._is_program(path):
                    self._take(path, bases)
        for name in named.modules:
            self._take_module(name, bases)
        for name in named.tasks:
            for path in (path for file in _TASK_FILES[name] for path in self._places(file, bases)):
                self._take(path, bases)

    def _entered_folders(self, folders: tuple[str, ...], bases: tuple[str, ...]) -> Iterator[str]:
        """Yield the folders that a command may go to before it runs a file."""
        for path in (self._resolve(os.path.join(base, folder)) for folder in folders for base in bases):
            if path is not None and path not in bases and self.view.roots.kind(path) == "folder":
                yield path

    def _places(self, word: str, bases: tuple[str, ...]) -> Iterator[str]:
        """Yield the files that a word may name. What stands before the slash behind a variable is not known."""
        name = word.rpartition("\0")[2]
        # Also without its slash: behind a variable that was cut off in front of it, the word is relative.
        names = (word, word.lstrip("/")) if "\0" not in word else (name.lstrip("/"),)
        found = [os.path.join(base, each) for each in names if each for base in bases if self._may_have(base, each)]
        if _GLOB.search(name):
            found += [path for each in tuple(found) for path in islice(glob.iglob(each), MOST_SCRIPTS)]  # noqa: PTH207
        elif "." not in os.path.basename(name):
            found += [f"{path}{suffix}" for path in tuple(found) for suffix in _SCRIPT_SUFFIXES]  # node needs none
        for path in dict.fromkeys(found):
            if self._is_there(path) and self.view.roots.root_of(os.path.normpath(path)) is not None:
                yield path

    def _may_have(self, base: str, word: str) -> bool:
        """Return whether a folder has what a word begins with: most words are no paths, and this costs the least."""
        if base not in self._listed:
            try:
                names = os.listdir(base)  # noqa: PTH208 - may be any bytes
            except OSError:
                names = []
            inside = path_of(base, "")
            opened = (path[len(inside) :].partition(os.sep)[0] for path in self._over_disk if path.startswith(inside))
            self._listed[base] = frozenset(name.casefold() for name in (*names, *opened))
        first = word.partition("/")[0]
        return first in ("", ".", "..") or first.casefold() in self._listed[base]

    def _take(self, path: str, bases: tuple[str, ...]) -> None:
        """Take one file, and look at what it runs itself."""
        real = self._resolve(path)
        # By its real path, so that a link to a script and the script are one.
        key = real or os.path.realpath(path)
        if key in self._seen or len(self.found) >= MOST_SCRIPTS:
            return
        self._seen.add(key)
        if os.path.isdir(path):  # noqa: PTH112 - may be any bytes
            # Of a folder the interpreter runs `__main__`; in the folders of hooks any file may be run by what is
            # run.
            inside = os.listdir(path) if any(f"/{folder}/" in f"{path}/" for folder in _HOOK_FOLDERS) else ()  # noqa: PTH208
            for name in ("__main__.py", *sorted(inside)[:MOST_SCRIPTS]):
                self._take_file(os.path.join(path, name), bases)
            return
        # What is on the disk is what runs outside of a shadow, what is unsaved or staged what runs within one: the user
        # trusts both or neither.
        content = _content(key)
        if content is not None:
            self.found[key] = content
        text = b"" if content is None else content
        if real is not None and real in self._over_disk:
            try:
                text = self.view.read(real).text.encode("utf-8", "surrogatepass")
                self.found[f"unsaved:{key}"] = text
            except AgentError:
                pass
        if real is not None and text:
            self._look_into(real, text.decode("utf-8", "replace"), bases)

    def _look_into(self, path: str, text: str, bases: tuple[str, ...]) -> None:
        self._left -= len(text)
        # A NUL is a sign of a binary file.
        if self._left < 0 or "\0" in text[:1000]:
            return
        # A script names others from where it was started, or from where it stands.
        inner = tuple(dict.fromkeys((*bases, os.path.dirname(path))))
        first = text.partition("\n")[0] if text.startswith("#!") else ""
        if is_python := path.endswith(".py") or "python" in first:
            for name in dict.fromkeys(_imported_modules(text)):
                self._take_module(name, inner)
        if is_script := path.endswith(_SCRIPT_SUFFIXES) or "node" in first:
            ends = ("", *(f"{inside}{suffix}" for suffix in _SCRIPT_SUFFIXES for inside in ("", "/index")))
            for name in (f"{name}{end}" for name in _SCRIPT_IMPORT.findall(text) for end in ends):
                self._take_file(os.path.join(os.path.dirname(path), name), inner)
        self.look_at(text, inner, shell=not (is_python or is_script))

    def _take_module(self, name: str, bases: tuple[str, ...]) -> None:
        """Take the files of a Python module, and of the packages that it is in."""
        parts = [part for part in name.split(".") if part]
        for base in bases:
            first = os.path.join(base, *parts[:1])
            # Most imports are of the standard library: one look instead of three for each part of the name.
            if not (self._over_disk or os.path.lexists(first) or os.path.lexists(f"{first}.py")):
                continue
            for end in range(1, len(parts) + 1):
                stem = os.path.join(base, *parts[:end])
                # All of the packages around it are run before the module itself.
                for file in (f"{stem}.py", os.path.join(stem, "__init__.py"), os.path.join(stem, "__main__.py")):
                    self._take_file(file, bases)

    def _take_file(self, path: str, bases: tuple[str, ...]) -> None:
        if self._is_there(path):
            self._take(path, bases)

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(path) or os.path.normpath(path) in self._over_disk

    def _is_program(self, path: str) -> bool:
        """Return whether a file is likely to be run wherever it is named."""
        if path.endswith(_SHELL_SUFFIXES) or any(f"/{folder}/" in path for folder in _HOOK_FOLDERS):
            return True
        try:
            info = os.stat(path)  # noqa: PTH116
        except OSError:
            # Not on the disk yet, so without rights; programs of the shell mostly have no ending.
            return "." not in os.path.basename(path)
        return stat.S_ISREG(info.st_mode) and bool(info.st_mode & 0o111)

    def _resolve(self, path: str) -> str | None:
        """Return the real path of a file in the workspace; None for another."""
        try:
            return self.view.roots.resolve(path)
        except (AgentError, ValueError):
            return None


def _names_in(text: str, *, shell: bool) -> _Named:
    # A NUL stands for a variable, of which only the place is known.
    plain = _VARIABLE.sub("\0", text).replace('\0"', "\0").replace("\0'", "\0")
    searched = _FOLDER.findall(_NO_SIGNS.sub("", plain))[:MOST_WORDS] if _SEARCHES.search(text) else ()
    places = (*(match[1] for match in _ENTERED.finditer(plain)), *(place for place in searched if place.strip("\0")))
    entered = (place.replace("\0", "").strip("/") or "." for place in places)
    imported = (*_SCRIPT_IMPORT.findall(text), *_loaded_files(plain)) if shell else ()
    quoted = _quoted_words(_VARIABLE.sub("\0", text)) if shell and len(text) <= MOST_QUOTED else ()
    return _Named(
        tuple((dict(_words(plain, shell=shell)) | dict.fromkeys((*imported, *quoted), True)).items()),
        tuple(dict.fromkeys(entered)),
        tuple(dict.fromkeys((*_MODULE.findall(plain), *(_imported_modules(text) if shell else ())))),
        tuple(dict.fromkeys(_TASK_RUNNER.findall(plain))),
    )


def _loaded_files(text: str) -> Iterator[str]:
    """Yield the files that a shell text has a program load by its variables and options, beside a folder for these."""
    for match in _OBEYED.finditer(text):
        for word in _PATH.findall(match[1]):
            yield from (word, re.sub(r"^-[A-Za-z]", "", word))
    for match in _LOADED.finditer(text):
        name = match[1].replace("::", "/")
        yield from (f"{name}.pm", f"{name}.rb")


def _words(text: str, *, shell: bool) -> Iterator[tuple[str, bool]]:
    """Yield what may be paths in a text with commands, each once, and whether it is run if it is a file."""
    segments = _SEGMENT.split(text)
    fed = shell and any(_BARE_RUNNER.search(segment) for segment in segments)
    words: dict[str, bool] = {}
    for segment in segments:
        runner = _RUNNERS.search(segment)
        start = len(segment) if runner is None else runner.end()
        reader = _READERS.match(segment)
        for number, match in enumerate(_PATH.finditer(segment)):
            # In a program nearly every word would be one.
            if not shell and "/" not in match[0] and "." not in match[0]:
                continue
            is_run = fed or match.start() >= start or (shell and number == 0)
            if reader is not None and match.start() >= reader.end():
                is_run = _is_option(segment[: match.start()])
            words[match[0]] = words.get(match[0], False) or is_run
            if is_run and _GLUED.match(match[0]):
                words[match[0][2:]] = True
    yield from islice(words.items(), MOST_WORDS)


def _is_option(before: str) -> bool:
    """Return whether a word is the value of the option before it, such as a plugin."""
    return bool(_OPTION.search(before)) and not _SWITCHES.search(before)


def _quoted_words(text: str) -> Iterator[str]:
    """Yield the words of a shell text that are no plain paths, as the shell puts them together: with blanks, other
    letters, patterns.
    """
    for line in text.splitlines()[:MOST_WORDS]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        try:
            yield from (word for word in lexer if not _PATH.fullmatch(word) and "/" in word)
        except ValueError:  # a quote that goes on in the next line
            continue


def _imported_modules(text: str) -> Iterator[str]:
    """Yield the modules that a Python text imports; relative ones as if they were beside it."""
    for match in _PYTHON_IMPORT.finditer(text.replace("\\\n", "")):
        if match[4]:
            yield from (name.split()[0] for name in match[4].split(",") if name.split())
            continue
        yield match[1]
        names = (match[2] or match[3] or "").split(",")
        yield from (f"{match[1]}.{name.split()[0]}" for name in names if name.split())


def _content(path: str) -> bytes | None:
    """Return the content of a regular file, or for a long one its size and times; None for anything else."""
    try:
        # Non-blocking, as opening a named pipe would wait for a writer.
        descriptor = open_following(path)
    except (OSError, ValueError):
        return None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            return None
        if info.st_size > MOST_BYTES:
            return f"{info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}".encode()
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    finally:
        os.close(descriptor)
