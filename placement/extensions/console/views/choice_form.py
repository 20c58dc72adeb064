"""The form that lets the service choose a place, and its body for POST /v1/claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from placement.extensions.console.views.query_form import Pairs, of_claim
from placement.extensions.v1 import query_text
from placement.schemas.document import Parameters

#: Maximum number of copies, since the page shows the place of each.
MAX_COPIES = 60


@dataclass(frozen=True, slots=True)
class ChoiceForm:
    """The fields of the form, as text."""

    strategy: str = "spread"
    #: The groups over which to spread; replaces the strategy unless empty.
    spread_over: str = ""
    count: str = "1"

    @classmethod
    def from_fields(cls, fields: Parameters) -> Self | None:
        """Return the submitted form; None if another form was submitted."""
        if "strategy" not in fields:
            return None
        count = fields.get("count", "").strip()
        # Python refuses to parse very long numbers; their first digits exceed the limit as well.
        count = str(min(int(count[:9]), MAX_COPIES)) if count.isdecimal() else count
        return cls(fields.get("strategy"), fields.get("spread_over", "").strip(), count)

    def claims(self, query: Pairs, consumer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of POST /v1/claims; the endpoint validates it.

        Args:
            query: The query of the page; its limit and count are dropped.
            consumer: The fields of a request that identify the consumer and its owner.
        """
        text = query_text.text(of_claim(query))
        count = int(self.count) if self.count.isdecimal() else self.count
        return {
            "requests": [{**consumer, "query": text, "count": count}],
            "strategy": {"spread_over": self.spread_over} if self.spread_over else self.strategy,
        }
