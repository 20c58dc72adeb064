"""An explanation: what a search found, what each rule removed, and what would be enough.

Providers are slots of ``Explanation.snapshot``.  Texts name providers, and rules in the words of the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from placement.index.snapshot import Snapshot
from placement.search.query.query import SearchQuery

#: The obstacle where there is no provider at all.
NO_PROVIDERS = "no providers"


class Extent(NamedTuple):
    """How many providers there are, and in how many trees."""

    providers: int
    trees: int


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What stands in the way of an amount, at the providers that met the rules before."""

    resource_class: str
    amount: int
    #: For each property of an inventory, at how many providers it stands in the way: "absent" (no inventory), "total",
    #: "reserved", "used" (for a provider at most one of these three), "max_unit", "min_unit", "step_size".
    blocked_by: Mapping[str, int]
    #: The largest single allocation that a provider has room for, also above ``amount``; 0 if there is no room.
    most: int


@dataclass(frozen=True, slots=True)
class Step:
    """One rule of narrowing."""

    #: The parameter, without suffix; "group" where trees without a provider for a demand are left out.
    rule: str
    #: The part of the query that the rule comes from: ``resources1=VCPU:4``.
    parameter: str
    #: The suffix; None for a rule about roots.
    group: str | None
    before: Extent
    after: Extent
    #: Some of the providers that the rule removed; roots, where it removes whole trees.
    removed: tuple[int, ...]
    amounts: Shortfall | None = None
    #: Whether the rule is about trees, not about single providers.
    whole_trees: bool = False
    #: Whether the service added the rule.
    avoided: bool = False


@dataclass(frozen=True, slots=True)
class Combination:
    """A rule that rejected the last combination in trees where each demand can be supplied, but not all together."""

    #: "group_policy", "same_subtree", "required", "resources" or "work limit" (given up).
    rule: str
    parameter: str
    trees: int
    #: The roots of some of them.
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """One condition that a tree does not meet."""

    parameter: str
    #: The provider that does not meet it; None if there are several, or if no provider can serve.
    provider: int | None
    #: Amounts, in units of the class; None where the condition has none.
    needed: int | None
    available: int | None
    text: str


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A tree that a small change makes a candidate."""

    root: int
    missing: tuple[Missing, ...]
    #: The changed query, which has candidates in this tree.
    query: SearchQuery


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A change of the query that gives candidates, as a search has verified."""

    #: "amount", "spread", "resource", "trait", "aggregate", "in_tree", "root_required", "group_policy", "same_subtree"
    #: or "several".
    kind: str
    text: str
    #: The part of the query that is changed.
    parameter: str
    query: SearchQuery
    #: The number of candidates after the change; ``limited`` if there may be more.
    found: int
    limited: bool
    #: How much is changed (docs: v1-explain); the smallest are shown first.
    size: float


@dataclass(frozen=True, slots=True)
class Mistake:
    """A part of the query that cannot be met at any usage, or that means nothing."""

    #: "resource_class", "trait", "aggregate", "in_tree", "amount" or "same_subtree".
    kind: str
    #: The name that it is about; for "same_subtree" the part of the query.
    subject: str
    text: str
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one query."""

    query: SearchQuery
    snapshot: Snapshot
    #: The number of candidates; ``limited`` if there may be more.
    found: int
    limited: bool
    #: Whether the budget was enough for all that is explained.
    complete: bool
    #: About how many operations it took.
    operations: int
    summary: str
    #: The rule that left nothing, with the suffix of its group; None if there are candidates.
    obstacle: tuple[str, str | None] | None
    steps: tuple[Step, ...]
    combinations: tuple[Combination, ...]
    near_misses: tuple[NearMiss, ...]
    relaxations: tuple[Relaxation, ...]
    mistakes: tuple[Mistake, ...]
