"""The commands of `codeagent.model.*` and `codeagent.doctor`. Not here: models (`models.py`), checks (`doctor.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.arguments import Arguments, Table

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def model_commands(backend: Backend) -> Table:
    """Return the handlers by command name."""
    models, front = backend.models, backend.front

    async def doctor(given: Arguments) -> list[dict[str, Any]]:
        from codeagent_lsp.doctor import diagnose  # late: it loads what opens models, which is heavy

        checks = await diagnose(front.settings(), backend.state, front.language())
        return [*(check.to_dict() for check in checks), front.describe_client()]

    return {
        "codeagent.model.list": lambda given: models.details() if given.get("details") else models.names(),
        "codeagent.model.select": lambda given: models.select(given["name"]),
        "codeagent.doctor": doctor,
    }
