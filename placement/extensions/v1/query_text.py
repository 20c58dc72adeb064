"""Search queries written as query strings: the inverse of ``parse``, at the newest version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from placement.search.query.query import UNSUFFIXED, AnyOf, Group, NameCondition, SearchQuery

#: A parameter: its name and its value.
Pair = tuple[str, str]


def query_string(query: SearchQuery) -> str:
    """Return the query string, with ``:``, ``,`` and ``!`` unquoted."""
    return text(pairs(query))


def text(parameters: Iterable[Pair]) -> str:
    """Return parameters as a query string."""
    return urlencode(list(parameters), safe=":,!")


def pairs(query: SearchQuery) -> Iterator[Pair]:
    """Yield the parameters of a query in a fixed order: groups, group_policy, same_subtree, root_required, limit."""
    for group in query.groups:
        yield from group_pairs(group)
    if query.isolate or sum(group.suffix != UNSUFFIXED for group in query.groups) > 1:
        yield "group_policy", "isolate" if query.isolate else "none"
    for suffixes in query.same_subtrees:
        yield same_subtree(suffixes)
    if query.root_traits != NameCondition():
        yield root_required(query.root_traits.any_of, query.root_traits.none_of)
    if query.limit is not None:
        yield "limit", str(query.limit)


def group_pairs(group: Group) -> Iterator[Pair]:
    """Yield the parameters of one group."""
    if group.resources:
        yield resources(group.suffix, group.resources.items())
    yield from trait_parameters(group.suffix, group.traits.any_of, group.traits.none_of)
    yield from member_of(group.suffix, group.aggregates.any_of, group.aggregates.none_of)
    if group.in_tree is not None:
        yield in_tree(group.suffix, group.in_tree)


def resources(suffix: str, amounts: Iterable[tuple[str, int]]) -> Pair:
    """Return the parameter that requests amounts."""
    return f"resources{suffix}", ",".join(f"{name}:{amount}" for name, amount in amounts)


def trait_parameters(suffix: str, any_of: AnyOf, none_of: Iterable[str]) -> Iterator[Pair]:
    """Yield the parameters that require and forbid traits: one for single traits, one for each set of alternatives."""
    if single := _single_traits((names for names in any_of if len(names) == 1), none_of):
        yield f"required{suffix}", ",".join(single)
    for names in any_of:
        if len(names) > 1:
            yield f"required{suffix}", "in:" + ",".join(sorted(names))


def root_required(any_of: AnyOf, none_of: Iterable[str]) -> Pair:
    """Return the parameter that requires and forbids traits of the root."""
    return "root_required", ",".join(_single_traits(any_of, none_of))


def _single_traits(any_of: Iterable[frozenset[str]], none_of: Iterable[str]) -> list[str]:
    return [*(name for names in any_of for name in names), *(f"!{name}" for name in sorted(none_of))]


def member_of(suffix: str, any_of: AnyOf, none_of: Iterable[str]) -> Iterator[Pair]:
    """Yield the parameters that require and forbid aggregates."""
    for names in any_of:
        yield f"member_of{suffix}", _value_of_names(names)
    if forbidden := frozenset(none_of):
        yield f"member_of{suffix}", "!" + _value_of_names(forbidden)


def _value_of_names(names: frozenset[str]) -> str:
    return ("in:" if len(names) > 1 else "") + ",".join(sorted(names))


def in_tree(suffix: str, uuid: str) -> Pair:
    """Return the parameter that restricts a group to one tree."""
    return f"in_tree{suffix}", uuid


def same_subtree(suffixes: Iterable[str]) -> Pair:
    """Return the parameter that restricts groups to one subtree."""
    return "same_subtree", ",".join(sorted(suffixes))
