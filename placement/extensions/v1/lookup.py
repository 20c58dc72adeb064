"""Lookup of the providers (docs: v1-names), resource classes and traits that a request names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from placement import errors
from placement.db.database import Database
from placement.extensions.v1 import nodes
from placement.extensions.v1.failures import NoSuchProvider, UnknownProvider
from placement.index.snapshot import Snapshot
from placement.search.query import existence
from placement.uuids import canonical, is_uuid


def find(snapshot: Snapshot, ident: str) -> int | None:
    """Return the slot of the provider with exactly this uuid, exactly this name, or this uuid in another spelling.

    The first match in this order wins, so a provider whose name is the uuid of another provider is found only by its
    own uuid.

    Returns:
        None if no provider matches.
    """
    slot = snapshot.by_uuid.get(ident)
    if slot is None:
        slot = snapshot.by_name.get(ident)
    return snapshot.by_uuid.get(canonical(ident) or ident) if slot is None else slot


def provider_or_node(snapshot: Snapshot, database: Database, ident: str) -> int | None:
    """Return the slot of the provider that ``find`` returns, or else of the node with this name."""
    return find(snapshot, nodes_named(snapshot, database, [ident]).get(ident, ident))


def nodes_named(snapshot: Snapshot, database: Database, idents: Iterable[str]) -> Mapping[str, str]:
    """Return the uuids of nodes, by name, for the names that match no provider.

    Args:
        database: The database of the nodes, read once if such names occur.
        idents: Uuids and names.
    """
    unknown = [ident for ident in {*idents} if find(snapshot, ident) is None and not is_uuid(ident.strip())]
    return database.read(nodes.uuids_by_name, unknown) if unknown and nodes.tables() else {}


def provider_in_path(snapshot: Snapshot, database: Database, ident: str) -> int:
    """Return the slot of the provider that a path names.

    Raises:
        NoSuchProvider: The provider or node does not exist (404).
    """
    slot = provider_or_node(snapshot, database, ident)
    if slot is None:
        raise NoSuchProvider(provider=ident)
    return slot


def provider_in_parameter(snapshot: Snapshot, database: Database, parameter: str, ident: str) -> int:
    """Return the slot of the provider that a query parameter names.

    Raises:
        UnknownProvider: The provider or node does not exist (400).
    """
    slot = provider_or_node(snapshot, database, ident)
    if slot is None:
        raise UnknownProvider(parameter=parameter, provider=ident)
    return slot


def require_class(snapshot: Snapshot, name: str | None) -> str | None:
    """Return the value of the parameter ``class``; None if the parameter is absent.

    Raises:
        UnknownClassInQuery: The class does not exist.
    """
    if name is not None and name not in snapshot.class_ids:
        raise errors.UnknownClassInQuery(parameter="class", name=name)
    return name


def require_trait(snapshot: Snapshot, database: Database, name: str | None) -> str | None:
    """Return the value of the parameter ``trait``; None if the parameter is absent.

    Raises:
        UnknownTraitsInQuery: The trait does not exist.
    """
    if name is not None and existence.unknown_traits([name], snapshot, database):
        raise errors.UnknownTraitsInQuery(parameter="trait", names=name)
    return name
