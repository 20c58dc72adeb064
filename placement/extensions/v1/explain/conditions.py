"""The conditions of a query, which can be dropped or changed one by one, and the query after such changes.

Every changed query is valid as a query string: a group that requests nothing is removed with its requirements and from
every same_subtree, and group_policy is removed if fewer than two suffixed groups are left.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from placement.extensions.v1 import query_text
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, SearchQuery

#: Maximum number of groups that an amount is spread over; maximum length of their suffixes in characters.
_MAX_GROUPS, _MAX_SUFFIX = 16, 64


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a query that can be dropped or changed by itself."""

    #: The kind of the relaxation that changes it (``explanation.Relaxation``).
    kind: str
    #: The suffix of its group; None if it belongs to no group.
    suffix: str | None = None
    #: Traits, aggregates or suffixes; the resource class of an amount.
    names: frozenset[str] = frozenset()
    forbidden: bool = False
    #: Whether the service added it; the service would add it again to a query without it.
    avoided: bool = False
    #: The amount requested.  Conditions that differ only in their amounts are equal.
    amount: int = field(default=0, compare=False)

    @property
    def resource_class(self) -> str:
        """The resource class of an amount."""
        (name,) = self.names
        return name


#: The new amount of each changed condition, or 0 if the condition is dropped.
Changes = Mapping[Condition, int]


def conditions(query: SearchQuery) -> Iterator[Condition]:
    """Yield the conditions of a query in narrowing order."""
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
    if query.isolate and _count_suffixed(query.groups) > 1:
        yield Condition("group_policy")
    for suffixes in query.same_subtrees:
        yield Condition("same_subtree", names=suffixes)


def _names(kind: str, suffix: str | None, condition: NameCondition) -> Iterator[Condition]:
    for name in sorted(condition.none_of):
        yield Condition(kind, suffix, frozenset({name}), forbidden=True)
    for names in condition.any_of:
        yield Condition(kind, suffix, names)


def _count_suffixed(groups: Collection[Group]) -> int:
    return sum(group.suffix != UNSUFFIXED for group in groups)


def parameter(condition: Condition, query: SearchQuery) -> str:
    """Return the query parameter of a condition: ``required1=!HW_X``."""
    return query_text.text(_pairs(condition, query))


def _pairs(condition: Condition, query: SearchQuery) -> list[query_text.Pair]:
    suffix, names = condition.suffix or "", condition.names
    any_of, none_of = ((), names) if condition.forbidden else ((names,), ())
    match condition.kind:
        case "amount":
            return [query_text.resources(suffix, [(condition.resource_class, condition.amount)])]
        case "trait":
            return [*query_text.trait_parameters(suffix, any_of, none_of)]
        case "aggregate":
            return [*query_text.member_of(suffix, any_of, none_of)]
        case "root_required":
            return [query_text.root_required(any_of, none_of)]
        case "in_tree":
            return [query_text.in_tree(suffix, str(group_of(query, suffix).in_tree))]
        case "same_subtree":
            return [query_text.same_subtree(names)]
        case _:
            return [("group_policy", "isolate")]


def group_of(query: SearchQuery, suffix: str) -> Group:
    """Return the group with a suffix; the query must contain it."""
    return next(group for group in query.groups if group.suffix == suffix)


