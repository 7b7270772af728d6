"""The settings in docs/models.md are read as they stand there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from codeagent_lsp.settings_layers import load

PAGE = (Path(__file__).parent.parent / "docs" / "models.md").read_text()
SNIPPETS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


def test_there_is_one_for_each_service() -> None:
    assert len(SNIPPETS) == 10


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_is_read_without_a_problem(snippet: str) -> None:
    settings, problems = load(json.loads(snippet))
    assert problems == []
    assert settings.model.name or settings.model.provider == "llamacpp"
