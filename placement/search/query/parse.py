"""From the query string of one version to a parsed query (docs: api-candidate-parameters, api-candidate-checks).

The parameters conform to the schema of their version.  What is refused here, and in which order, is what a schema
cannot express.  No name is looked up here: ``existence`` refuses classes and traits that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from placement import errors
from placement import microversion as mv
from placement.microversion import Version
from placement.search.query import terms
from placement.search.query.query import UNSUFFIXED, Group, NameCondition, ProviderFilter, SearchQuery

_GROUP = re.compile(r"(resources|required|member_of|in_tree)(.*)", re.DOTALL)


class QueryParameters(Protocol):
    """The parameters of a query string."""

    def get(self, name: str) -> str | None:
        """Return the value that counts, where a parameter may be given once only."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Return every name with its value, in the order of the query string."""


def search_query(parameters: QueryParameters, version: Version) -> SearchQuery:
    """Return the query of GET /allocation_candidates.

    Raises:
        errors.BadRequest: For the first parameter, or combination of parameters, that is wrong.
    """
    values = _values(parameters)
    root_traits = terms.root_traits(values.get("root_required", ()))
    subtrees = terms.same_subtrees(values.get("same_subtree", ()))
    groups = _groups(parameters, values, version)
    if version >= mv.SAME_SUBTREE:
        _check_subtrees(groups, subtrees)
    else:
        _check_resources(groups)
    if version >= mv.FORBIDDEN_TRAITS:
        terms.check_conflicts({suffix: group.traits for suffix, group in groups.items()})
    policy = parameters.get("group_policy")
    if policy is None and sum(suffix != UNSUFFIXED for suffix in groups) > 1:
        raise errors.NoGroupPolicy()
    limit = parameters.get("limit")
    return SearchQuery(
        groups=tuple(groups.values()),
        isolate=policy == "isolate",
        same_subtrees=subtrees,
        root_traits=root_traits,
        nested=version >= mv.NESTED_CANDIDATES,
        limit=None if limit is None else terms.limit(limit),
    )


def provider_filter(parameters: QueryParameters, version: Version) -> ProviderFilter:
    """Return the filter of GET /resource_providers (docs: api-filters).

    Raises:
        errors.BadRequest: For the first parameter that is wrong.
    """
    values = _values(parameters)
    traits = terms.traits(values.get("required", ()), version)
    aggregates = terms.aggregates(values.get("member_of", ()), version)
    resources = parameters.get("resources")
    group = Group(
        resources={} if resources is None else terms.resources(resources),
        traits=traits,
        aggregates=aggregates,
        in_tree=parameters.get("in_tree"),
    )
    return ProviderFilter(parameters.get("name") or None, parameters.get("uuid"), group)


def _values(parameters: QueryParameters) -> dict[str, list[str]]:
    """Return all values of each name."""
    values: dict[str, list[str]] = {}
    for name, value in parameters.items():
        values.setdefault(name, []).append(value)
    return values


def _groups(parameters: QueryParameters, values: Mapping[str, list[str]], version: Version) -> dict[str, Group]:
    """Return the groups by suffix, in the order in which the query string names them first.

    The first mistake in the query string is the one that is reported.
    """
    resources: dict[str, dict[str, int]] = {}
    traits: dict[str, NameCondition] = {}
    aggregates: dict[str, NameCondition] = {}
    in_tree: dict[str, str | None] = {}
    suffixes: dict[str, None] = {}
    parsed: set[str] = set()
    for name, value in parameters.items():
        parameter = _GROUP.fullmatch(name)
        if parameter is None:
            continue
        suffix = parameter[2]
        suffixes[suffix] = None
        if parameter[1] == "resources":
            resources[suffix] = terms.resources(value)
            continue
        if name in parsed:
            # All values were parsed where the name came first.
            continue
        parsed.add(name)
        match parameter[1]:
            case "required":
                traits[suffix] = terms.traits(values[name], version)
            case "member_of":
                aggregates[suffix] = terms.aggregates(values[name], version, suffix)
            case "in_tree":
                in_tree[suffix] = terms.in_tree(values[name])
    anything = NameCondition()
    return {
        suffix: Group(
            suffix=suffix,
            resources=resources.get(suffix, {}),
            traits=traits.get(suffix, anything),
            aggregates=aggregates.get(suffix, anything),
            in_tree=in_tree.get(suffix),
        )
        for suffix in suffixes
    }


def _check_resources(groups: Mapping[str, Group]) -> None:
    """Check that every group has resources, as versions before same_subtree require."""
    idle = [group for group in groups.values() if not group.resources]
    if traits := [f"required{group.suffix}" for group in idle if group.traits.any_of]:
        raise errors.TraitsWithoutResources(keys=", ".join(sorted(traits)))
    if aggregates := [f"member_of{group.suffix}" for group in idle if group.aggregates.names]:
        raise errors.MemberOfWithoutResources(keys=", ".join(sorted(aggregates)))
    if idle:
        raise errors.GroupWithoutResources()
    if not groups:
        raise errors.NoGroup()


def _check_subtrees(groups: Mapping[str, Group], subtrees: Iterable[frozenset[str]]) -> None:
    """Check that groups without resources are in a subtree, and that the groups of the subtrees exist."""
    if not any(group.resources for group in groups.values()):
        raise errors.NoResources()
    named = frozenset().union(*subtrees)
    if idle := [suffix for suffix, group in groups.items() if not group.resources and suffix not in named]:
        raise errors.GroupOutsideSubtree(suffixes=sorted(idle))
    if unknown := named - groups.keys():
        raise errors.UnknownSuffixes(suffixes=sorted(unknown), groups=list(groups))
