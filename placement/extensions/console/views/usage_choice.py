"""What the page of the usage shows: a period, a class, and by what the usage is divided."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlencode

from placement.extensions.v1.schemas import usage_history as schema
from placement.schemas.document import Parameters

#: The periods that can be chosen, with their lengths in days.
PERIODS = {"day": 1, "week": 7, "month": 30}


@dataclass(frozen=True, slots=True)
class UsageChoice:
    """The query of the page, as text; what is empty was not chosen."""

    period: str = ""
    resource_class: str = ""
    by: str = ""
    begin: str = ""
    end: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Return the choice of a query."""
        named = cls(*(given.get(name, "") for name in ("period", "class", "by", "from", "to")))
        return named if named.begin or named.end else replace(named, period=named.period or "day")

    def bounds(self, now: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime, bool]:
        """Return beginning and end (naive, UTC), and whether the present is a part of it.

        Raises:
            InvalidField: There is no such date, or the period ends before it begins.
        """
        if not self.begin and not self.end:
            return schema.period(Parameters([("from", f"{PERIODS[self.period]}d")]), now)
        pairs = [(name, value) for name, value in (("from", self.begin), ("to", self.end)) if value]
        return schema.period(Parameters(pairs), now)

    def query(self, **changes: str) -> str:
        """Return the query of the page with another choice."""
        chosen = replace(self, **changes)
        fields = {"period": chosen.period, "class": chosen.resource_class, "by": chosen.by}
        fields |= {"from": chosen.begin, "to": chosen.end}
        return urlencode({name: value for name, value in fields.items() if value})
