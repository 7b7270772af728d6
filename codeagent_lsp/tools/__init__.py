"""The tools that the agent's model can call, one folder for each feature, which its `__init__.py` declares as a
`Feature`: a folder of tools that is listed without importing it.

Not here: the list of the features (`catalogue.py`), what a tool is (`tool.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # heavy, and an idle server does without it
    from codeagent_lsp.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Feature:
    """A folder of `codeagent_lsp/tools` by its name, and its tools in the order in which models see them.

    Each tool is written `module:Class`, with a module of that folder.
    """

    name: str
    tools: tuple[str, ...]

    def load(self) -> tuple[type[Tool[Any]], ...]:
        """Import the tools and return their classes, in order. ImportError or AttributeError if a reference is
        wrong.
        """
        return tuple(self._class(*reference.split(":")) for reference in self.tools)

    def _class(self, module: str, name: str) -> type[Tool[Any]]:
        found: type[Tool[Any]] = getattr(import_module(f"{__name__}.{self.name}.{module}"), name)
        return found
