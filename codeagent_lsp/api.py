"""The one public module of the package: what other programs, benchmarks and tests may import and rely on.

Names and signatures here stay as they are within a major version; every other module may move. Tools that users write
import `codeagent_lsp.own_tools` instead, which is all that their worker process loads. Not here: any code.
"""

from codeagent_lsp.agent.limits import Anomaly, LoopGuard
from codeagent_lsp.errors import EditRefused, PatchRefused, ToolFailed
from codeagent_lsp.llm.calls.streamed_calls import StreamParser
from codeagent_lsp.llm.calls.toolcalls import parse as parse_tool_calls
from codeagent_lsp.messages import ToolCall, ToolSpec
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.tools.context import ToolContext, tool_context
from codeagent_lsp.tools.permissions.shell_policy import Judgement, judge
from codeagent_lsp.tools.tool import Parameters, Tool, ToolOutput
from codeagent_lsp.tools.traits import ToolTraits
from codeagent_lsp.workspace.edits.match import Replacement, replace
from codeagent_lsp.workspace.edits.patch import apply_patch

__all__ = [
    "Anomaly",
    "EditRefused",
    "Judgement",
    "LoopGuard",
    "Masking",
    "Parameters",
    "PatchRefused",
    "Replacement",
    "Sanitizer",
    "StreamParser",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolFailed",
    "ToolOutput",
    "ToolSpec",
    "ToolTraits",
    "apply_patch",
    "judge",
    "parse_tool_calls",
    "replace",
    "tool_context",
]
