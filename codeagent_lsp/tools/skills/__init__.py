"""The feature `skills`: instructions in files that the model loads when it needs them."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "skills",
    (
        "skill_tools:SkillLoader",
        "skill_tools:SkillInstaller",
    ),
)
