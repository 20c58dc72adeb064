"""/v1/usage"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.history.usage_samples import UsageSample
from placement.extensions.v1.history.usage_shares import Dimension, Shares, UsageShare
from placement.extensions.v1.schemas import numeral
from placement.extensions.v1.schemas.date import DATE, timestamp
from placement.schemas.dates import date
from placement.schemas.declarations import IDENTIFIER, Array, Field, Object, integer, string
from placement.schemas.document import Parameters, Query
from placement.schemas.reply_types import by_class
from placement.schemas.success import ok

#: The samples of a class where the client states no number.
DEFAULT_SAMPLES = 200
_DAY = datetime.timedelta(days=1)

SHOW = Query(
    Object(
        Field("from", DATE, text="Not before this date (UTC), or not longer ago than this age: 7d. Usually a day."),
        Field("to", DATE, text="Before this date (UTC), or longer ago than this age. Usually the present."),
        Field("class", IDENTIFIER, text="Of this resource class only."),
        Field("by", string(enum=[*Dimension]), text="Also what the largest projects, or aggregates, used of it."),
        Field(
            "limit",
            numeral.up_to(1000),
            text="The most samples of a class: of more, those of the last moment in each of as many spans of time.",
        ),
    )
)
_AT, _USED = Field("at", string(format="date-time"), required=True), Field("used", integer(), required=True)
_SAMPLE = Object(_AT, Field("capacity", integer(minimum=0), required=True), _USED)
_SHARE = Object(
    Field("name", string(), required=True),
    Field("samples", Array(Object(_AT, Field("capacity", integer(minimum=0)), _USED)), required=True),
)
REPLIES = ok(
    Object(Field("classes", by_class(Array(_SAMPLE)), required=True), Field("shares", by_class(Array(_SHARE))))
)


def period(parameters: Parameters, now: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime, bool]:
    """Return beginning and end (naive, UTC), and whether the present is a part of it.

    Args:
        parameters: The query.
        now: The time by the database's clock (naive, UTC).

    Raises:
        InvalidField: There is no such date, or the period ends before it begins.
    """
    given, named = parameters.get("to"), parameters.get("from")
    until = now if given is None else timestamp("to", given, lambda: now)
    since = max(until, datetime.datetime.min + _DAY) - _DAY if named is None else timestamp("from", named, lambda: now)
    if since >= until:
        raise InvalidField(Violation("to", f"is {date(until)}", f"a time after from, {date(since)}"))
    return since, until, since <= now <= until


def document(classes: Mapping[str, Sequence[UsageSample]], shares: Shares | None) -> dict[str, Any]:
    """Return samples by class, and shares by class if there are any."""
    made: dict[str, Any] = {"classes": {name: [_sample(each) for each in samples] for name, samples in classes.items()}}
    if shares is not None:
        made["shares"] = {
            resource_class: [{"name": name, "samples": [_sample(each) for each in found]} for name, found in of.items()]
            for resource_class, of in shares.items()
        }
    return made


def _sample(each: UsageSample | UsageShare) -> dict[str, Any]:
    capacity = {} if each.capacity is None else {"capacity": each.capacity}
    return {"at": date(each.at), **capacity, "used": each.used}
