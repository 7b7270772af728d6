"""The user's language, as the environment tells it. Not here: what is said in it (`texts.py`)."""

from __future__ import annotations

import locale
import os


def user_locale() -> str:
    """The user's language, from the environment; `en` when it says nothing."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return value.partition(".")[0]
    return locale.getlocale()[0] or "en"
