"""The form that lets the service choose a place, and what it sends to POST /v1/claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from placement.extensions.console.views.query_form import Pairs, of_claim
from placement.extensions.v1 import query_text
from placement.schemas.document import Parameters

#: Places that a page draws.
MOST = 60


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """The fields of the form, as text."""

    strategy: str = "spread"
    #: Goes before the strategy, if it is not empty.
    spread_over: str = ""
    count: str = "1"

    @classmethod
    def of(cls, fields: Parameters) -> Self | None:
        """Return the form that was sent; None if it was another one."""
        if "strategy" not in fields:
            return None
        count = fields.get("count", "").strip()
        # Of a number so long that Python does not read it the beginning is too great, too.
        count = str(min(int(count[:9]), MOST)) if count.isdecimal() else count
        return cls(fields.get("strategy"), fields.get("spread_over", "").strip(), count)

    def claims(self, query: Pairs, consumer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of POST /v1/claims; the endpoint refuses it where a field makes no sense.

        Args:
            query: The query of the page, whose limit is for pages.
            consumer: The members of a request that say who claims.
        """
        text = query_text.text(of_claim(query))
        count = int(self.count) if self.count.isdecimal() else self.count
        return {
            "requests": [{**consumer, "query": text, "count": count}],
            "strategy": {"spread_over": self.spread_over} if self.spread_over else self.strategy,
        }
