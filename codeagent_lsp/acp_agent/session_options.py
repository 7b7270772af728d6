"""What the user of a client can set for one session: mode, model and effort, as config options and in the older shape
of modes; and the commands that a prompt may begin with. Pure. Not here: setting them (`open_session.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acp import schema

from codeagent_lsp.config import ModelSettings, PermissionsSettings
from codeagent_lsp.texts import text

MODE, MODEL, EFFORT = "mode", "model", "effort"
MODES: tuple[str, ...] = ("ask", "acceptEdits", "readOnly", "bypass")
EFFORTS: tuple[str, ...] = ("auto", "none", "low", "medium", "high")
COMMANDS: Mapping[str, str] = {"plan": "task", "ask": "question", "undo": "", "apply": "", "discard": ""}
"""Our own commands by name, each with the argument that it takes."""


@dataclass(slots=True)
class SessionOptions:
    """The present values of one session's options; `models` are those that the endpoint offers, each with a line for
    the user.
    """

    mode: str
    model: str
    effort: str
    models: Mapping[str, str]
    language: str

    @staticmethod
    def of(permissions: PermissionsSettings, model: ModelSettings, language: str) -> SessionOptions:
        """Return the options by the settings, with texts in `language` (`en` or `zh-cn`); the models are
        not known yet.
        """
        return SessionOptions(permissions.mode, model.name or "", model.effort, {}, language)

    def modes(self) -> schema.SessionModeState:
        """Return the permission modes in the protocol's older form, session modes, with the present one."""
        available = [
            schema.SessionMode(
                id=mode,
                name=self._text(f"acp.mode.{mode.lower()}"),
                description=self._text(f"acp.about.{mode.lower()}"),
            )
            for mode in MODES
        ]
        return schema.SessionModeState(current_mode_id=self.mode, available_modes=available)

    def config(self) -> list[Any]:
        """Return the options `mode`, `model` and `effort`, in this order, in the protocol's form (config options). The
        model has only the present one to choose until the endpoint's models are known.
        """
        names = [self.model, *(name for name in self.models if name != self.model)]
        models = [(name, name or self._text("acp.model.auto"), self.models.get(name, "")) for name in names]
        efforts = [(effort, self._text(f"acp.effort.{effort}"), "") for effort in EFFORTS]
        return [
            self._select(MODE, "mode", self.mode, self._named_modes()),
            self._select(MODEL, "model", self.model, models),
            self._select(EFFORT, "thought_level", self.effort, efforts),
        ]

    def allows(self, option: str, value: str) -> bool:
        """Return whether an option, by its id such as `mode`, has this value among its choices; False for an unknown
        option.
        """
        for select in self.config():
            if select.id == option:
                return any(getattr(each, "value", None) == value for each in select.options)
        return False

    def _select(
        self, name: str, category: Any, value: str, choices: Iterable[tuple[str, str, str]]
    ) -> schema.SessionConfigOptionSelect:
        options = [
            schema.SessionConfigSelectOption(value=each, name=title, description=about or None)
            for each, title, about in choices
        ]
        return schema.SessionConfigOptionSelect(
            type="select",
            id=name,
            name=self._text(f"acp.option.{name}"),
            category=category,
            current_value=value,
            options=options,
        )

    def _named_modes(self) -> list[tuple[str, str, str]]:
        return [
            (mode, self._text(f"acp.mode.{mode.lower()}"), self._text(f"acp.about.{mode.lower()}")) for mode in MODES
        ]

    def _text(self, key: str) -> str:
        return text(key, self.language)


def models_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the models in the answer of `codeagent.model.list` by name, each with its window in words, such as
    `131,072 tokens` ('' if unknown).
    """
    found = {}
    for row in rows:
        window = _value(row, "contextWindow")
        found[str(row["name"])] = f"{window:,} tokens" if isinstance(window, int) else ""
    return found


def window_of(rows: Iterable[Mapping[str, Any]], name: str) -> int:
    """Return the window of a model in tokens, of the first one for the name ''; 0 if unknown."""
    for row in rows:
        if row["name"] == name or not name:
            window = _value(row, "contextWindow")
            return window if isinstance(window, int) else 0
    return 0


def commands_of(own: Sequence[Mapping[str, Any]], language: str) -> schema.AvailableCommandsUpdate:
    """Return the update with our commands and then those that users wrote, given as `codeagent.commands.list` returns
    them; of equal names only ours. Descriptions are in `language`.
    """
    listed = [(name, text(f"acp.command.{name}", language), hint) for name, hint in COMMANDS.items()]
    listed += [
        (str(item["name"]), str(item.get("description") or item["name"]), str(item.get("hint") or "…"))
        for item in own
        if item["name"] not in COMMANDS
    ]
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update",
        available_commands=[
            schema.AvailableCommand(name=name, description=about, input=_input(hint)) for name, about, hint in listed
        ],
    )


def _input(hint: str) -> Any:
    return schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=hint)) if hint else None


def _value(row: Mapping[str, Any], fact: str) -> Any:
    return ((row.get("facts") or {}).get(fact) or {}).get("value")
