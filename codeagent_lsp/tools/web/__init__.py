"""Searching and reading the web, by checked addresses only."""

from codeagent_lsp.tools.feature import Feature

FEATURE = Feature(
    "web",
    (
        "web_tools:WebSearch",
        "web_tools:WebScrape",
    ),
)
