"""Names of the objects that extensions represent by providers, such as bare metal nodes (docs: v1-names).

The provider of a node has the uuid of the node, and often this uuid as its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import batches
from placement.db.database import Database
from placement.db.schema.tables import metadata
from placement.db.writes.transaction import Reading
from placement.index.snapshot import Snapshot

#: Members of documents that contain sentences.
_SENTENCES = ("summary", "text", "detail")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def tables() -> list[sa.Table]:
    """Return the tables of such objects; each contains the columns ``uuid`` and ``name``."""
    return [table for table in metadata.tables.values() if "objects" in table.info]


def uuids_by_name(db: Reading, names: Sequence[str]) -> Mapping[str, str]:
    """Return the uuids of nodes by name."""
    return {row.name: row.uuid for row in _rows(db, "name", names)}


def names_by_uuid(db: Reading, uuids: Sequence[str] | None = None) -> Mapping[str, str]:
    """Return the names of nodes by uuid.

    Args:
        db: The connection.
        uuids: The nodes to look up; None for all.
    """
    return {row.uuid: row.name for row in _rows(db, "uuid", uuids)}


def _rows(db: Reading, column: str, values: Sequence[str] | None) -> Iterator[Any]:
    """Yield the uuid and name of each named node whose column contains one of the values; None for any value."""
    for table in tables():
        query = sa.select(table.c.uuid, table.c.name).where(table.c.name.is_not(None))
        if values is None:
            yield from db.execute(query)
        else:
            query = query.where(table.c[column].in_(sa.bindparam("values", expanding=True)))
            yield from batches.rows(db, query, "values", values)


def names_of_providers(database: Database, providers: Iterable[tuple[str, str | None]]) -> Mapping[str, str]:
    """Return the names of the nodes that providers represent, by uuid.

    Args:
        database: The database, read only if one of the providers may be a node.
        providers: Pairs of uuid and name.

    Raises:
        DatabaseUnavailable, DatabaseBusy: The names cannot be read.
    """
    nameless = {uuid for uuid, name in providers if name in (None, uuid)}
    return database.read(names_by_uuid, [*nameless]) if nameless and tables() else {}


def add_names(database: Database, documents: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add the name of the node, as ``node``, to documents of providers that represent one.

    Args:
        database: As for ``names_of_providers``.
        documents: Pairs of a provider uuid and an object with its ``name``.
    """
    pairs = [*documents]
    insert_names(pairs, names_of_providers(database, ((uuid, document["name"]) for uuid, document in pairs)))


def insert_names(documents: Iterable[tuple[str, dict[str, Any]]], node_names: Mapping[str, str]) -> None:
    """Insert ``node`` after ``name`` in documents whose uuid has a known node name."""
    for uuid, document in documents:
        if uuid in node_names:
            members = {member: document.pop(member) for member in [*document] if member not in ("uuid", "name")}
            document |= {"node": node_names[uuid], **members}


def unambiguous_names(node_names: Mapping[str, str], snapshot: Snapshot) -> Mapping[str, str]:
    """Return the node names, by uuid, except names of providers: a name of both refers to the provider."""
    return {uuid: name for uuid, name in node_names.items() if name not in snapshot.by_name}


def name_in_texts(database: Database, snapshot: Snapshot, document: Any) -> None:
    """Replace the uuids of nodes by their unambiguous names in the sentences of a document.

    Args:
        database: As for ``names_of_providers``.
        snapshot: The names of providers.
        document: The document, which is changed in place.
    """
    objects = _objects(document)
    sentences = [
        (container, name) for container in objects for name in _SENTENCES if isinstance(container.get(name), str)
    ]
    uuids = {uuid for container, name in sentences for uuid in _UUID.findall(container[name])}
    named = [snapshot.provider(slot) for slot in map(snapshot.by_uuid.get, uuids) if slot is not None]
    node_names = unambiguous_names(
        names_of_providers(database, ((provider.uuid, provider.name) for provider in named)), snapshot
    )
    for container, name in sentences if node_names else ():
        container[name] = _UUID.sub(lambda match: node_names.get(match[0], match[0]), container[name])


def providers_in(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs of a uuid and an object: the objects in a document that contain a ``uuid`` and a ``name``."""
    return (
        (provider["uuid"], provider) for provider in _objects(document) if "uuid" in provider and "name" in provider
    )


def providers_of_allocations(documents: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs of a provider uuid and an object: the allocations by provider in documents with ``allocations``."""
    for document in documents:
        yield from document.get("allocations", {}).items()


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a document, outer objects first."""
    if isinstance(document, dict):
        yield document
        document = [*document.values()]
    if isinstance(document, list):
        for value in document:
            yield from _objects(value)
