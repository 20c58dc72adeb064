"""Explanations: the result of a search, the effect of each rule, and the changes that would be enough.

Providers are slots of ``Explanation.snapshot``.  Texts refer to providers by name, and to rules by query parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from placement.index.snapshot import Snapshot
from placement.search.query.query import SearchQuery

#: The obstacle in a snapshot without providers.
NO_PROVIDERS = "no providers"


class Extent(NamedTuple):
    """A number of providers, and of the trees that contain them."""

    providers: int
    trees: int


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The reasons why an amount does not fit on the providers that met the earlier rules."""

    resource_class: str
    amount: int
    #: Number of providers blocked by each property of their inventory: "absent" (no inventory), "total", "reserved",
    #: "used" (at most one of these three for a provider), "max_unit", "min_unit", "step_size".
    blocked_by: Mapping[str, int]
    #: The largest single allocation that one of the providers has room for, even above ``amount``, or 0.
    most: int


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of one narrowing rule."""

    #: The parameter without its suffix; "group" for the rule that removes trees without a provider for a demand.
    rule: str
    #: The part of the query that states the rule: ``resources1=VCPU:4``.
    parameter: str
    #: The suffix of the group; None for a rule about roots.
    group: str | None
    before: Extent
    after: Extent
    #: Some of the providers that the rule removed; roots if it removes whole trees.
    removed: tuple[int, ...]
    amounts: Shortfall | None = None
    #: Whether the rule removes whole trees rather than single providers.
    whole_trees: bool = False
    #: Whether the service added the rule.
    avoided: bool = False


@dataclass(frozen=True, slots=True)
class Combination:
    """A rule that rejected the last combination in trees that can supply each demand, but not all of them together."""

    #: "group_policy", "same_subtree", "required", "resources" or "work limit" (the search reached it).
    rule: str
    parameter: str
    trees: int
    #: The roots of some of these trees.
    examples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """A condition that a tree does not meet."""

    parameter: str
    #: The only provider that does not meet it; None for several providers, or if no provider serves the demand.
    provider: int | None
    #: Amounts, in units of the class; None unless the condition is about an amount.
    needed: int | None
    available: int | None
    text: str


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A tree that has a candidate after a small change of the query."""

    root: int
    missing: tuple[Missing, ...]
    #: The changed query, with candidates in this tree.
    query: SearchQuery


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A change of the query that produces candidates, verified by a search."""

    #: "amount", "spread", "resource", "trait", "aggregate", "in_tree", "root_required", "group_policy", "same_subtree"
    #: or "several".
    kind: str
    text: str
    #: The part of the query that changes.
    parameter: str
    query: SearchQuery
    #: The number of candidates after the change; ``limited`` if there may be more.
    found: int
    limited: bool
    #: The size of the change (docs: v1-explain); the smallest are shown first.
    size: float


@dataclass(frozen=True, slots=True)
class Mistake:
    """A part of the query that cannot be met at any usage, or that has no meaning."""

    #: "resource_class", "trait", "aggregate", "in_tree", "amount" or "same_subtree".
    kind: str
    #: The name at fault; for "same_subtree" the part of the query.
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
    #: Whether the budget was enough for every part of the explanation.
    complete: bool
    #: Operations spent, approximately.
    operations: int
    summary: str
    #: The rule that left no candidate, with the suffix of its group; None if the query has candidates.
    obstacle: tuple[str, str | None] | None
    steps: tuple[Step, ...]
    combinations: tuple[Combination, ...]
    near_misses: tuple[NearMiss, ...]
    relaxations: tuple[Relaxation, ...]
    mistakes: tuple[Mistake, ...]
