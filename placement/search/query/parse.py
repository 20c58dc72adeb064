"""From the query of one version to what is asked for (contract 4.1 and 4.2).

The parameters have passed the schema; what is refused here, and in which order, is what the schema cannot say.  No name
is looked up: a class or a trait that nobody knows is found out where the names are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from placement import errors
from placement import microversion as mv
from placement.microversion import Version
from placement.search.query import filters
from placement.search.query.request import UNSUFFIXED, CandidateRequest, Group

_GROUP = re.compile(r"(resources|required|member_of|in_tree)(.*)", re.DOTALL)


class Parameters(Protocol):
    """The query: the value of a name that counts, all its values, and every pair as it was given."""

    def get(self, name: str) -> str | None: ...

    def all(self, name: str) -> list[str]: ...

    def items(self) -> Iterable[tuple[str, str]]: ...

    def __contains__(self, name: object) -> bool: ...


def parse(query: Parameters, version: Version) -> CandidateRequest:
    """What the query asks for; raises BadRequest."""
    root = filters.Traits()
    subtrees: tuple[frozenset[str], ...] = ()
    if "root_required" in query:
        root = filters.root_required(query.all("root_required"))
    if "same_subtree" in query:
        subtrees = filters.same_subtree(query.all("same_subtree"))
    groups = {group.suffix: group for group in _groups(query, version)}
    if version >= mv.SAME_SUBTREE:
        _check_subtrees(groups, subtrees)
    else:
        _check_resources(groups)
    if version >= mv.FORBIDDEN_TRAITS:
        filters.refuse_conflicts(
            {suffix: filters.Traits(group.required, group.forbidden) for suffix, group in groups.items()}
        )
    policy = query.get("group_policy")
    if policy is None and sum(suffix != UNSUFFIXED for suffix in groups) > 1:
        raise errors.NoGroupPolicy()
    limit = query.get("limit")
    return CandidateRequest(
        groups=tuple(groups.values()),
        isolate=policy == "isolate",
        same_subtrees=subtrees,
        root_required=frozenset().union(*root.required),
        root_forbidden=root.forbidden,
        nested=version >= mv.NESTED_CANDIDATES,
        limit=None if limit is None else filters.limit(limit),
    )


def _groups(query: Parameters, version: Version) -> Iterator[Group]:
    """The groups in the order in which they are first named."""
    resources: dict[str, dict[str, int]] = {}
    traits: dict[str, filters.Traits] = {}
    membership: dict[str, filters.Membership] = {}
    in_tree: dict[str, str | None] = {}
    suffixes: dict[str, None] = {}
    named: set[str] = set()
    # Of several mistakes the first one is told.
    for name, value in query.items():
        parameter = _GROUP.fullmatch(name)
        if parameter is None:
            continue
        suffix = parameter[2]
        suffixes[suffix] = None
        if parameter[1] == "resources":
            resources[suffix] = filters.resources(value)
            continue
        if name in named:
            # All of its values were looked at where it was named first.
            continue
        named.add(name)
        match parameter[1]:
            case "required":
                traits[suffix] = filters.traits(query.all(name), version)
            case "member_of":
                membership[suffix] = filters.membership(query.all(name), version, suffix)
            case "in_tree":
                in_tree[suffix] = filters.in_tree(query.all(name))
    for suffix in suffixes:
        asked, member = traits.get(suffix, filters.Traits()), membership.get(suffix, filters.Membership())
        yield Group(
            suffix=suffix,
            resources=resources.get(suffix, {}),
            required=asked.required,
            forbidden=asked.forbidden,
            member_of=member.member_of,
            not_member_of=member.forbidden,
            in_tree=in_tree.get(suffix),
        )


def _check_resources(groups: Mapping[str, Group]) -> None:
    """Before same_subtree every group has resources."""
    idle = [group for group in groups.values() if not group.resources]
    if traits := [f"required{group.suffix}" for group in idle if group.required]:
        raise errors.TraitsWithoutResources(keys=", ".join(sorted(traits)))
    if aggregates := [f"member_of{group.suffix}" for group in idle if group.member_of or group.not_member_of]:
        raise errors.MemberOfWithoutResources(keys=", ".join(sorted(aggregates)))
    if idle:
        raise errors.GroupWithoutResources()
    if not groups:
        raise errors.NoGroup()


def _check_subtrees(groups: Mapping[str, Group], subtrees: Iterable[frozenset[str]]) -> None:
    """A group without resources only has a meaning beside others, which must be there."""
    if not any(group.resources for group in groups.values()):
        raise errors.NoResources()
    named = frozenset().union(*subtrees)
    if idle := [suffix for suffix, group in groups.items() if not group.resources and suffix not in named]:
        raise errors.GroupOutsideSubtree(suffixes=sorted(idle))
    if unknown := named - groups.keys():
        raise errors.UnknownSuffixes(suffixes=sorted(unknown), groups=list(groups))
