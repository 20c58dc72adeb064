"""The entry point: the number of times that a query fits in one snapshot of the index."""

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

#: "exact" if the count equals its upper bound; otherwise the reason for a low count: combinations within trees, sharing
#: providers, an early end (``until`` reached, operations or memory exhausted), or amounts too large for exact sums.
CountReason = Literal["exact", "combinations", "sharing", "until", "operations", "memory", "amounts"]


@dataclass(frozen=True, slots=True)
class Count:
    """The number of times that a query fits."""

    snapshot: Snapshot
    count: int
    #: An upper bound for any placement; None if the count was cut short before one was known.
    at_most: int | None
    reason: CountReason
    #: The rule that limits the count in most trees, named as in refusals: ``resources:VCPU``, ``same_subtree``.
    #: If no tree is eligible, the rule that removed the last tree.  None if ``until`` was reached.
    limiting_rule: str | None
    #: The trees in which the query fits, largest count first, each counted as if nothing were placed elsewhere:
    #: slots of roots, counts, and limiting rules.
    roots: list[int]
    counts: list[int]
    limiting_rules: list[str]
    #: The count of the trees with a member in each aggregate, largest first.  Empty if ``until`` was reached.
    aggregates: list[tuple[str, int]]
    #: Whether operations and memory were enough for the count and for the counts by aggregate.
    complete: bool

    @property
    def exact(self) -> bool:
        """Whether the count equals its upper bound."""
        return self.reason == "exact"

    @property
    def obstacle(self) -> str:
        """The rule that leaves no free capacity; empty if the query fits."""
        return "" if self.count or self.roots or self.limiting_rule is None else self.limiting_rule.partition(":")[0]


@signals.timed("count")
def count(
    query: SearchQuery,
    snapshot: Snapshot,
    settings: Settings | None = None,
    until: int | None = None,
    copies: int = 1,
) -> Count:
    """Return the number of times that a query fits, placed for one new consumer after another.

    The names in the query must exist (``existence.check``).

    Args:
        settings: The budget of the search; the other settings are ignored.
        until: The count at which to stop.
        copies: Copies that each consumer needs, each in a different tree.
    """
    settings = Settings() if settings is None else settings
    budget, refusals = Budget(settings.operations, settings.memory), Refusals()
    counter = None
    with contextlib.suppress(Exhausted):
        narrowed = narrow(query, snapshot, budget, refusals)
        if narrowed.eligible and narrowed.roots:
            counter = TotalCounter(narrowed, budget, copies, until)
            counter.run()
    shortage = _shortage(budget)
    if counter is None:
        at_most = None if shortage else 0
        return Count(snapshot, 0, at_most, shortage or "exact", refusals.rule, [], [], [], [], not shortage)
    # Aggregates come last: if the budget runs out here, the count itself is complete.
    reason, aggregates = _reason(counter, shortage), []
    if not shortage and not counter.reached:
        with contextlib.suppress(Exhausted):
            aggregates = counter.aggregates()
    roots, counts, limiting_rules = counter.trees()
    return Count(
        snapshot=snapshot,
        count=counter.total if until is None else min(counter.total, until),
        at_most=None if reason in ("until", "operations", "memory", "amounts") else counter.bound,
        reason=reason,
        limiting_rule=None if counter.reached else counter.limiting_rule(),
        roots=roots,
        counts=counts,
        limiting_rules=limiting_rules,
        aggregates=aggregates,
        complete=budget.shortage is None,
    )


def _reason(counter: TotalCounter, shortage: Literal["operations", "memory"] | None) -> CountReason:
    if counter.reached:
        return "until"
    if shortage:
        return shortage
    if counter.rounded:
        return "amounts"
    if counter.total == counter.bound:
        return "exact"
    return "sharing" if counter.shared else "combinations"


def _shortage(budget: Budget) -> Literal["operations", "memory"] | None:
    """Return the resource that the budget ran out of."""
    if budget.shortage is None:
        return None
    return "operations" if budget.shortage == "operations" else "memory"
