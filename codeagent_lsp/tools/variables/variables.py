"""Environment variables of the user for commands: kept in memory or in the system's keyring, used by name alone.

Values never enter a prompt, a record, a log or a tool result: the output of commands is masked. The keyring is reached
through the optional library `keyring`. Not here: asking the user (`variable_tools.py`).
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.records.own import LEAST as LEAST_WRITTEN
from codeagent_lsp.records.own import OwnSecrets

NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
OURS = "CODEAGENT_"
LEAST = 4  # what is shorter is no secret, and would be found in every second word
LONGEST = 65_536
VAULT_SECONDS = 30.0
_LINE = 16

VariableSource = Literal["session", "keyring", "environment"]
T = TypeVar("T")

RECOMMENDED = 1  # the library gives less to backends that keep values in plain text, or not at all


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that has a value, which its `repr` does not show."""

    name: str
    source: VariableSource
    value: str

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {self.source!r}, {len(self.value)} characters)"


class Vault(Protocol):
    """Port: stores values beyond a session. Methods block; ToolFailed if the vault fails."""

    def get(self, name: str) -> str | None:
        """Return a stored value; None if there is none. ToolFailed if the vault fails."""

    def set(self, name: str, value: str) -> None:
        """Store a value, in place of an earlier one. ToolFailed if the vault fails."""


