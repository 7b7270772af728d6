"""The light part of the server, loaded at start-up: the current settings, the language, the folders, and the connected
client, to which it sends messages and which it has report changed files, once for all who follow them.

Not here: which settings exist (`config.py`), how the client's capabilities are read (`clients.py`), what is shown to
it, who follows the files (`index_host.py`, `foreign_changes.py`), the LSP handlers (`features.py`), and everything that
may be loaded later (`backend.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.errors import EditorError, SettingError
from codeagent_lsp.protocol import SECTION, SYNC_METHOD, TERMINAL_CLIENT
from codeagent_lsp.server.clients import ClientPolicy, policy_of
from codeagent_lsp.server.server import CodeAgentServer, folders_of
from codeagent_lsp.texts import choose_language
from codeagent_lsp.workspace.text.visible import in_box

if TYPE_CHECKING:
    from codeagent_lsp.config import Settings
    from codeagent_lsp.settings_files import PolicyFile

SHOW_SECONDS = 10.0
SYNC_SECONDS = 10.0
REGISTER_SECONDS = 10.0
CONFIGURATION_SECONDS = 5.0


class Front:
    """The connection to one client, with the settings, as the other parts use it; lives as long as the server."""

    def __init__(self, server: CodeAgentServer) -> None:
        self.server = server
        self.settings_link = SettingsLink(self._bad_setting)
        self.client = Client(server, self.language)
        self._locale: str | None = None

    def settings(self) -> Settings:
        """Return the settings as they are now; they change while the server runs, so they are asked for at each use."""
        return self.settings_link.settings

    def language(self) -> str:
        """Return the user's language, `en` or `zh-cn`: the setting, or the client's locale."""
        return choose_language(self.settings().language, self._locale)

    def folders(self) -> list[str]:
        """Return the absolute paths of the workspace folders, as the client names them; [] if it has none."""
        return folders_of(self.server.workspace)

    def completes(self) -> bool:
        """Return whether completions by a model are wanted, and the client shows such, inline or in a list."""
        shown = self.client.policy.inline or self.completes_plainly()
        return shown and self.settings().inline.enabled is not False

    def completes_plainly(self) -> bool:
        """Return whether a completion is also an entry of the client's list: by default if the client has no ghost
        text.
        """
        policy, wanted = self.client.policy, self.settings().inline.plain
        return policy.completion and (not policy.inline if wanted == "auto" else wanted)

    def interactive(self) -> bool:
        """Return whether a person works in an editor, so that tasks follow each other in a session; False for
        `codeagent-lsp run` and batches.
        """
        return self.client.policy.name != TERMINAL_CLIENT

    def begin(self, params: types.InitializeParams) -> None:
        """Store what the parameters of `initialize` say about the client, its locale and its settings. Returns
        at once.
        """
        self.client.policy = policy_of(params)
        self._locale = params.locale
        self.server.language = choose_language("auto", params.locale)
        self.settings_link.initialize(params.initialization_options)

    def describe_client(self) -> dict[str, Any]:
        """Return a row about this client for the doctor, `{name, verdict, detail, advice}`: what it supports, by the
        fields of `ClientPolicy`, and what it lacks.
        """
        policy = self.client.policy
        can = [name for name in policy.__slots__ if name != "name" and getattr(policy, name)]
        lacks = [name for name in policy.__slots__ if name != "name" and not getattr(policy, name)]
        detail = f"{policy.name or 'unnamed'}: {', '.join(can)}"
        return {"name": "client", "verdict": "ok", "detail": detail, "advice": f"not offered: {', '.join(lacks)}"}

    def _bad_setting(self, problem: SettingError) -> None:
        words = problem.localized(self.language())
        # Not at once: during `initialize`, LSP allows no message before the answer.
        asyncio.get_running_loop().call_soon(self._warn, words)

    def _warn(self, words: str) -> None:
        self.client.tell(words, types.MessageType.Warning)


class Client:
    """One client. `policy` is what it supports, nothing before `initialize`; `language` returns the current
    language.
    """

    def __init__(
        self, server: CodeAgentServer, language: Callable[[], str] = lambda: "en", policy: ClientPolicy | None = None
    ) -> None:
        self.server = server
        self.policy = policy or ClientPolicy()
        self._language = language

    @property
    def language(self) -> str:
        """The user's language, `en` or `zh-cn`."""
        return self._language()

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a sentence to the user by `window/showMessage`; returns at once."""
        self.server.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=in_box(message)))

    async def show(self, uri: str, *, external: bool | None = None, take_focus: bool | None = None) -> bool:
        """Open a document or an address by `window/showDocument` and return whether that was done; `external` is for
        the browser, `take_focus` for the keyboard's focus; None leaves that to the client. False if the client cannot,
        did not, or did not answer within 10 seconds.
        """
        if not self.policy.shows_documents:
            return False
        params = types.ShowDocumentParams(uri=uri, external=external, take_focus=take_focus)
        try:
            result = await self.server.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_SECONDS)
        except EditorError:
            return False
        return bool(result is not None and result.success)

    async def sync(self, uris: Iterable[str]) -> None:
        """Ask a client that does not send unsaved texts by itself (`policy.syncs`) for those of these files and of all
        that it has open, by `codeagent/sync`, and wait at most 10 s; for other clients, and without an answer, nothing
        changes.
        """
        if not self.policy.syncs:
            return
        with suppress(EditorError):
            await self.server.request(SYNC_METHOD, {"uris": list(uris)}, SYNC_SECONDS)


class FileWatching:
    """The registration with one client for reports of changed files, made once for all parts that follow them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: asyncio.Task[bool] | None = None

    async def begin(self) -> bool:
        """Ask the client to report changed files (`workspace/didChangeWatchedFiles`), unless it was asked before, and
        wait at most 10 s for the answer; return whether it does.
        """
        if not self._client.policy.watches_files:
            return False
        if self._asked is None:
            self._asked = asyncio.ensure_future(self._ask())
        return await asyncio.shield(self._asked)

    def close(self) -> None:
        """Cancel waiting for the client's answer."""
        if self._asked is not None:
            self._asked.cancel()

    async def _ask(self) -> bool:
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob_pattern="**/*")])
        registration = types.Registration("codeagent-index", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        try:
            params = types.RegistrationParams([registration])
            await self._client.server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
        except EditorError:
            return False
        return True


class SettingsLink:
    """The layers of one server's settings, merged when needed. `on_problem` gets each invalid value once, the functions
    of `on_change` are called after each merge.
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
        """The settings of all layers, merged at the first use after a change; invalid values have their defaults."""
        return self._settings or self._merge()

    def initialize(self, options: Any) -> None:
        """Set the layer of the client's `initializationOptions` (JSON data; other values count as none), used until the
        client sends its configuration.
        """
        self._initial = _section(options)
        self._settings = None

    def push(self, settings: Any) -> None:
        """Set the layer of `workspace/didChangeConfiguration`, if it has our section, and merge."""
        if isinstance(settings, Mapping) and isinstance(settings.get(SECTION), Mapping):
            self._pushed = settings[SECTION]
            self._merge()

    async def pull(self, server: CodeAgentServer) -> None:
        """Request our section by `workspace/configuration`, wait at most 5 s for it and merge; a client that does not
        answer changes nothing.
        """
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
        """Set a value that the user chose by a command; it holds until the server ends. `key` is without our section,
        such as `model.name`. SettingError if the policy has another.
        """
        if (fixed := self.fixed(key, value)) is not None:
            raise fixed
        self._chosen[key] = value
        self._merge()

    @property
    def refusal(self) -> SettingError | None:
        """The error that says why nothing may run, if there is a policy that cannot be followed; else None."""
        from codeagent_lsp import settings_layers  # late: the start-up path does without it

        return settings_layers.refusal(self._follow_policy())

    def fixed(self, key: str, value: Any = None) -> SettingError | None:
        """Return, without raising it, the error that the policy fixes a setting (`model.name`, without our section) to
        another value than `value`; None if it does not.
        """
        from codeagent_lsp import settings_layers  # late: the start-up path does without it

        policy = self._follow_policy()
        fixed = settings_layers.fixed_by(policy)[0]
        if key not in fixed or fixed[key] == value:
            return None
        return SettingError("policy.fixed", key=f"{SECTION}.{key}", path=policy.path)

    def _follow_policy(self) -> PolicyFile:
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
