"""The settings in force: layers from the environment and the client, merged again whenever one changes.

What is wrong with a value is told to the user once. They are merged when first asked for, which is after
`initialize` has been answered. Not here: what the settings are (`config.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.errors import EditorError, SettingError
from codeagent_lsp.protocol import SECTION

if TYPE_CHECKING:
    from codeagent_lsp.config import Settings
    from codeagent_lsp.server.server import CodeAgentServer

CONFIGURATION_SECONDS = 5.0


class SettingsLink:
    """Keeps the layers. `on_problem` is told about each bad value once, `on_change` when the settings may be others."""

    def __init__(
        self,
        on_problem: Callable[[SettingError], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self._on_problem = on_problem
        self._environ = environ
        self._initial: Mapping[str, Any] = {}
        self._pulled: Mapping[str, Any] = {}
        self._pushed: Mapping[str, Any] = {}
        self._chosen: dict[str, Any] = {}
        self._told: set[str] = set()
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings or self._merge()

    def initialize(self, options: Any) -> None:
        """Take the client's `initializationOptions`."""
        self._initial = _section(options)
        self._settings = None

    def push(self, settings: Any) -> None:
        """Take what `workspace/didChangeConfiguration` brought, when it brought anything."""
        if isinstance(settings, Mapping) and isinstance(settings.get(SECTION), Mapping):
            self._pushed = settings[SECTION]
            self._merge()

    async def pull(self, server: CodeAgentServer) -> None:
        """Ask the client for the section; a client that does not answer changes nothing."""
        item = types.ConfigurationItem(section=SECTION)
        try:
            answer = await server.request(
                types.WORKSPACE_CONFIGURATION, types.ConfigurationParams([item]), CONFIGURATION_SECONDS
            )
        except EditorError:
            return
        value = answer[0] if isinstance(answer, list | tuple) and answer else None
        if isinstance(value, Mapping):
            self._pulled = value
            self._merge()

    def choose(self, key: str, value: Any) -> None:
        """A choice the user made by a command; it holds until the server ends."""
        self._chosen[key] = value
        self._merge()

    def _merge(self) -> Settings:
        from codeagent_lsp.config import environment_layer, load  # late: the start-up path does without it

        own = environment_layer(self._environ)
        self._settings, problems = load(own, self._initial, self._pulled, self._pushed, self._chosen)
        for problem in problems:
            if str(problem) not in self._told:
                self._told.add(str(problem))
                self._on_problem(problem)
        self.on_change()
        return self._settings


def _section(options: Any) -> Mapping[str, Any]:
    """The section in `initializationOptions`: the object itself, or its member of that name."""
    if not isinstance(options, Mapping):
        return {}
    inner = options.get(SECTION)
    return inner if isinstance(inner, Mapping) else options
