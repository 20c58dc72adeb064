"""Parsed queries: frozen values without text, versions or database ids.

``SearchQuery`` is a query for allocation candidates, with any number of groups.  ``ProviderFilter`` is a query for a
list of providers, with one group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

#: The suffix of the only group whose resources may come from several providers.
UNSUFFIXED = ""

#: A condition on names in conjunctive normal form: at least one name of each set, for example (A or B) and (C).
AnyOf = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class NameCondition:
    """A condition on the traits, or the aggregates, of a provider.

    Attributes:
        any_of: Sets of names; one name of each set is required.
        none_of: Forbidden names.  Aggregates are named by uuid, as the client spells it.
    """

    any_of: AnyOf = ()
    none_of: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All required and forbidden names."""
        return self.none_of.union(*self.any_of)

    @property
    def sorted_names(self) -> tuple[list[list[str]], list[str]]:
        """``any_of`` and ``none_of``, sorted by name."""
        return sorted(sorted(names) for names in self.any_of), sorted(self.none_of)

    @property
    def conflicts(self) -> AnyOf:
        """The sets in ``any_of`` that no provider can meet, because all their names are in ``none_of``."""
        return tuple(names for names in self.any_of if names <= self.none_of)


@dataclass(frozen=True, slots=True)
class Group:
    """A request group: resources, and rules for the providers that supply them.

    One provider supplies all resources of a suffixed group and meets every rule by itself.  Different providers may
    supply the classes of the unsuffixed group; together they meet ``traits.any_of``, and the root of the tree may meet
    ``aggregates.any_of`` for them.  A group without resources represents a provider in
    ``SearchQuery.same_subtrees``.
    """

    suffix: str = UNSUFFIXED
    resources: Mapping[str, int] = field(default_factory=dict)
    traits: NameCondition = NameCondition()
    aggregates: NameCondition = NameCondition()
    #: The uuid of a provider in the only tree that may serve the group.
    in_tree: str | None = None


@dataclass(frozen=True)
class SearchQuery:
    """A query for allocation candidates."""

    groups: tuple[Group, ...]
    #: Whether different providers must serve the suffixed groups.
    isolate: bool = False
    #: Sets of suffixes: one provider of these groups must be the same as, or an ancestor of, each other provider.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: The condition on the root of the tree, not on the roots of sharing providers.
    root_traits: NameCondition = NameCondition()
    #: Other traits that the root of the tree must not have, added by the service and not by the client.
    avoided: frozenset[str] = frozenset()
    #: Whether a candidate may use several providers of one tree.
    nested: bool = True
    #: Maximum number of candidates; None for all.
    limit: int | None = None

    @property
    def resource_classes(self) -> frozenset[str]:
        """The resource classes of all groups."""
        return frozenset(name for group in self.groups for name in group.resources)

    @property
    def trait_names(self) -> frozenset[str]:
        """All required and forbidden traits of the query, without ``avoided``."""
        names = self.root_traits.names
        for group in self.groups:
            names |= group.traits.names
        return names

    @cached_property
    def canonical(self) -> str:
        """A canonical text without the limit, which is equal for equivalent queries in any spelling.

        Its format must not change, because the database contains digests of it (``ClaimRequest.content``).
        """
        groups = [
            [
                *(group.suffix, sorted(group.resources.items())),
                *(group.traits.sorted_names, group.aggregates.sorted_names, group.in_tree),
            ]
            for group in sorted(self.groups, key=attrgetter("suffix"))
        ]
        subtrees = sorted(sorted(suffixes) for suffixes in self.same_subtrees)
        return json.dumps([groups, self.isolate, subtrees, self.root_traits.sorted_names])

    @property
    def demand_count(self) -> int:
        """The number of demands: one for a suffixed group, one for each class of the unsuffixed group."""
        return sum(len(group.resources) if group.suffix == UNSUFFIXED else 1 for group in self.groups)


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """A provider filter: conditions on single providers; None means no condition."""

    name: str | None = None
    uuid: str | None = None
    #: The group that the provider must be able to serve by itself; the suffix is ignored.
    group: Group = field(default_factory=Group)
