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

#: Default maximum number of samples of a class.
DEFAULT_SAMPLES = 200
_DAY = datetime.timedelta(days=1)

SHOW = Query(
    Object(
        Field(
            "from", DATE, text="The beginning of the period: a date (UTC), or an age such as 7d. By default, a day ago."
        ),
        Field("to", DATE, text="The end of the period, exclusive: a date (UTC), or an age. By default, the present."),
        Field("class", IDENTIFIER, text="Samples of this resource class only."),
        Field("by", string(enum=[*Dimension]), text="Also the usage by the largest projects or aggregates."),
        Field(
            "limit",
            numeral.up_to(1000),
            text="The maximum number of samples of a class. If a class has more, the last one in each of equal time "
            "spans is returned.",
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
    """Return the beginning and the end of the period (naive, UTC), and whether it includes the present.

    Args:
        parameters: The query.
        now: The time by the database's clock (naive, UTC).

    Raises:
        InvalidField: A date does not exist, or the period ends before it begins.
    """
    end, begin = parameters.get("to"), parameters.get("from")
    until = now if end is None else timestamp("to", end, lambda: now)
    since = max(until, datetime.datetime.min + _DAY) - _DAY if begin is None else timestamp("from", begin, lambda: now)
    if since >= until:
        raise InvalidField(Violation("to", f"is {date(until)}", f"a time after from, {date(since)}"))
    return since, until, since <= now <= until


def document(classes: Mapping[str, Sequence[UsageSample]], shares: Shares | None) -> dict[str, Any]:
    """Return the document of samples and, if given, of shares."""
    rendered: dict[str, Any] = {
        "classes": {name: [_sample(sample) for sample in samples] for name, samples in classes.items()}
    }
    if shares is not None:
        rendered["shares"] = {
            resource_class: [
                {"name": name, "samples": [_sample(share) for share in by_time]} for name, by_time in by_name.items()
            ]
            for resource_class, by_name in shares.items()
        }
    return rendered


def _sample(sample: UsageSample | UsageShare) -> dict[str, Any]:
    capacity = {} if sample.capacity is None else {"capacity": sample.capacity}
    return {"at": date(sample.at), **capacity, "used": sample.used}
