"""Queries: query strings of ``GET /allocation_candidates``, or equivalent dictionaries."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict


class Group(TypedDict, total=False):
    """The requirements of one group.

    Attributes:
        resources: Amounts by resource class.
        required: Values of the parameter for traits, such as ``"HW_CPU_X86_AVX2,!CUSTOM_OLD"`` or ``"in:A,B"``.
        member_of: Values of the parameter for aggregates.
        in_tree: A provider of the tree, by uuid, or by name in queries to the v1 API.
    """

    resources: Mapping[str, int]
    required: Sequence[str]
    member_of: Sequence[str]
    in_tree: str


class Query(TypedDict, total=False):
    """A query for allocation candidates.

    Attributes:
        groups: Groups by suffix; ``""`` is the unsuffixed group, which several providers of a tree can serve together.
        group_policy: ``"isolate"`` if suffixed groups must have different providers, else ``"none"``.
        same_subtree: Lists of suffixes; the provider of one group must be the same as, or an ancestor of, the provider
            of every other group.
        root_required: Traits required of the root provider.
    """

    groups: Mapping[str, Group]
    group_policy: str
    same_subtree: Sequence[Sequence[str]]
    root_required: Sequence[str]


def query_string(query: str | Query, parameters: Iterable[tuple[str, object]] = ()) -> str:
    """Return the query string with additional parameters; parameters with the value None are left out."""
    added = urllib.parse.urlencode([(name, value) for name, value in parameters if value is not None])
    text = query if isinstance(query, str) else urllib.parse.urlencode(_pairs(query))
    return "&".join(filter(None, (text, added)))


def _pairs(query: Query) -> list[tuple[str, str]]:
    pairs = []
    for suffix, group in query.get("groups", {}).items():
        if resources := group.get("resources"):
            pairs.append((f"resources{suffix}", ",".join(f"{name}:{amount}" for name, amount in resources.items())))
        pairs += [(f"required{suffix}", value) for value in group.get("required", ())]
        pairs += [(f"member_of{suffix}", value) for value in group.get("member_of", ())]
        if "in_tree" in group:
            pairs.append((f"in_tree{suffix}", group["in_tree"]))
    if "group_policy" in query:
        pairs.append(("group_policy", query["group_policy"]))
    pairs += [("same_subtree", ",".join(suffixes)) for suffixes in query.get("same_subtree", ())]
    pairs += [("root_required", value) for value in query.get("root_required", ())]
    return pairs
