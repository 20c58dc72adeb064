"""A search query as a query string."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

from placement.search.query.query import Group, SearchQuery


def query_string(query: SearchQuery, name: Callable[[str], str] = str) -> str:
    """Return the query string of a search query, at the latest microversion.

    Args:
        name: Returns the name of a trait, or the uuid of an aggregate or a provider, in the service.
    """
    return urlencode(list(_pairs(query, name)))


def _pairs(query: SearchQuery, name: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for group in query.groups:
        yield from _group(group, name)
    if sum(bool(group.suffix) for group in query.groups) > 1 or query.isolate:
        yield "group_policy", "isolate" if query.isolate else "none"
    for suffixes in query.same_subtrees:
        yield "same_subtree", ",".join(sorted(suffixes))
    roots = sorted(name(trait) for (trait,) in query.root_traits.any_of)
    roots += [f"!{name(trait)}" for trait in sorted(query.root_traits.none_of)]
    if roots:
        yield "root_required", ",".join(roots)
    if query.limit is not None:
        yield "limit", str(query.limit)


def _group(group: Group, name: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    suffix = group.suffix
    if group.resources:
        yield f"resources{suffix}", ",".join(f"{class_}:{amount}" for class_, amount in group.resources.items())
    for any_of in group.traits.any_of:
        names = sorted(map(name, any_of))
        yield f"required{suffix}", names[0] if len(names) == 1 else "in:" + ",".join(names)
    if group.traits.none_of:
        yield f"required{suffix}", ",".join(f"!{name(trait)}" for trait in sorted(group.traits.none_of))
    for any_of in group.aggregates.any_of:
        yield f"member_of{suffix}", "in:" + ",".join(sorted(map(name, any_of)))
    if group.aggregates.none_of:
        yield f"member_of{suffix}", "!in:" + ",".join(sorted(map(name, group.aggregates.none_of)))
    if group.in_tree is not None:
        yield f"in_tree{suffix}", name(group.in_tree)
