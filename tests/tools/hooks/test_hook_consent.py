"""What the user says of hooks holds for a run, and for others as it was when they began."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.tools.hooks.hook_files import HookConsent
from tests.tools.hooks.test_hook_files import Shelf, group, hooks


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


async def test_who_cannot_be_asked_in_an_attempt_has_not_said_no(shelf: Shelf) -> None:
    """The hooks change while an attempt works: the run itself asks about them, later."""
    shelf.put(hooks(PreToolUse=[group("first")]))
    context, shell, first = shelf.bench.context, shelf.bench.shell, shelf.only
    assert shell is not None
    consent = HookConsent(shelf.shelf, "s")
    shelf.bench.asker.answers.append(("Allow once",))
    await consent.ask(context, first, shell)
    of_attempt = consent.copy()
    assert consent.given(first, shell) and of_attempt.given(first, shell)
    shelf.put(hooks(PreToolUse=[group("second")]))
    await of_attempt.ask(context, shelf.only, shell)
    assert of_attempt.decided(shelf.only, shell) and not of_attempt.given(shelf.only, shell)
    assert not consent.decided(shelf.only, shell)
