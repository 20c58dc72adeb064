"""/v1/usage"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.history.usage_samples import UsageSample
from placement.extensions.v1.schemas import numeral
from placement.extensions.v1.schemas.date import DATE, moment
from placement.schemas.dates import date
from placement.schemas.declarations import IDENTIFIER, Array, Field, Object, integer, string
from placement.schemas.document import Parameters, Query
from placement.schemas.reply_types import by_class
from placement.schemas.success import ok

#: The samples of a class where the client states no number.
USUAL = 200
_DAY = datetime.timedelta(days=1)

SHOW = Query(
    Object(
        Field("since", DATE, text="Not before this date (UTC), or not longer ago than this age: 7d. Usually a day."),
        Field("until", DATE, text="Before this date (UTC), or longer ago than this age. Usually the present."),
        Field("class", IDENTIFIER, text="Of this resource class only."),
        Field(
            "limit",
            numeral.up_to(1000),
            text="The most samples of a class: of more, those of the last moment in each of as many spans of time.",
        ),
    )
)
_SAMPLE = Object(
    Field("at", string(format="date-time"), required=True),
    Field("capacity", integer(minimum=0), required=True),
    Field("used", integer(), required=True),
)
REPLIES = ok(Object(Field("classes", by_class(Array(_SAMPLE)), required=True)))


def period(parameters: Parameters, now: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime, bool]:
    """Return beginning and end (naive, UTC), and whether the present is a part of it.

    Args:
        parameters: The query.
        now: The time by the database's clock (naive, UTC).

    Raises:
        InvalidField: There is no such date, or the period ends before it begins.
    """
    given, named = parameters.get("until"), parameters.get("since")
    until = now if given is None else moment("until", given, lambda: now)
    since = max(until, datetime.datetime.min + _DAY) - _DAY if named is None else moment("since", named, lambda: now)
    if since >= until:
        raise InvalidField(Violation("until", f"is {date(until)}", f"a time after since, {date(since)}"))
    return since, until, until >= now


def document(classes: Mapping[str, Sequence[UsageSample]]) -> dict[str, Any]:
    """Return samples by class."""
    return {
        "classes": {
            name: [{"at": date(each.at), "capacity": each.capacity, "used": each.used} for each in samples]
            for name, samples in classes.items()
        }
    }
