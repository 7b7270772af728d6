"""Resolution of imports to files of the workspace, by the rules of each language and by file names alone.

Installed packages, generated files and mappings in configuration files are not resolved. Paths are relative, with `/`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from codeagent_lsp.index.symbols import Import

_SCRIPTS = ("ts", "tsx", "d.ts", "js", "jsx", "mjs", "cjs", "mts", "cts")
_MOST = 50


@dataclass(frozen=True)
class ImportTargets:
    """The files of a workspace, indexed by name and folder; paths are relative, with `/`. `modules` maps the folder of
    a `go.mod` to its module's name. Made for one tool call.
    """

    paths: frozenset[str]
    modules: Mapping[str, str] = field(default_factory=dict)
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _folders: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(self.paths):
            folder, _, name = path.rpartition("/")
            self._by_name.setdefault(name, []).append(path)
            self._folders.setdefault(folder, []).append(path)

    def first(self, candidates: Iterable[str]) -> tuple[str, ...]:
        """Return the first of the candidates that is a file, as a tuple of at most one."""
        found = next((path for each in candidates if (path := posixpath.normpath(each)) in self.paths), None)
        return (found,) if found is not None else ()

    def ending(self, path: str) -> tuple[str, ...]:
        """Return the index paths of the files whose path ends with these components, at most 50."""
        found = self._by_name.get(path.rpartition("/")[2], ())
        return tuple(each for each in found if each == path or each.endswith(f"/{path}"))[:_MOST]

    def inside(self, folder: str, ending: str) -> tuple[str, ...]:
        """Return the paths of the files directly in a folder whose names have this ending, at most 50; () for an
        unknown folder.
        """
        return tuple(path for path in self._folders.get(folder, ()) if path.endswith(ending))[:_MOST]

    def is_folder(self, folder: str) -> bool:
        """Return whether a folder, a relative path, directly contains files that are known here; False for an unknown
        one.
        """
        return folder in self._folders


def resolved(language: str, path: str, imported: Import, files: ImportTargets) -> tuple[str, ...]:
    """Return the paths of the files that an import in the file at `path` refers to, relative as in `files`; () if that
    cannot be determined, and for a language without rules. Pure.
    """
    rule = _RULES.get(language)
    found = rule(path, imported, files) if rule is not None and imported.module else ()
    return tuple(dict.fromkeys(each for each in found if each != path))


def _python(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    dots = len(imported.module) - len(imported.module.lstrip("."))
    inner = imported.module.lstrip(".").replace(".", "/")
    folder = posixpath.dirname(path)
    if dots:
        # One dot is the folder itself.
        for _ in range(dots - 1):
            folder = posixpath.dirname(folder)
        roots = [folder]
    else:
        roots = list(_parents(folder))
        roots += [posixpath.join(root, "src") for root in roots]
    for root in roots:
        base = posixpath.join(root, inner) if inner else root
        inside = [each for name in imported.names for each in files.first(_module(posixpath.join(base, name)))]
        own = files.first(_module(base))
        if inside or own:
            # `from a import b`: b is a module of the package, or a name in `a` itself.
            return inside if len(inside) == len(imported.names) and inside else [*own, *inside]
    return ()


def _module(base: str) -> Iterator[str]:
    for ending in (".py", ".pyi", "/__init__.py", "/__init__.pyi"):
        yield base + ending


def _script(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    if not imported.module.startswith("."):
        return ()
    base = posixpath.normpath(posixpath.join(posixpath.dirname(path), imported.module))
    # TypeScript writes `./a.js` for the file `a.ts`.
    stem = re.sub(r"\.[mc]?jsx?$", "", base)
    return files.first(
        [
            base,
            *(f"{base}.{ending}" for ending in _SCRIPTS),
            *(f"{stem}.{ending}" for ending in _SCRIPTS if stem != base),
            *(f"{base}/index.{ending}" for ending in _SCRIPTS),
        ]
    )


def _go(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    for root in _parents(posixpath.dirname(path)):
        name = files.modules.get(root)
        if name is not None and (imported.module == name or imported.module.startswith(f"{name}/")):
            folder = posixpath.normpath(posixpath.join(root, imported.module[len(name) + 1 :]))
            found = files.inside("" if folder == "." else folder, ".go")
            return tuple(each for each in found if not each.endswith("_test.go"))
    return ()


def _rust(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    parts = [part for part in re.split(r"::|[{},\s]+", imported.module) if part and part != "*"]
    folder, name = posixpath.split(path)
    # `a.rs` has its modules in the folder `a`, these three beside them.
    here = folder if name in ("mod.rs", "lib.rs", "main.rs") else path.removesuffix(".rs")
    bases = [root for root in _parents(folder) if files.first([f"{root}/lib.rs", f"{root}/main.rs"])]
    base = bases[0] if bases else folder
    if parts[:1] == ["crate"]:
        parts = parts[1:]
    elif parts[:1] in (["self"], ["super"]):
        base = here
        while parts[:1] in (["self"], ["super"]):
            base = posixpath.dirname(base) if parts[0] == "super" else base
            parts = parts[1:]
    elif not files.first([f"{here}/{parts[0]}.rs", f"{here}/{parts[0]}/mod.rs"] if parts else []):
        return ()
    else:
        base = here
    for length in range(len(parts), 0, -1):
        inner = "/".join([base, *parts[:length]])
        if found := files.first([f"{inner}.rs", f"{inner}/mod.rs"]):
            return found
    return ()


def _java(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    inner = imported.module.replace(".", "/")
    if "*" in imported.names:
        folders = {posixpath.dirname(each) for each in files.paths if each.endswith(".java")}
        here = sorted(each for each in folders if each == inner or each.endswith(f"/{inner}"))
        if here:
            return tuple(each for folder in here for each in files.inside(folder, ".java"))
    # The last part may be a member of the class, or a class within it.
    return files.ending(f"{inner}.java") or files.ending(f"{posixpath.dirname(inner)}.java")


def _include(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    near = files.first([posixpath.join(posixpath.dirname(path), imported.module)])
    return near or files.ending(posixpath.normpath(imported.module))


def _ruby(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    name = imported.module if imported.module.endswith(".rb") else f"{imported.module}.rb"
    near = files.first([posixpath.join(posixpath.dirname(path), name)])
    roots = list(_parents(posixpath.dirname(path)))
    return near or files.first(posixpath.join(root, folder, name) for root in roots for folder in ("lib", "app", ""))


def _php(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    if imported.module.endswith(".php"):
        module = imported.module.lstrip("/")
        return files.first([posixpath.join(posixpath.dirname(path), module), module])
    parts = [part for part in imported.module.split("\\") if part]
    names = [[*parts, name] for name in imported.names] if imported.names else [parts]
    return [each for name in names for each in _psr4(name, files)]


def _psr4(parts: list[str], files: ImportTargets) -> tuple[str, ...]:
    """Return the files for the longest suffix of a qualified PHP name that matches a path; the class name alone is too
    short.
    """
    for start in range(max(1, len(parts) - 1)):
        if found := files.ending("/".join(parts[start:]) + ".php"):
            return found
    return ()


def _bash(path: str, imported: Import, files: ImportTargets) -> Iterable[str]:
    # `source "$DIR/lib.sh"`: what the variable holds is not known, the rest is.
    module = re.sub(r"^(?:\$\{?\w+\}?|\$\(.*\)|\.)/+", "", imported.module)
    folders = _parents(posixpath.dirname(path))
    return files.first(posixpath.join(folder, module) for folder in folders)


def _parents(folder: str) -> Iterator[str]:
    """Yield a folder and all its ancestors, the nearest first; '' is the workspace."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


_RULES: Mapping[str, Callable[[str, Import, ImportTargets], Iterable[str]]] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "tsx": _script,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _include,
    "cpp": _include,
    "ruby": _ruby,
    "php": _php,
    "bash": _bash,
}
