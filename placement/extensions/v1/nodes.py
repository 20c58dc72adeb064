"""The objects of extensions that stand for a provider, such as bare metal nodes, and their names (docs: v1-names).

The provider of a node has the node's uuid, and often no other name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import metadata
from placement.db.writes.transaction import Reading

#: How many uuids one statement names.
_AT_ONCE = 1000


def tables() -> list[sa.Table]:
    """Return the tables of such objects; each has the columns ``uuid`` and ``name``."""
    return [table for table in metadata.sorted_tables if "objects" in table.info]


def named(db: Reading, name: str) -> str | None:
    """Return the uuid of the node with a name; None if there is none."""
    for table in tables():
        uuid: str | None = db.execute(sa.select(table.c.uuid).where(table.c.name == name)).scalar()
        if uuid is not None:
            return uuid
    return None


def names(db: Reading, uuids: Sequence[str] | None = None) -> Mapping[str, str]:
    """Return the names of nodes by their uuids.

    Args:
        db: The connection.
        uuids: The only ones that are looked for; None for all.
    """
    found = {}
    for table in tables():
        query = sa.select(table.c.uuid, table.c.name).where(table.c.name.is_not(None))
        parts = [query]
        if uuids is not None:
            starts = range(0, len(uuids), _AT_ONCE)
            parts = [query.where(table.c.uuid.in_(uuids[start : start + _AT_ONCE])) for start in starts]
        found.update({row.uuid: row.name for part in parts for row in db.execute(part)})
    return found


def among(database: Database, providers: Iterable[tuple[str, str | None]]) -> Mapping[str, str]:
    """Return the names of the nodes among providers, by uuid.

    Args:
        database: Read only if one of the providers may be a node.  Raises DatabaseUnavailable or DatabaseBusy.
        providers: Uuids with names.
    """
    nameless = {uuid for uuid, name in providers if name in (None, uuid)}
    return database.read(names, [*nameless]) if nameless and tables() else {}


def add(database: Database, documents: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add ``node``, its name, to the documents of providers that are nodes.

    Args:
        database: As for ``among``.
        documents: Each with a ``name``, after the uuid of its provider.
    """
    shown = [*documents]
    found = among(database, ((uuid, document["name"]) for uuid, document in shown))
    for uuid, document in shown:
        if uuid in found:
            document["node"] = found[uuid]


def providers_in(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a document that have the ``uuid`` and ``name`` of a provider, after that uuid."""
    if isinstance(document, dict):
        if "uuid" in document and "name" in document:
            yield document["uuid"], document
        document = document.values()
    elif not isinstance(document, list):
        return
    for value in document:
        yield from providers_in(value)


def providers_of_allocations(documents: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is held of each provider in documents that may have ``allocations``, after its uuid."""
    for document in documents:
        yield from document.get("allocations", {}).items()
