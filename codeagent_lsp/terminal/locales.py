"""The user's language from the environment. Not here: what is said in it (`texts.py`)."""

from __future__ import annotations

import locale
import os


def user_locale() -> str:
    """Return the user's locale from the environment (LC_ALL, LC_MESSAGES, LANG), such as `de_DE`; `en` by default."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return value.partition(".")[0]
    return locale.getlocale()[0] or "en"
