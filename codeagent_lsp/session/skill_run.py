"""A skill installed by the user's own command: the tool's work without a model. Not here: the tool."""

from __future__ import annotations

from typing import Literal, cast

from codeagent_lsp.errors import PermissionDenied
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.skills.skill_tools import SkillInstaller, SkillInstallerParameters


async def install_skill(request: RunRequest, context: ToolContext) -> str | None:
    """What was installed; None when the user said no. AgentError. `args` are name, location and branch, or ''."""
    name, location, branch = (*request.args, "", "", "")[:3]
    wanted = SkillInstallerParameters(
        skill_source=request.task[:500],
        skill_name=name or None,
        install_location=cast(Literal["project", "global"], location or "project"),
        branch=branch or None,
    )
    try:
        return (await SkillInstaller().run(wanted, context)).text.partition("\n")[0]
    except PermissionDenied:
        return None
