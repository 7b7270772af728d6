"""The language servers that are started where they are installed: programs, files, and the way each gives diagnostics.

Not here: which of them a workspace has (`running_servers.py`), talking to one (`language_server.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Literal

from codeagent_lsp.errors import SettingError

DiagnosticsWay = Literal["pull", "push", "tsserver"]
"""The way to get the diagnostics of exactly one text: by request (`textDocument/diagnostic`), by a notification, best
one that names the version of the text, or by a request to the TypeScript compiler behind its server.
"""

BINARIES = (".venv/bin", "venv/bin", "node_modules/.bin")
"""The folders of a project in which its own programs are."""

_C = ("c", "h")
_CPP = ("cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl")
_SCRIPT = {
    "ts": "typescript",
    "mts": "typescript",
    "cts": "typescript",
    "tsx": "typescriptreact",
    "js": "javascript",
    "mjs": "javascript",
    "cjs": "javascript",
    "jsx": "javascriptreact",
}
_KEYS = frozenset({"command", "languages", "settings", "initializationOptions", "markers", "diagnostics"})


@dataclass(frozen=True, slots=True)
class KnownServer:
    """A language server: its command, and the language identifiers of its files by suffix (without the dot).

    `role` is `types` for one that knows what names mean, and `lint` for one that only has diagnostics and quick fixes:
    a file has at most one of each. `markers` are files at the top of its projects; with `needs_marker` it is not used
    without one. `settings` answer `workspace/configuration`; their first keys are its sections; `options` are its
    initialization options. `ready` is a part of the log message by which it says that it has found the project's files;
    `max_open` is how many texts it may have open.

    For a server that cannot be asked for diagnostics, `pause_files` is how many seconds it waits before it looks at
    files that came or went, `pause_texts` before it looks at what depends on a changed text. A `quiet` one publishes
    diagnostics only if they differ from the last ones, and names the version of a text that is open.
    """

    name: str
    command: tuple[str, ...]
    languages: Mapping[str, str]
    role: Literal["types", "lint"] = "types"
    diagnostics: DiagnosticsWay = "push"
    markers: tuple[str, ...] = ()
    needs_marker: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    pause_files: float = 0.2
    pause_texts: float = 0.0
    quiet: bool = False
    ready: str = ""
    max_open: int = 200

    def language_of(self, path: str) -> str | None:
        """Return the LSP language identifier of a file, such as `python`, by the suffix of its path in any case; None
        if the server does not handle such files.
        """
        return self.languages.get(PurePath(path).suffix.removeprefix(".").lower())


def _by_suffix(language: str, suffixes: Iterable[str]) -> Mapping[str, str]:
    return MappingProxyType(dict.fromkeys(suffixes, language))


_PYTHON = _by_suffix("python", ("py", "pyi"))
_PYRIGHT = {"typeCheckingMode": "standard", "diagnosticMode": "openFilesOnly", "autoImportCompletions": False}
_PYTHON_MARKERS = ("pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt")

KNOWN: tuple[KnownServer, ...] = (
    KnownServer(
        "basedpyright",
        ("basedpyright-langserver", "--stdio"),
        _PYTHON,
        diagnostics="pull",
        markers=_PYTHON_MARKERS,
        settings={"basedpyright": {"analysis": _PYRIGHT}, "python": {"analysis": _PYRIGHT}},
        pause_files=0.45,
        pause_texts=0.35,  # its timer has 0.25 s; until then files that depend on the changed one are as before
        ready="source file",
    ),
    KnownServer(
        "pyright",
        ("pyright-langserver", "--stdio"),
        _PYTHON,
        diagnostics="pull",
        markers=_PYTHON_MARKERS,
        settings={"pyright": {}, "python": {"analysis": _PYRIGHT}},
        pause_files=0.45,
        pause_texts=0.35,  # its timer has 0.25 s; until then files that depend on the changed one are as before
        ready="source file",
    ),
    KnownServer("ruff", ("ruff", "server"), _PYTHON, role="lint", diagnostics="pull", markers=_PYTHON_MARKERS),
    KnownServer(
        "typescript-language-server",
        ("typescript-language-server", "--stdio"),
        MappingProxyType(_SCRIPT),
        diagnostics="tsserver",
        markers=("tsconfig.json", "jsconfig.json", "package.json"),
        options={
            "disableAutomaticTypingAcquisition": True,
            "hostInfo": "codeagent-lsp",
            # No second process for what we do not ask; and what came or went it hears from us, in order: its own
            # watchers may be seconds late on a busy machine, and until then it answers from what it knew.
            "tsserver": {"useSyntaxServer": "never", "useClientFileWatcher": True},
        },
        pause_files=0.0,
    ),
    KnownServer(
        "gopls",
        ("gopls",),
        _by_suffix("go", ("go",)),
        diagnostics="pull",  # where it is new enough
        markers=("go.work", "go.mod"),
        settings={"gopls": {"pullDiagnostics": True}},
        options={"pullDiagnostics": True},
        quiet=True,
    ),
    KnownServer(
        "rust-analyzer",
        ("rust-analyzer",),
        _by_suffix("rust", ("rs",)),
        markers=("Cargo.toml",),
        needs_marker=True,
        settings={"rust-analyzer": {"cargo": {"extraEnv": {"CARGO_NET_OFFLINE": "true"}}}},
        options={"cargo": {"extraEnv": {"CARGO_NET_OFFLINE": "true"}}},
    ),
    KnownServer(
        "clangd",
        # A limit of 0 is none: a rename has to know every use.
        ("clangd", "-j=2", "--limit-references=0", "--limit-results=0", "--rename-file-limit=0", "--log=error"),
        MappingProxyType({**_by_suffix("c", _C), **_by_suffix("cpp", _CPP)}),
        markers=("compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "Makefile"),
        max_open=24,  # it keeps the whole tree of each
    ),
    KnownServer(
        "jdtls",
        ("jdtls",),
        _by_suffix("java", ("java",)),
        markers=("pom.xml", "build.gradle", "build.gradle.kts", ".project"),
        needs_marker=True,
    ),
)


def with_own(own: Mapping[str, Any]) -> tuple[KnownServer, ...]:
    """Return the servers of the setting `languageServers`, which come first, and the known ones. Each is an object with
    `command` (a list of words) and `languages` (identifiers by suffix); `settings`, `initializationOptions`, `markers`
    and `diagnostics` (`pull` or `push`) are optional.

    `false` in place of the object turns a known one off. SettingError for anything else.
    """
    named = tuple(_server(name, value) for name, value in own.items() if value is not False)
    return (*named, *(server for server in KNOWN if server.name not in own))


def _server(name: str, value: Any) -> KnownServer:
    command = value.get("command") if isinstance(value, Mapping) else None
    languages = value.get("languages") if isinstance(value, Mapping) else None
    if not (_words(command) and command and isinstance(languages, Mapping) and languages and set(value) <= _KEYS):
        raise SettingError("servers.bad_setting", name=name)
    way = value.get("diagnostics", "push")
    markers = value.get("markers", [])
    if way not in ("pull", "push") or not _words(markers):
        raise SettingError("servers.bad_setting", name=name)
    return KnownServer(
        name,
        tuple(command),
        MappingProxyType({str(suffix).removeprefix("."): str(language) for suffix, language in languages.items()}),
        diagnostics=way,
        markers=tuple(markers),
        settings=_object(name, value.get("settings", {})),
        options=_object(name, value.get("initializationOptions", {})),
    )


def _words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _object(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingError("servers.bad_setting", name=name)
    return MappingProxyType(dict(value))
