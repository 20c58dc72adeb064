"""Search queries read from requests, with provider names resolved and limits checked."""

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
    """Return the query in the parameters of a request, with the traits that a claim would avoid."""
    nodes = lookup.nodes_named(snapshot, req.database, in_tree_values(req.parameters.items()))
    return with_avoided_traits(from_parameters(req.parameters, snapshot, nodes, req.conf), req.conf)


def with_avoided_traits(query: SearchQuery, conf: cfg.ConfigOpts) -> SearchQuery:
    """Return the query with the traits in ``[placement]avoid_traits``, except traits that it names in root_required."""
    avoided = frozenset(conf.placement.avoid_traits) - query.root_traits.names
    return dataclasses.replace(query, avoided=avoided) if avoided else query


def in_tree_values(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the values of the ``in_tree`` parameters of a query."""
    return (value for name, value in pairs if name.startswith(_IN_TREE))


def in_tree_values_of_document(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values of ``in_tree`` in a query object of POST /v1/claims."""
    return (group[_IN_TREE] for group in document["groups"].values() if _IN_TREE in group)


def from_parameters(
    parameters: Parameters, snapshot: Snapshot, nodes: Mapping[str, str], conf: cfg.ConfigOpts
) -> SearchQuery:
    """Return the query in parameters, parsed like GET /allocation_candidates at its newest version.

    Unlike there, ``in_tree`` accepts names of providers and nodes, and a value of ``resources`` must not name a class
    twice.  The existence of classes and traits is not checked.

    Args:
        nodes: The uuids of nodes, by the names in ``in_tree``.

    Raises:
        BadRequest: The query is invalid; the error describes the first mistake.
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
    """Return the query in a valid query object of POST /v1/claims; see ``from_parameters``.

    Each string in ``required`` and ``member_of``, each list in ``same_subtree``, and the list ``root_required``
    correspond to one value of the parameter in a query string.
    """
    nonempty_groups = {suffix: group for suffix, group in document["groups"].items() if any(group.values())}
    trees = {
        suffix: _uuid(snapshot, nodes, f"{_IN_TREE}{suffix}", group[_IN_TREE])
        for suffix, group in nonempty_groups.items()
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
        for suffix, group in nonempty_groups.items()
    }
    policy = document.get("group_policy")
    query = parse.query_of(groups, mv.LATEST, policy=policy, same_subtrees=same_subtrees, root_traits=root_traits)
    check_demands(query, conf)
    return query


def _check_classes(parameter: str, value: str) -> None:
    """Raise InvalidField if a value names a class twice; GET /allocation_candidates uses the last amount."""
    seen = set()
    for piece in value.split(","):
        name = piece.partition(":")[0]
        if name in seen:
            raise InvalidField(Violation(parameter, f'names "{name}" twice', "each class once, for example VCPU:2"))
        seen.add(name)


def _uuid(snapshot: Snapshot, nodes: Mapping[str, str], parameter: str, ident: str) -> str:
    """Return the uuid of a provider; an unknown uuid is returned, and the search finds no tree for it."""
    slot = lookup.find(snapshot, nodes.get(ident, ident))
    if slot is not None:
        return snapshot.provider(slot).uuid
    if is_uuid(ident.strip()):
        return ident
    raise UnknownProvider(parameter=parameter, provider=ident)
