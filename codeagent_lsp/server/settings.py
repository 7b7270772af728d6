"""The current settings: layers from the environment and the client, merged again whenever one changes.

Each invalid value is reported to the user once. The layers are merged when first needed, which is after `initialize`
has been answered. Not here: which settings exist (`config.py`).
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
    from codeagent_lsp.settings_files import PolicyFile

CONFIGURATION_SECONDS = 5.0


class SettingsLink:
    """The layers of one server's settings. `on_problem` gets each invalid value once, the functions of `on_change` are
    called after each merge.
    """

    def __init__(
        self,
        on_problem: Callable[[SettingError], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._on_problem = on_problem
        self._environ = environ
        self._initial: Mapping[str, Any] = {}
        self._pulled: Mapping[str, Any] = {}
        self._pushed: Mapping[str, Any] = {}
        self._chosen: dict[str, Any] = {}
        self._policy: PolicyFile | None = None
        self._told: set[str] = set()
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        """Return the settings of all layers, merged with the first use after a change."""
        return self._settings or self._merge()

    def initialize(self, options: Any) -> None:
        """Set the layer of the client's `initializationOptions`."""
        self._initial = _section(options)
        self._settings = None

    def push(self, settings: Any) -> None:
        """Set the layer of `workspace/didChangeConfiguration`, if it has our section."""
        if isinstance(settings, Mapping) and isinstance(settings.get(SECTION), Mapping):
            self._pushed = settings[SECTION]
            self._merge()

    async def pull(self, server: CodeAgentServer) -> None:
        """Request our section by `workspace/configuration`; a client that does not answer changes nothing."""
        item = types.ConfigurationItem(section=SECTION)
        try:
            answer = await server.request(
                types.WORKSPACE_CONFIGURATION, types.ConfigurationParams([item]), CONFIGURATION_SECONDS
            )
        except EditorError:
            return
        value = answer[0] if isinstance(answer, list | tuple) and answer else None
        if isinstance(value, Mapping):
            if _holds(value, self._initial):
                # This client answers with all that it said at first: what it later says no more is no longer set.
                self._initial = {}
            self._pulled = value
            self._merge()

    def choose(self, key: str, value: Any) -> None:
        """Set a value that the user chose by a command; it holds until the server ends. SettingError if the policy has
        another.
        """
        if (fixed := self.fixed(key, value)) is not None:
            raise fixed
        self._chosen[key] = value
        self._merge()

    @property
    def refusal(self) -> SettingError | None:
        """Return why nothing may run; None if the policy, if there is one, can be followed."""
        from codeagent_lsp import settings_layers  # late: the start-up path does without it

        return settings_layers.refusal(self._followed())

    def fixed(self, key: str, value: Any = None) -> SettingError | None:
        """Return the error that a setting is fixed by the policy, to another value; None if it is not."""
        from codeagent_lsp import settings_layers  # late: the start-up path does without it

        policy = self._followed()
        fixed = settings_layers.fixed_by(policy)[0]
        if key not in fixed or fixed[key] == value:
            return None
        return SettingError("policy.fixed", key=f"{SECTION}.{key}", path=policy.path)

    def _followed(self) -> PolicyFile:
        if self._settings is None or self._policy is None:
            self._merge()
        assert self._policy is not None
        return self._policy

    def _merge(self) -> Settings:
        from codeagent_lsp import settings_layers  # late: the start-up path does without it
        from codeagent_lsp.settings_files import read_policy, read_user_settings  # late: likewise

        self._policy = read_policy(self._environ)
        own = settings_layers.environment_layer(self._environ)
        pulled, pushed = map(settings_layers.without_restricted, (self._pulled, self._pushed))
        # Later ones win: what the user chose by a command is above what the editor says.
        layers = (own, self._initial, pulled, pushed, self._chosen)
        self._settings, problems = settings_layers.load(*layers, policy=self._policy, user=read_user_settings())
        for problem in problems:
            if str(problem) not in self._told:
                self._told.add(str(problem))
                self._on_problem(problem)
        for changed in self.on_change:
            changed()
        return self._settings


def _holds(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Return whether all values of `part` stand in `whole`, too."""
    return all(
        name in whole
        and (
            _holds(whole[name], value)
            if isinstance(value, Mapping) and isinstance(whole[name], Mapping)
            else whole[name] == value
        )
        for name, value in part.items()
    )


def _section(options: Any) -> Mapping[str, Any]:
    """Return our section of `initializationOptions`: the object itself, or its member of that name."""
    if not isinstance(options, Mapping):
        return {}
    inner = options.get(SECTION)
    return inner if isinstance(inner, Mapping) else options
