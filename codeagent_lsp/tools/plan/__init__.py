"""The feature `plan`: steps for long work, and the plan document that the user approves. How a run works on the steps
is in `session/plan_execution.py`.
"""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "plan",
    (
        "plan_tools:CreatePlan",
        "plan_tools:PlanEnter",
        "plan_tools:PlanUpdate",
        "plan_tools:PlanExit",
    ),
)
