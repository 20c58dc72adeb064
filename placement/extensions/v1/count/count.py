"""The entry to a count: how many times a query fits in one snapshot of the index."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal

from placement import signals
from placement.extensions.v1.count.total_counter import TotalCounter
from placement.index.snapshot import Snapshot
from placement.search.budget import Budget, Exhausted
from placement.search.find import Settings
from placement.search.narrow.narrowing import narrow
from placement.search.query.query import SearchQuery
from placement.search.refusals import Refusals

#: Whether the count is exact, because it reaches a bound that no way to place exceeds, or why it is not: combinations
#: within trees, sharing providers, an early end (at ``until`` or for lack of operations or memory), or amounts that
#: are too large for exact sums.
Reason = Literal["exact", "combinations", "sharing", "until", "operations", "memory", "amounts"]


@dataclass(frozen=True, slots=True)
class Count:
    """How many times a query fits."""

    snapshot: Snapshot
    count: int
    #: An upper bound, however the query is placed; None if none is known, because the count was cut short.
    at_most: int | None
    reason: Reason
    #: The rule that ends the count in most trees, as refusals name it: ``resources:VCPU``, ``same_subtree``.  If there
    #: is no tree, the rule that left out the last one.  None if ``until`` was reached.
    ending: str | None
    #: The trees that have room, most first, as if nothing was placed in others: slots of roots, counts, and rules.
    roots: list[int]
    counts: list[int]
    endings: list[str]
    #: By aggregate, most first: the count of the trees with a member in it.  Empty if ``until`` was reached.
    aggregates: list[tuple[str, int]]
    #: Whether the count and those of the aggregates had enough operations and memory.
    complete: bool

    @property
    def exact(self) -> bool:
        """Whether the count equals its upper bound."""
        return self.reason == "exact"

    @property
    def obstacle(self) -> str:
        """The rule that leaves no room at all; empty if there is room."""
        return "" if self.count or self.roots or self.ending is None else self.ending.partition(":")[0]


@signals.timed("count")
def count(
    query: SearchQuery,
    snapshot: Snapshot,
    settings: Settings | None = None,
    until: int | None = None,
    copies: int = 1,
) -> Count:
    """Return how many times the query fits, placed for one new consumer after another.

    The names in the query must exist (``existence.check``).

    Args:
        settings: The budget is that of a search; the other settings do not matter.
        until: Where to stop.
        copies: How many copies each consumer needs, each in a different tree.
    """
    settings = Settings() if settings is None else settings
    budget, refusals = Budget(settings.operations, settings.memory), Refusals()
    counting = None
    with contextlib.suppress(Exhausted):
        narrowed = narrow(query, snapshot, budget, refusals)
        if narrowed.eligible and narrowed.roots:
            counting = TotalCounter(narrowed, budget, copies, until)
            counting.run()
    shortage = _shortage(budget)
    if counting is None:
        at_most = None if shortage else 0
        return Count(snapshot, 0, at_most, shortage or "exact", refusals.rule, [], [], [], [], not shortage)
    # Aggregates come last: without them the count is what it is.
    reason, aggregates = _reason(counting, shortage), []
    if not shortage and not counting.reached:
        with contextlib.suppress(Exhausted):
            aggregates = counting.aggregates()
    roots, counts, endings = counting.trees()
    return Count(
        snapshot=snapshot,
        count=counting.total if until is None else min(counting.total, until),
        at_most=None if reason in ("until", "operations", "memory", "amounts") else counting.bound,
        reason=reason,
        ending=None if counting.reached else counting.ending(),
        roots=roots,
        counts=counts,
        endings=endings,
        aggregates=aggregates,
        complete=budget.shortage is None,
    )


def _reason(counting: TotalCounter, shortage: Literal["operations", "memory"] | None) -> Reason:
    if counting.reached:
        return "until"
    if shortage:
        return shortage
    if counting.rounded:
        return "amounts"
    if counting.total == counting.bound:
        return "exact"
    return "sharing" if counting.shared else "combinations"


def _shortage(budget: Budget) -> Literal["operations", "memory"] | None:
    """Return what the budget had too little of."""
    if budget.shortage is None:
        return None
    return "operations" if budget.shortage == "operations" else "memory"
