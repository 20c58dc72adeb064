"""Dates and ages in queries (docs: v1-dates)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField
from placement.schemas.declarations import string

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = "[0-9]{1,5}[smhdw]"
#: A length of time.
SPAN = string(pattern=f"^{_AGE}$", description="a length of time, for example 90m, 12h or 30d")
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?Z?"
#: A date in UTC, or an age.
DATE = string(
    pattern=f"^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(T{_TIME})?|{_AGE})$",
    description="a date in UTC, for example 2026-11-24 or 2026-11-24T18:30:00Z, or an age, for example 90m, 12h or 30d",
)


def span(value: str) -> datetime.timedelta:
    """Return the length of time of a value that conforms to ``SPAN``."""
    return datetime.timedelta(**{_UNITS[value[-1]]: int(value[:-1])})


def timestamp(parameter: str, value: str, now: Callable[[], datetime.datetime]) -> datetime.datetime:
    """Return the timestamp (naive, UTC) of a parameter, which is a date or an age.

    Args:
        parameter: The name of the parameter.
        value: A text that conforms to ``DATE``.
        now: A function that returns the time by the database's clock (naive, UTC); called only for an age.

    Raises:
        InvalidField: The date does not exist.
    """
    if re.fullmatch(_AGE, value):
        return now() - span(value)
    try:
        return datetime.datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        raise InvalidField(Violation(parameter, f"is {value}", str(DATE.keywords["description"]))) from None