def describe(query: SearchQuery, changes: Changes, unknown: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield a text for each change, "with resources=VCPU:4", and the parts of the query that it changes.

    A change that removes a group names all parameters of the group.

    Args:
        unknown: Traits that do not exist.
    """
    before, applied = query, {}
    for condition, amount in changes.items():
        applied[condition] = amount
        if amount:
            pairs = [query_text.resources(condition.suffix or "", [(condition.resource_class, amount)])]
            yield f"with {query_text.text(pairs)}", parameter(condition, query)
            continue
        after = with_changes(query, applied, unknown)
        remaining = {group.suffix for group in after.groups} if after is not None else set()
        removed = [group for group in before.groups if group.suffix not in remaining]
        own_part = [] if condition.suffix in {group.suffix for group in removed} else [parameter(condition, query)]
        part = "&".join([*own_part, *(query_text.text(query_text.group_pairs(group)) for group in removed)])
        yield f"without {part}", part
        before = after or before


def with_changes(query: SearchQuery, changes: Changes, unknown: Collection[str] = ()) -> SearchQuery | None:
    """Return the query with all of these changes; None if it would request nothing.

    Args:
        unknown: Traits that do not exist.  They are dropped where the query forbids them or lists other alternatives.
    """
    changed = query
    for condition, amount in changes.items():
        changed = _with_change(changed, condition, amount)
    if unknown:
        groups = tuple(replace(group, traits=_drop_unknown(group.traits, unknown)) for group in changed.groups)
        changed = replace(changed, groups=groups, root_traits=_drop_unknown(changed.root_traits, unknown))
    return _simplify(changed, {group.suffix for group in query.groups if group.resources})


def _with_change(query: SearchQuery, condition: Condition, amount: int) -> SearchQuery:
    names, suffix = condition.names, condition.suffix or ""
    match condition.kind:
        case "amount":
            resources = {**group_of(query, suffix).resources, condition.resource_class: amount}
            return _with_group(query, condition, resources={name: value for name, value in resources.items() if value})
        case "trait":
            return _with_group(query, condition, traits=_remove_names(group_of(query, suffix).traits, condition))
        case "aggregate":
            return _with_group(
                query, condition, aggregates=_remove_names(group_of(query, suffix).aggregates, condition)
            )
        case "in_tree":
            return _with_group(query, condition, in_tree=None)
        case "root_required" if condition.avoided:
            return replace(query, avoided=query.avoided - names)
        case "root_required":
            return replace(query, root_traits=_remove_names(query.root_traits, condition))
        case "same_subtree":
            return replace(
                query, same_subtrees=tuple(suffixes for suffixes in query.same_subtrees if suffixes != names)
            )
        case _:
            return replace(query, isolate=False)


def with_aggregate(query: SearchQuery, condition: Condition, aggregate: str) -> SearchQuery:
    """Return the query with an aggregate, new to the group, in place of the condition's aggregates."""
    aggregates = group_of(query, condition.suffix or "").aggregates
    any_of = tuple(frozenset({aggregate}) if names == condition.names else names for names in aggregates.any_of)
    return _with_group(query, condition, aggregates=replace(aggregates, any_of=any_of))


def spread(query: SearchQuery, condition: Condition) -> Iterator[tuple[int, SearchQuery]]:
    """Yield queries that divide an amount equally among several groups, if its group requests no other class.

    Yields:
        The number of groups, from 2 to 16, and the query.
    """
    group = group_of(query, condition.suffix or "")
    # In the unsuffixed group, the aggregates of the root also count: a suffixed group would have another meaning.
    if len(group.resources) > 1 or (group.suffix == UNSUFFIXED and group.aggregates.names):
        return
    used_suffixes = {existing_group.suffix for existing_group in query.groups}
    unused_suffixes = (
        suffix for number in itertools.count(1) if (suffix := f"{group.suffix}_{number}") not in used_suffixes
    )
    names = [*itertools.islice(unused_suffixes, _MAX_GROUPS)]
    for number in range(2, _MAX_GROUPS + 1):
        suffixes = names[:number]
        if condition.amount % number or len(suffixes[-1]) > _MAX_SUFFIX:
            continue
        resources = {condition.resource_class: condition.amount // number}
        parts = tuple(replace(group, suffix=suffix, resources=resources) for suffix in suffixes)
        groups = tuple(
            part
            for existing_group in query.groups
            for part in (parts if existing_group is group else (existing_group,))
        )
        subtrees = (
            (subtree - {group.suffix}).union(suffixes) if group.suffix in subtree else subtree
            for subtree in query.same_subtrees
        )  # fmt: skip
        yield number, replace(query, groups=groups, same_subtrees=tuple(subtrees))


def _drop_unknown(traits: NameCondition, unknown: Collection[str]) -> NameCondition:
    any_of = dict.fromkeys(names.difference(unknown) or names for names in traits.any_of)
    return NameCondition(tuple(any_of), traits.none_of.difference(unknown))


def _remove_names(names: NameCondition, condition: Condition) -> NameCondition:
    if condition.forbidden:
        return replace(names, none_of=names.none_of - condition.names)
    return replace(
        names, any_of=tuple(alternatives for alternatives in names.any_of if alternatives != condition.names)
    )


def _with_group(query: SearchQuery, condition: Condition, **fields: object) -> SearchQuery:
    groups = (replace(g, **fields) if g.suffix == condition.suffix else g for g in query.groups)  # type: ignore[arg-type]
    return replace(query, groups=tuple(groups))


def _simplify(query: SearchQuery, supplied: Collection[str]) -> SearchQuery | None:
    """Return the query without the parts that a change made meaningless; None if it requests no amount.

    Args:
        supplied: The suffixes of the groups that requested amounts before the change.
    """
    named = frozenset().union(*query.same_subtrees)
    tied = frozenset().union(*(names for names in query.same_subtrees if len(names) > 1))
    groups = tuple(
        group
        for group in query.groups
        if group.resources
        or (group.suffix in (tied if group.suffix in supplied else named) and [*query_text.group_pairs(group)])
    )
    if not any(group.resources for group in groups):
        return None
    suffixes = {group.suffix for group in groups}
    with_resources = {group.suffix for group in groups if group.resources}
    remaining = dict.fromkeys(names & suffixes for names in query.same_subtrees)
    # Only a group without resources has to be named by a same_subtree.
    subtrees = tuple(names for names in remaining if len(names) > 1 or names - with_resources)
    changed = replace(
        query, groups=groups, same_subtrees=subtrees, isolate=query.isolate and _count_suffixed(groups) > 1
    )
    return changed if changed == query else _simplify(changed, supplied)
