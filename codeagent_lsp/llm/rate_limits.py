"""How long a server wants its client to wait, by the headers of its response.

Not here: deciding whether to wait (`retry.py`), waits in the body of a response (`failures.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
_UNITS = (3600.0, 60.0, 1.0, 0.001)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds a server asks to wait, None if it does not.

    Reads `retry-after-ms`, `Retry-After` in seconds or as a date (RFC 9110), or when the limits are renewed that are
    used up (`anthropic-ratelimit-tokens-reset`, `x-ratelimit-reset-tokens` and the like).
    """
    now = now or datetime.now(UTC)
    if (wait := _number(headers.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    value = headers.get("retry-after", "")
    if (wait := _number(value)) is not None:
        return wait
    try:
        return _until(parsedate_to_datetime(value), now)
    except (ValueError, TypeError):
        return _until_renewed(headers, now)


def _until_renewed(headers: Mapping[str, str], now: datetime) -> float | None:
    used_up = [name for name, left in headers.items() if "ratelimit" in name.lower() and left.strip() == "0"]
    resets = [headers.get(name.lower().replace("remaining", "reset"), "") for name in used_up if "remaining" in name]
    return max((wait for value in resets if (wait := _renewal(value, now)) is not None), default=None)


def _renewal(value: str, now: datetime) -> float | None:
    """Return the seconds of a duration such as `6m0s`, or until a moment (RFC 3339)."""
    if value and (match := _DURATION.fullmatch(value)):
        parts = [_number(part or "0") for part in match.groups()]
        return sum(unit * (part or 0.0) for unit, part in zip(_UNITS, parts, strict=True))
    try:
        return _until(datetime.fromisoformat(value), now)
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime, now: datetime) -> float:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None
