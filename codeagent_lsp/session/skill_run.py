"""Installs a skill by the user's own command, with the tool but without a model. Not here: the tool."""

from __future__ import annotations

from typing import Literal, cast

from codeagent_lsp.errors import PermissionDenied
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.skills.skill_tools import SkillInstaller, SkillInstallerParameters


async def install_skill(request: RunRequest, context: ToolContext) -> str | None:
    """Install a skill, and return a line on what was installed; None if the user declined. AgentError if it fails. The
    request's task is the source, its `args` are name, location and branch, each possibly ''.
    """
    name, location, branch = (*request.args, "", "", "")[:3]
    wanted = SkillInstallerParameters(
        skill_source=request.task[:500],
        skill_name=name or None,
        install_location=cast("Literal['project', 'global']", location or "project"),
        branch=branch or None,
    )
    try:
        return (await SkillInstaller().run(wanted, context)).text.partition("\n")[0]
    except PermissionDenied:
        return None
