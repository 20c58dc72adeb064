"""What the routes about searches have in common: the query, with its limits and its names."""

from __future__ import annotations

import dataclasses

from oslo_config import cfg

from placement import microversion as mv
from placement.conf.searches import check_demands
from placement.db.writes.transaction import Reading
from placement.extensions.v1 import lookup
from placement.extensions.v1.explain.mistakes import Names
from placement.extensions.v1.failures import ClassNamedTwice
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.objects.trait import Trait
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.existence import unknown_traits
from placement.search.query.query import SearchQuery
from placement.uuids import is_uuid

_IN_TREE, _RESOURCES = "in_tree", "resources"


def query_of(req: Request, snapshot: Snapshot) -> SearchQuery:
    """Return the query of a request, as ``parsed`` reads it and as a claim would search for it."""
    return avoiding(parsed(req.parameters, snapshot, req.conf), req.conf)


def avoiding(query: SearchQuery, conf: cfg.ConfigOpts) -> SearchQuery:
    """Return the query with the traits of ``[placement]avoid_traits``, but for those that it has rules about itself."""
    avoided = frozenset(conf.placement.avoid_traits) - query.root_traits.names
    return dataclasses.replace(query, avoided=avoided) if avoided else query


def parsed(parameters: Parameters, snapshot: Snapshot, conf: cfg.ConfigOpts) -> SearchQuery:
    """Return the query that parameters make, read as the newest version of /allocation_candidates reads it.

    ``in_tree`` takes names of providers, too, and a class is named once in a value of ``resources``.  Whether classes
    and traits exist is not checked.

    Raises:
        errors.BadRequest: For the first mistake in the query.
    """
    pairs = [
        (name, _uuid(snapshot, name, value) if name.startswith(_IN_TREE) else value)
        for name, value in parameters.items()
    ]
    query = parse.search_query(Parameters(pairs), mv.LATEST)
    for name, value in pairs:
        if name.startswith(_RESOURCES):
            _check_classes(name, value)
    check_demands(query, conf)
    return query


def _check_classes(parameter: str, value: str) -> None:
    """Raise ClassNamedTwice if a value names a class twice; Placement takes its last amount."""
    seen = set()
    for piece in value.split(","):
        name = piece.partition(":")[0]
        if name in seen:
            raise ClassNamedTwice(parameter=parameter, name=name)
        seen.add(name)


def _uuid(snapshot: Snapshot, parameter: str, ident: str) -> str:
    """Return the uuid of a provider; a uuid that no provider has is kept, as the search does."""
    if lookup.find(snapshot, ident) is None and is_uuid(ident.strip()):
        return ident
    return snapshot.provider(lookup.of_parameter(snapshot, parameter, ident)).uuid


def known_names(req: Request, query: SearchQuery, snapshot: Snapshot) -> Names:
    """Return the traits of the query that do not exist; all others are read only if there are such."""
    mentioned = query.root_traits.names.union(*(group.traits.names for group in query.groups))
    unknown = unknown_traits(mentioned, snapshot, req.database)
    if not unknown:
        return Names()

    def all_names(db: Reading) -> list[str]:
        return [trait.name for trait in Trait.all(db)]

    return Names(unknown, req.read(all_names))