class Variables:
    """The variables of one session. `open_vault` returns the vault or None; it is called once, in a thread.

    A value is searched in the session, the vault and the environment of this process, in that order.
    """

    def __init__(
        self, open_vault: Callable[[], Vault | None] = lambda: None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._open_vault = open_vault
        self._environ = environ if environ is not None else {}
        self._vault: Vault | None = None
        self._opened = False
        self._values: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self._allowed: set[tuple[str, bool]] = set()
        self._masks: list[tuple[str, OwnSecrets]] = []

    async def find(self, name: str) -> Variable | None:
        """Return the variable; None if it has no value anywhere, or is one of this program's own. Waits for the
        keyring, 30 s at most, then ToolFailed.
        """
        if name.startswith(OURS):  # our own settings and keys are not for commands
            return None
        if name in self._values:
            return Variable(name, "session", self._values[name])
        vault = await self._opened_vault()
        kept = await in_thread(lambda: vault.get(name)) if vault is not None else None
        if kept:
            self._seen[name] = kept
            self._remask()
            return Variable(name, "keyring", kept)
        return Variable(name, "environment", self._environ[name]) if self._environ.get(name) else None

    async def has_vault(self) -> bool:
        """Return whether values can be stored beyond the session. Opens the keyring at the first call, in a thread;
        ToolFailed after 30 s.
        """
        return await self._opened_vault() is not None

    def keep(self, name: str, value: str) -> None:
        """Keep a value in memory until the session ends; from then on it is masked. An earlier value of the session is
        replaced.
        """
        self._values[name] = value
        self._remask()

    async def store(self, name: str, value: str) -> None:
        """Store a value in the vault and keep it for this session. ToolFailed if that fails, takes longer than 30 s, or
        there is no vault.
        """
        vault = await self._opened_vault()
        if vault is None:
            raise ToolFailed("There is no keyring here.")
        await in_thread(lambda: vault.set(name, value))
        self.keep(name, value)

    def allow(self, variable: Variable, *, network: bool) -> None:
        """Allow commands of this session to use a variable, with or without network, and have its value masked from now
        on.
        """
        self._allowed.add((variable.name, network))
        self._seen[variable.name] = variable.value
        self._remask()

    def allowed(self, name: str, *, network: bool) -> bool:
        """Return whether commands may use the variable, with `network` or without; an approval with network includes
        use without it.
        """
        return (name, network) in self._allowed or (name, True) in self._allowed

    def masked(self, text: str) -> str:
        """Return `text` with every value that commands may know, of 4 characters or more, in any encoding known to
        `OwnSecrets`, replaced by its name (`[$NAME]`).
        """
        for name, secrets in self._masks:
            text = secrets.mask(text, lambda value, name=name: f"[${name}]")  # type: ignore[misc]
            value = self._known_values().get(name, "")
            if LEAST <= len(value) < LEAST_WRITTEN:
                text = text.replace(value, f"[${name}]")
        return text

    @property
    def longest(self) -> int:
        """The length in characters of the longest form of a value, which a stream must hold back; 0 if there is nothing
        to mask.
        """
        return max((max(secrets.longest, LEAST_WRITTEN) for _, secrets in self._masks), default=0)

    def _known_values(self) -> dict[str, str]:
        return {**self._seen, **self._values}

    def _remask(self) -> None:
        known = sorted(self._known_values().items(), key=lambda pair: -len(pair[1]))  # one may be a part of another
        self._masks = [(name, OwnSecrets(_parts(value))) for name, value in known]

    async def _opened_vault(self) -> Vault | None:
        if not self._opened:
            self._vault = await in_thread(self._open_vault)
            self._opened = True
        return self._vault


class MaskedStream:
    """Masks a text that arrives in pieces: the results of `feed` and `close`, joined, are the masked text."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return the part that can be output; a value split between pieces is held back until
        complete.
        """
        text = self._variables.masked(self._held + piece)
        # One character less than the longest form: a whole one would have been masked.
        until = max(0, len(text) - max(0, self._variables.longest - 1))
        self._held = text[until:]
        return text[:until]

    def close(self) -> str:
        """Return the rest that was held back, which can no longer become a value; '' for none."""
        rest, self._held = self._held, ""
        return rest


def is_name(name: str) -> bool:
    """Return whether this can be the name of a user's variable: at most 100 ASCII letters, digits and `_`, no digit
    first; those of this program cannot.
    """
    return re.match(NAME, name) is not None and not name.startswith(OURS)


async def in_thread(work: Callable[[], T], seconds: float = VAULT_SECONDS) -> T:
    """Run a function that may block for ever, such as a locked keyring, in a thread and return its result; its
    exceptions are raised. ToolFailed after `seconds`.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: Exception | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except (ToolFailed, OSError, RuntimeError) as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:
            return  # the loop is closed: no caller waits

    # A daemon, not `to_thread`, whose pool waits at the exit for a thread that hangs.
    threading.Thread(target=run, name="keyring", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await done
    except TimeoutError:
        raise ToolFailed(f"The system's keyring did not answer within {seconds:g} s.") from None


def _parts(value: str) -> Iterable[str]:
    """Return a value and its long lines, which a program may print one by one."""
    return (value, *(line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE))


class KeyringVault:
    """The values of one workspace in the system's keyring, separate from those of other workspaces; `workspace` is any
    text that names it. Methods block, perhaps until the user unlocks the keyring. Made by `open_keyring`, which knows
    whether there is one.
    """

    def __init__(self, workspace: str) -> None:
        self._service = f"codeagent-lsp:{workspace}"

    def get(self, name: str) -> str | None:
        """Return the value; None if there is none. ToolFailed if the keyring fails. Blocks."""
        import keyring  # late: it may be missing, and loads much
        from keyring.errors import KeyringError  # late: likewise

        try:
            return keyring.get_password(self._service, name)
        except KeyringError as error:
            raise ToolFailed(_keyring_words(error)) from None

    def set(self, name: str, value: str) -> None:
        """Store a value. ToolFailed if the keyring fails."""
        import keyring  # late: it may be missing, and loads much
        from keyring.errors import KeyringError  # late: likewise

        try:
            keyring.set_password(self._service, name, value)
        except KeyringError as error:
            raise ToolFailed(_keyring_words(error)) from None


def open_keyring(workspace: str) -> Vault | None:
    """Return the vault of a workspace (any text that names it) in the system's keyring; None if the library is missing
    or no backend is safe enough. Blocks.
    """
    try:
        import keyring  # late: it may be missing, and loads much
    except ImportError:
        return None
    try:
        good = keyring.get_keyring().priority >= RECOMMENDED
    except RuntimeError:  # what was configured does not work here
        return None
    return KeyringVault(workspace) if good else None


def _keyring_words(error: Exception) -> str:
    return f"The system's keyring failed: {type(error).__name__}."  # its message may quote what it was given
