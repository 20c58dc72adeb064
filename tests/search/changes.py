"""The changes of a query that an explanation tries, from the table "Relaxations" (docs: v1-explain).

Each condition of a query can be left out; an amount can be changed, or spread over several groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from placement.extensions.v1.query_text import group_pairs
from placement.search.query.query import UNSUFFIXED, AnyOf, Group, NameCondition, SearchQuery

#: The position of a condition in the request: the part, the section of a group, and the place in the section, which is
#: negative for forbidden names, since the documents specify no order for them.
Place = tuple[int, int, int]

#: Maximum number of groups that an amount is spread over.
MAX_GROUPS = 16


@dataclass(frozen=True)
class Condition:
    """One condition of a query."""

    kind: str
    parameter: str
    place: Place
    #: None for a condition that belongs to no group.
    suffix: str | None = None
    #: One set of required names, a forbidden name, or the suffixes of a subtree.
    names: frozenset[str] = frozenset()
    forbidden: bool = False
    resource_class: str | None = None
    amount: int = 0

    @property
    def of_all_groups(self) -> bool:
        return self.kind in ("group_policy", "same_subtree")


# --- the conditions of a query ---


def conditions(query: SearchQuery) -> list[Condition]:
    """Return the conditions in the order of the request."""
    last = len(query.groups) + 1
    result = list(_of_names("root_required", "root_required", None, query.root_traits, 0, 0))
    for number, group in enumerate(query.groups, 1):
        result += _of_group(group, number)
    if query.isolate and sum(group.suffix != UNSUFFIXED for group in query.groups) > 1:
        result.append(Condition("group_policy", "group_policy=isolate", (last, 0, 0)))
    for index, suffixes in enumerate(query.same_subtrees):
        text = "same_subtree=" + ",".join(sorted(suffixes))
        result.append(Condition("same_subtree", text, (last, 1, index), names=suffixes))
    return result


def _of_group(group: Group, number: int) -> Iterator[Condition]:
    suffix = group.suffix
    if group.in_tree is not None:
        yield Condition("in_tree", f"in_tree{suffix}={group.in_tree}", (number, 0, 0), suffix)
    yield from _of_names("aggregate", f"member_of{suffix}", suffix, group.aggregates, number, 1)
    yield from _of_names("trait", f"required{suffix}", suffix, group.traits, number, 2)
    for index, (class_, amount) in enumerate(group.resources.items()):
        text = f"resources{suffix}={class_}:{amount}"
        yield Condition("amount", text, (number, 3, index), suffix, resource_class=class_, amount=amount)


def _of_names(
    kind: str, parameter: str, suffix: str | None, requirement: NameCondition, number: int, section: int
) -> Iterator[Condition]:
    for index, names in enumerate(requirement.any_of):
        yield Condition(kind, f"{parameter}={alternatives(names)}", (number, section, index), suffix, names)
    for index, name in enumerate(sorted(requirement.none_of), -len(requirement.none_of)):
        text, names = f"{parameter}=!{name}", frozenset({name})
        yield Condition(kind, text, (number, section, index), suffix, names, forbidden=True)


def alternatives(names: frozenset[str]) -> str:
    """Return a set of names in the syntax of a query."""
    return ("in:" if len(names) > 1 else "") + ",".join(sorted(names))


# --- changed queries ---


def without(query: SearchQuery, unknown: frozenset[str], *left_out: Condition) -> SearchQuery | None:
    """Return the query without some conditions; None if the rest is not a valid query.

    A group that loses its last class is removed with its other conditions, unless a subtree names it with another one.

    Args:
        unknown: The traits that do not exist; forbidding them has no effect.
    """
    relaxed = query
    for condition in sorted(left_out, key=lambda condition: not condition.of_all_groups):
        relaxed = _without_condition(relaxed, condition)
    existing = (
        replace(group, traits=replace(group.traits, none_of=group.traits.none_of - unknown)) for group in relaxed.groups
    )
    relaxed = with_groups(relaxed, (group for group in existing if group != Group(group.suffix)))
    asking = {group.suffix for group in query.groups if group.resources}
    while lonely := asking & {
        group.suffix for group in relaxed.groups if not group.resources and is_lonely(group, relaxed)
    }:
        relaxed = with_groups(relaxed, (group for group in relaxed.groups if group.suffix not in lonely))
    return relaxed if can_be_sent(relaxed) else None


def is_lonely(group: Group, query: SearchQuery) -> bool:
    """Whether no subtree names the group together with another one."""
    return not any(group.suffix in suffixes and len(suffixes) > 1 for suffixes in query.same_subtrees)


def _without_condition(query: SearchQuery, condition: Condition) -> SearchQuery:
    match condition.kind:
        case "group_policy":
            return replace(query, isolate=False)
        case "same_subtree":
            other_subtrees = tuple(suffixes for suffixes in query.same_subtrees if suffixes != condition.names)
            named_suffixes = frozenset().union(*other_subtrees)
            # A group without resources serves the subtree only, and is left out with it.
            groups = tuple(group for group in query.groups if group.resources or group.suffix in named_suffixes)
            return replace(query, same_subtrees=other_subtrees, groups=groups)
        case "root_required":
            return replace(query, root_traits=_without_names(query.root_traits, condition))
        case "trait":
            return _change_group(
                query, condition, lambda group: replace(group, traits=_without_names(group.traits, condition))
            )
        case "aggregate":
            return _change_group(
                query, condition, lambda group: replace(group, aggregates=_without_names(group.aggregates, condition))
            )
        case "in_tree":
            return _change_group(query, condition, lambda group: replace(group, in_tree=None))
        case _:
            return _change_group(query, condition, lambda group: _without_class(group, condition.resource_class))


def _without_names(requirement: NameCondition, condition: Condition) -> NameCondition:
    if condition.forbidden:
        return NameCondition(requirement.any_of, requirement.none_of - condition.names)
    return NameCondition(tuple(names for names in requirement.any_of if names != condition.names), requirement.none_of)


def _without_class(group: Group, class_: str | None) -> Group:
    return replace(group, resources={name: amount for name, amount in group.resources.items() if name != class_})


def _change_group(query: SearchQuery, condition: Condition, change: Callable[[Group], Group]) -> SearchQuery:
    """Return the query with the group of a condition changed; a group left without conditions is removed."""
    groups = (change(group) if group.suffix == condition.suffix else group for group in query.groups)
    return with_groups(query, (group for group in groups if group != Group(group.suffix)))


def with_groups(query: SearchQuery, groups: Iterable[Group]) -> SearchQuery:
    """Return the query with some of its groups; a subtree of one group is kept, since it may have no resources."""
    groups = tuple(groups)
    remaining = {group.suffix for group in groups}
    subtrees = [names for suffixes in query.same_subtrees if (names := suffixes & remaining)]
    return replace(query, groups=groups, same_subtrees=tuple(dict.fromkeys(subtrees)))


def can_be_sent(query: SearchQuery) -> bool:
    """Whether a search accepts the query: it requests resources, and groups without resources are in a subtree."""
    named_suffixes = frozenset().union(*query.same_subtrees)
    idle = {group.suffix for group in query.groups if not group.resources}
    return (
        bool(query.resource_classes)
        and idle <= named_suffixes <= {group.suffix for group in query.groups}
        and UNSUFFIXED not in idle
        and not any(group.traits.conflicts for group in query.groups)
    )


def with_amounts(query: SearchQuery, amounts: dict[Condition, int]) -> SearchQuery:
    """Return the query with other amounts."""
    for condition, amount in amounts.items():
        groups = tuple(
            replace(group, resources={**group.resources, condition.resource_class: amount})
            if group.suffix == condition.suffix and condition.resource_class in group.resources
            else group
            for group in query.groups
        )
        query = replace(query, groups=groups)
    return query


def with_aggregate(query: SearchQuery, condition: Condition, name: str) -> SearchQuery:
    """Return the query with the aggregates of a condition replaced by another one."""

    def replace_aggregates(group: Group) -> Group:
        sets = (frozenset({name}) if names == condition.names else names for names in group.aggregates.any_of)
        return replace(group, aggregates=NameCondition(tuple(dict.fromkeys(sets)), group.aggregates.none_of))

    return _change_group(query, condition, replace_aggregates)


def can_be_spread(group: Group) -> bool:
    """Whether a group requests one class, and is not unsuffixed with aggregates, whose meaning differs there."""
    return len(group.resources) == 1 and not (group.suffix == UNSUFFIXED and group.aggregates.names)


def spread(query: SearchQuery, condition: Condition, number: int) -> SearchQuery:
    """Return the query with one group replaced by ``number`` groups of equal amounts, in subtrees, too."""
    used_suffixes = {group.suffix for group in query.groups}
    names = (f"_{count}" for count in range(1, 100))
    new_suffixes = [suffix for suffix in names if suffix not in used_suffixes][:number]
    groups: list[Group] = []
    for group in query.groups:
        if group.suffix == condition.suffix:
            amounts = {class_: amount // number for class_, amount in group.resources.items()}
            groups += (replace(group, suffix=suffix, resources=amounts) for suffix in new_suffixes)
        else:
            groups.append(group)
    subtrees = tuple(
        suffixes - {condition.suffix} | {*new_suffixes} if condition.suffix in suffixes else suffixes
        for suffixes in query.same_subtrees
    )
    return replace(query, groups=tuple(groups), same_subtrees=subtrees)


# --- equal queries ---


def canonical(query: SearchQuery, provided: frozenset[str], relevant_suffixes: frozenset[str]) -> str:
    """Return a canonical form: equal for equivalent queries, whatever the suffixes of most groups.

    Names that no provider has have no effect if they are forbidden or are alternatives; nor do a subtree of one group
    and a policy for one group.

    Args:
        provided: The traits and aggregates of all providers.
        relevant_suffixes: The suffixes that matter if a subtree names them.
    """
    subtrees = [names for names in {*query.same_subtrees} if len(names) > 1]
    relevant_suffixes &= frozenset().union(*subtrees)
    contents = {group.suffix: _content(group, provided, relevant_suffixes) for group in query.groups}
    around = {
        suffix: sorted(sorted(contents[name] for name in names) for names in subtrees if suffix in names)
        for suffix in contents
    }
    isolate = query.isolate and sum(suffix != UNSUFFIXED for suffix in contents) > 1
    roots = _canonical_names(query.root_traits, provided)
    groups = sorted((contents[suffix], around[suffix]) for suffix in contents)
    return str((groups, isolate, roots, sorted(query.avoided), query.limit))


def _content(group: Group, provided: frozenset[str], relevant_suffixes: frozenset[str]) -> str:
    names = _canonical_names(group.traits, provided), _canonical_names(group.aggregates, provided)
    suffix = group.suffix if group.suffix in {UNSUFFIXED, *relevant_suffixes} else "any"
    return str((suffix, sorted(group.resources.items()), names, group.in_tree))


def _canonical_names(requirement: NameCondition, provided: frozenset[str]) -> object:
    sets = {names & provided or names for names in requirement.any_of}
    return sorted(sorted(names) for names in sets), sorted(requirement.none_of & provided)


def text_of_group(group: Group) -> str:
    """Return a group in the syntax of a query."""
    return "&".join(f"{name}={value}" for name, value in group_pairs(group))


def any_names(sets: AnyOf) -> frozenset[str]:
    """Return the union of some sets of names."""
    return frozenset().union(*sets)
