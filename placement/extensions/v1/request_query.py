"""What the routes about searches have in common: the query, with its limits and its names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from placement import microversion as mv
from placement.errors import Violation
from placement.extensions.v1 import lookup
from placement.extensions.v1.failures import InvalidField, UnknownProvider
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.schemas.document import Parameters
from placement.search.query import parse
from placement.search.query.existence import check_demands
from placement.search.query.query import Group, SearchQuery
from placement.uuids import is_uuid

_IN_TREE, _RESOURCES = "in_tree", "resources"


def from_request(req: Request, snapshot: Snapshot) -> SearchQuery:
    """Return the query of a request, as ``from_parameters`` reads it and as a claim would search for it."""
    nodes = lookup.nodes_named(snapshot, req.database, in_tree_values(req.parameters.items()))
    return with_avoided_traits(from_parameters(req.parameters, snapshot, nodes, req.conf), req.conf)


def with_avoided_traits(query: SearchQuery, conf: cfg.ConfigOpts) -> SearchQuery:
    """Return the query with the traits of ``[placement]avoid_traits``, but for those that it has rules about itself."""
    avoided = frozenset(conf.placement.avoid_traits) - query.root_traits.names
    return dataclasses.replace(query, avoided=avoided) if avoided else query


def in_tree_values(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the values of the parameters ``in_tree`` of a query."""
    return (value for name, value in pairs if name.startswith(_IN_TREE))


def in_tree_values_of_document(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of ``in_tree`` in an object of POST /v1/claims."""
    return (group[_IN_TREE] for group in document["groups"].values() if _IN_TREE in group)


def from_parameters(
    parameters: Parameters, snapshot: Snapshot, nodes: Mapping[str, str], conf: cfg.ConfigOpts
) -> SearchQuery:
    """Return the query that parameters make, read as the newest version of /allocation_candidates reads it.

    ``in_tree`` takes names of providers and nodes, too, and a class is named once in a value of ``resources``.  Whether
    classes and traits exist is not checked.

    Args:
        nodes: The uuids of nodes, by the names that ``in_tree`` has.

    Raises:
        errors.BadRequest: For the first mistake in the query.
    """
    pairs = [
        (name, _uuid(snapshot, nodes, name, value) if name.startswith(_IN_TREE) else value)
        for name, value in parameters.items()
    ]
    query = parse.search_query(Parameters(pairs), mv.LATEST)
    for name, value in pairs:
        if name.startswith(_RESOURCES):
            _check_classes(name, value)
    check_demands(query, conf)
    return query


def from_document(
    document: Mapping[str, Any], snapshot: Snapshot, nodes: Mapping[str, str], conf: cfg.ConfigOpts
) -> SearchQuery:
    """Return the query that an object of POST /v1/claims is, which conforms to its schema.

    Each string of ``required`` and ``member_of`` is what one value of the parameter is in a query string; so is each
    list of ``same_subtree``, and that of ``root_required``.
    """
    described = {suffix: group for suffix, group in document["groups"].items() if any(group.values())}
    trees = {
        suffix: _uuid(snapshot, nodes, f"{_IN_TREE}{suffix}", group[_IN_TREE])
        for suffix, group in described.items()
        if _IN_TREE in group
    }
    root = document.get("root_required")
    root_traits = parse.root_traits([",".join(root)] if root else [])
    same_subtrees = parse.same_subtrees(map(",".join, document.get("same_subtree", ())))
    groups = {
        suffix: Group(
            suffix,
            {name: min(int(amount), parse.TOO_MUCH) for name, amount in group.get(_RESOURCES, {}).items()},
            parse.traits(group.get("required", ()), mv.LATEST, f"required{suffix}"),
            parse.aggregates(group.get("member_of", ()), mv.LATEST, suffix),
            parse.in_tree([trees[suffix]] if suffix in trees else ()),
        )
        for suffix, group in described.items()
    }
    policy = document.get("group_policy")
    query = parse.query_of(groups, mv.LATEST, policy=policy, same_subtrees=same_subtrees, root_traits=root_traits)
    check_demands(query, conf)
    return query


def _check_classes(parameter: str, value: str) -> None:
    """Raise InvalidField if a value names a class twice; Placement takes its last amount."""
    seen = set()
    for piece in value.split(","):
        name = piece.partition(":")[0]
        if name in seen:
            raise InvalidField(Violation(parameter, f'names "{name}" twice', "each class once, for example VCPU:2"))
        seen.add(name)


def _uuid(snapshot: Snapshot, nodes: Mapping[str, str], parameter: str, ident: str) -> str:
    """Return the uuid of a provider; a uuid that no provider has is kept, as the search does."""
    slot = lookup.find(snapshot, nodes.get(ident, ident))
    if slot is not None:
        return snapshot.provider(slot).uuid
    if is_uuid(ident.strip()):
        return ident
    raise UnknownProvider(parameter=parameter, provider=ident)
