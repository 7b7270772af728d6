"""The error codes of single built-in tools, in addition to those that every tool of its kind has.

For the page about the tools. Not here: the page (`tools_page.py`), the tools and their examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from codeagent_lsp.errors import ErrorCode

_FILE = (ErrorCode.NOT_FOUND,)
_MODEL = (ErrorCode.EXECUTION_ERROR, ErrorCode.NETWORK_ERROR, ErrorCode.PARSE_ERROR, ErrorCode.TIMEOUT)

ERRORS: Mapping[str, tuple[ErrorCode, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("git_diff", "git_log", "call_graph", "search_semantic"), _FILE),
        "ast_extract_function": (ErrorCode.EDIT_REFUSED,),
        "generate_commit": (ErrorCode.NOT_FOUND, *_MODEL),
        "generate_tests": (ErrorCode.NOT_FOUND, *_MODEL),
        "delegate": _MODEL,
        "web_search": (ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR),
        "web_scrape": (ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.NOT_FOUND),
        **dict.fromkeys(("import_file", "import_files_batch"), (*_FILE, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR)),
        **dict.fromkeys(("terminal", "desktop"), (*_FILE, ErrorCode.TIMEOUT)),
        "skill_loader": _FILE,
        "skill_installer": (ErrorCode.NETWORK_ERROR, ErrorCode.NOT_FOUND),
        "run_tests": _FILE,
        "analyze_coverage": _FILE,
    }
)
"""Error codes of single tools, in addition to those that follow from a tool's traits."""
