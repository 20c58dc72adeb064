"""Checks of a parsed query: its size, and the existence of its resource classes and traits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from oslo_config import cfg

from placement import errors
from placement.db.database import Database
from placement.index.snapshot import Snapshot
from placement.objects.trait import Trait
from placement.search.query.query import Group, ProviderFilter, SearchQuery

_TRAIT_PREFIX = 'Invalid trait(s) in "required" parameter: '


def check_demands(query: SearchQuery, conf: cfg.ConfigOpts) -> None:
    """Raise TooManyGroups if the query has more demands than the limit."""
    limit = conf.placement.max_request_groups
    if query.demand_count > limit:
        raise errors.TooManyGroups(count=query.demand_count, limit=limit)


def check(query: SearchQuery, snapshot: Snapshot, database: Database) -> None:
    """Check the names in a query: first the traits of the root, then the classes and traits of each group.

    Raises:
        errors.UnknownResourceClass: A class does not exist; the failure names the first one.
        errors.UnknownTraits: Traits of the root, or of a group, do not exist; the failure names all of them.
    """
    unknown = unknown_traits(query.trait_names, snapshot, database)
    _refuse(query.root_traits.names & unknown, "root_required")
    for group in query.groups:
        _check_classes(group, snapshot)
        _refuse(group.traits.names & unknown, f"required{group.suffix}")


def check_filter(provider_filter: ProviderFilter, snapshot: Snapshot, database: Database) -> None:
    """Check the names in a filter: first its classes, then its traits.

    Raises:
        errors.UnknownResourceClass: A class does not exist; the failure names the first one.
        errors.UnknownTraits: Traits do not exist; the failure names all of them.
    """
    _check_classes(provider_filter.group, snapshot)
    with errors.prefix_failures(_TRAIT_PREFIX):
        _refuse(unknown_traits(provider_filter.group.traits.names, snapshot, database), "required")


def unknown_traits(names: Iterable[str], snapshot: Snapshot, database: Database) -> frozenset[str]:
    """Return the traits that do not exist.

    The snapshot contains the traits of providers; other traits are looked up in the database.
    """
    unused = [name for name in names if name not in snapshot.traits]
    return database.read(lambda db: Trait.unknown_names(db, unused)) if unused else frozenset()


def _check_classes(group: Group, snapshot: Snapshot) -> None:
    for name in group.resources:
        if name not in snapshot.class_ids:
            raise errors.UnknownClassInQuery(parameter=f"resources{group.suffix}", name=name)


def _refuse(unknown: Collection[str], parameter: str) -> None:
    if unknown:
        raise errors.UnknownTraitsInQuery(parameter=parameter, names=", ".join(sorted(unknown)))
