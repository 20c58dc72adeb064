"""The selection on the usage history page: a period, a class and a breakdown."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import urlencode

from placement.extensions.v1.schemas import usage_history as schema
from placement.schemas.document import Parameters

#: Selectable periods, in days.
PERIODS = {"day": 1, "week": 7, "month": 30}


@dataclass(frozen=True, slots=True)
class UsageChoice:
    """The query of the page, as text; a field that was not selected is empty."""

    period: str = ""
    resource_class: str = ""
    by: str = ""
    begin: str = ""
    end: str = ""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Return the selection in a query."""
        choice = cls(*(query.get(name, "") for name in ("period", "class", "by", "from", "to")))
        return choice if choice.begin or choice.end else replace(choice, period=choice.period or "day")

    def bounds(self, now: datetime.datetime) -> tuple[datetime.datetime, datetime.datetime, bool]:
        """Return the start and the end (naive, UTC), and whether the period includes the present.

        Raises:
            InvalidField: A date is invalid, or the period ends before it starts.
        """
        if not self.begin and not self.end:
            return schema.period(Parameters([("from", f"{PERIODS[self.period]}d")]), now)
        pairs = [(name, value) for name, value in (("from", self.begin), ("to", self.end)) if value]
        return schema.period(Parameters(pairs), now)

    def query(self, **changes: str) -> str:
        """Return the query string of the page with fields changed."""
        chosen = replace(self, **changes)
        fields = {"period": chosen.period, "class": chosen.resource_class, "by": chosen.by}
        fields |= {"from": chosen.begin, "to": chosen.end}
        return urlencode({name: value for name, value in fields.items() if value})
