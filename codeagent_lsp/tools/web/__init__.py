"""The feature `web`: searching and reading the web, through checked addresses only."""

from codeagent_lsp.tools import Feature

FEATURE = Feature(
    "web",
    (
        "web_tools:WebSearch",
        "web_tools:WebScrape",
    ),
)
