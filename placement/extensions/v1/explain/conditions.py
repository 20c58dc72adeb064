"""The parts of a query that can be left out or changed one by one, and the query without them.

A query that no text could express is not made: a group that nothing describes any more goes from every same_subtree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from placement.extensions.v1 import query_text as write
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, SearchQuery


@dataclass(frozen=True, slots=True)
class Condition:
    """One part of a query."""

    #: That of ``explanation.Relaxation``.
    kind: str
    #: The suffix of its group; None if it belongs to none.
    suffix: str | None = None
    #: Traits, aggregates or suffixes; for "amount" the class.
    names: frozenset[str] = frozenset()
    forbidden: bool = False
    #: Whether the service has added it, and would do so again to a query without it.
    avoided: bool = False
    #: For "amount".
    amount: int = 0

    @property
    def resource_class(self) -> str:
        """The class of an amount."""
        (name,) = self.names
        return name


def conditions(query: SearchQuery) -> Iterator[Condition]:
    """Yield the conditions of a query in the order in which they narrow."""
    yield from _names("root_required", None, query.root_traits)
    for name in sorted(query.avoided):
        yield Condition("root_required", None, frozenset({name}), forbidden=True, avoided=True)
    for group in query.groups:
        if group.in_tree is not None:
            yield Condition("in_tree", group.suffix)
        yield from _names("aggregate", group.suffix, group.aggregates)
        yield from _names("trait", group.suffix, group.traits)
        for name, amount in group.resources.items():
            yield Condition("amount", group.suffix, frozenset({name}), amount=amount)
    if query.isolate and sum(group.suffix != UNSUFFIXED for group in query.groups) > 1:
        yield Condition("group_policy")
    for suffixes in query.same_subtrees:
        yield Condition("same_subtree", names=suffixes)


def _names(kind: str, suffix: str | None, condition: NameCondition) -> Iterator[Condition]:
    for name in sorted(condition.none_of):
        yield Condition(kind, suffix, frozenset({name}), forbidden=True)
    for names in condition.any_of:
        yield Condition(kind, suffix, names)


def parameter(condition: Condition, query: SearchQuery) -> str:
    """Return the condition in the words of the query, as ``required1=!HW_X``."""
    return write.text(_pairs(condition, query))


def _pairs(condition: Condition, query: SearchQuery) -> list[write.Pair]:
    suffix, names = condition.suffix or "", condition.names
    any_of, none_of = ((), names) if condition.forbidden else ((names,), ())
    match condition.kind:
        case "amount" | "resource":
            return [write.resources(suffix, [(condition.resource_class, condition.amount)])]
        case "trait":
            return [*write.required(suffix, any_of, none_of)]
        case "aggregate":
            return [*write.member_of(suffix, any_of, none_of)]
        case "root_required":
            return [("root_required", value) for _, value in write.required("", any_of, none_of)]
        case "in_tree":
            return [(f"in_tree{suffix}", str(group_of(query, suffix).in_tree))]
        case "same_subtree":
            return [("same_subtree", ",".join(sorted(names)))]
        case _:
            return [("group_policy", "isolate")]


def group_of(query: SearchQuery, suffix: str) -> Group:
    """Return the group with this suffix, which the query has."""
    return next(group for group in query.groups if group.suffix == suffix)


def without(query: SearchQuery, condition: Condition) -> SearchQuery | None:
    """Return the query without the condition; None if no query string differs by this condition alone.

    A group with other conditions keeps an amount, or a place in a same_subtree; a query keeps an amount.
    """
    names = condition.names
    match condition.kind:
        case "amount" | "resource":
            group = group_of(query, condition.suffix or "")
            amounts = {name: amount for name, amount in group.resources.items() if name != condition.resource_class}
            changed = _with_group(query, condition, resources=amounts)
        case "trait":
            traits = _less(group_of(query, condition.suffix or "").traits, condition)
            changed = _with_group(query, condition, traits=traits)
        case "aggregate":
            aggregates = _less(group_of(query, condition.suffix or "").aggregates, condition)
            changed = _with_group(query, condition, aggregates=aggregates)
        case "in_tree":
            changed = _with_group(query, condition, in_tree=None)
        case "root_required" if condition.avoided:
            changed = replace(query, avoided=query.avoided - names)
        case "root_required":
            changed = replace(query, root_traits=_less(query.root_traits, condition))
        case "same_subtree":
            changed = replace(query, same_subtrees=tuple(one for one in query.same_subtrees if one != names))
        case _:
            changed = replace(query, isolate=False)
    return _expressible(changed)


def with_amounts(query: SearchQuery, suffix: str, amounts: Mapping[str, int]) -> SearchQuery:
    """Return the query with other amounts of some classes of a group."""
    resources = {name: amounts.get(name, amount) for name, amount in group_of(query, suffix).resources.items()}
    return _with_group(query, Condition("amount", suffix), resources=resources)


def with_aggregate(query: SearchQuery, condition: Condition, aggregate: str) -> SearchQuery:
    """Return the query with one aggregate in place of those of the condition."""
    aggregates = group_of(query, condition.suffix or "").aggregates
    any_of = tuple(frozenset({aggregate}) if one == condition.names else one for one in aggregates.any_of)
    return _with_group(query, condition, aggregates=replace(aggregates, any_of=tuple(dict.fromkeys(any_of))))


def _less(names: NameCondition, condition: Condition) -> NameCondition:
    if condition.forbidden:
        return replace(names, none_of=names.none_of - condition.names)
    return replace(names, any_of=tuple(one for one in names.any_of if one != condition.names))


def _with_group(query: SearchQuery, condition: Condition, **fields: object) -> SearchQuery:
    groups = (replace(g, **fields) if g.suffix == condition.suffix else g for g in query.groups)  # type: ignore[arg-type]
    return replace(query, groups=tuple(groups))


def _expressible(query: SearchQuery) -> SearchQuery | None:
    """Return the query without empty groups; None if no query string can have what remains."""
    named = frozenset().union(*query.same_subtrees)
    groups = tuple(group for group in query.groups if [*write.group_pairs(group)])
    if not any(g.resources for g in groups) or any(not g.resources and g.suffix not in named for g in groups):
        return None
    suffixes = {group.suffix for group in groups}
    subtrees = (one & suffixes for one in query.same_subtrees)
    changed = replace(query, groups=groups, same_subtrees=tuple(dict.fromkeys(one for one in subtrees if one)))
    return changed if changed == query else _expressible(changed)
