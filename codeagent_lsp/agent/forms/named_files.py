"""Tells which file a path in a model's reply means: a known one, a new one, or none. Pure functions.

Not here: finding the path in the reply (`fences.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.index.kinds import is_prose, is_source

_ENDINGS = """
    json jsonc json5 jsonl yaml yml toml ini cfg conf env properties xml html htm css scss sass less svg csv tsv
    graphql gql proto astro fish zsh ksh bat cmd ps1 mk mak cmake make gradle groovy tf tfvars hcl nix lock example
    template tmpl j2 jinja jinja2 erb ejs hbs mustache vue svelte po pot ipynb plist service mod sol vim el lisp
    awk sed diff patch asm vhd sv bib pm cxx kts mli fs fsx vb csproj sln xaml razor cshtml
"""
_DATA = frozenset(_ENDINGS.split())
_NAMES = """
    node.js next.js vue.js nuxt.js react.js express.js three.js d3.js chart.js discord.js alpine.js angular.js
    ember.js backbone.js moment.js socket.io asp.net require.js nest.js solid.js deno.js bun.js p5.js
    res.json resp.json response.json req.json request.json r.json
"""
_PRODUCTS = frozenset(_NAMES.split())
"""Names of products and calls that look like files, unless such a file is shown."""


def ends_alike(one: str, other: str) -> bool:
    """Return whether two paths are the same, or one ends with the other."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def meant(path: str, known: Collection[str]) -> Sequence[str]:
    """Return the known paths that `path` may mean: itself, or those that it shortens or, from a folder on, prolongs.

    A path with a folder is not the file of that name in the top folder.
    """
    if path in known:
        return (path,)
    absolute = path.startswith("/") or ":" in path
    return tuple(each for each in known if ends_alike(path, each) and (absolute or "/" in each or "/" not in path))


def is_file_name(path: str) -> bool:
    """Return whether a path can only be meant as a file: its ending is one of a language or of texts."""
    name = PurePosixPath(path).name
    ending = PurePosixPath(path).suffix[1:].lower()
    if not ending or name.lower() in _PRODUCTS or name.startswith(("self.", "this.")):
        return False
    return ending in _DATA or is_source(name) or is_prose(name) or grammar_of(name) is not None


def may_be_new(path: str) -> bool:
    """Return whether a file of this path may be made: it is inside the workspace, and of a known kind."""
    parts = PurePosixPath(path).parts
    return is_file_name(path) and not path.startswith("/") and ".." not in parts and ":" not in path
