"""The objects of extensions for which a provider stands, such as bare metal nodes, and their names (docs: v1-names).

The provider of a node has the node's uuid, and often that uuid as its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import metadata
from placement.db.writes.transaction import Reading
from placement.index.snapshot import Snapshot

#: How many uuids one statement names.
_AT_ONCE = 1000
#: Members of documents that are sentences.
_SENTENCES = ("summary", "text", "detail")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def tables() -> list[sa.Table]:
    """Return the tables of such objects; each has the columns ``uuid`` and ``name``."""
    return [table for table in metadata.tables.values() if "objects" in table.info]


def uuids_by_name(db: Reading, names: Sequence[str]) -> Mapping[str, str]:
    """Return the uuids of the nodes with these names, by name."""
    return {row.name: row.uuid for row in _rows(db, "name", names)}


def names_by_uuid(db: Reading, uuids: Sequence[str] | None = None) -> Mapping[str, str]:
    """Return the names of nodes by their uuids.

    Args:
        db: The connection.
        uuids: The only ones that are looked for; None for all.
    """
    return {row.uuid: row.name for row in _rows(db, "uuid", uuids)}


def _rows(db: Reading, column: str, values: Sequence[str] | None) -> Iterator[Any]:
    """Yield the uuid and the name of each node that has a name, and one of the values, if given, in a column."""
    for table in tables():
        query = sa.select(table.c.uuid, table.c.name).where(table.c.name.is_not(None))
        if values is None:
            yield from db.execute(query)
        else:
            for start in range(0, len(values), _AT_ONCE):
                yield from db.execute(query.where(table.c[column].in_(values[start : start + _AT_ONCE])))


def names_of_providers(database: Database, providers: Iterable[tuple[str, str | None]]) -> Mapping[str, str]:
    """Return the names of the nodes among providers, by uuid.

    Args:
        database: Read only if one of the providers may be a node.  Raises DatabaseUnavailable or DatabaseBusy.
        providers: Pairs of a uuid and a name.
    """
    nameless = {uuid for uuid, name in providers if name in (None, uuid)}
    return database.read(names_by_uuid, [*nameless]) if nameless and tables() else {}


def add_names(database: Database, documents: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Add ``node``, its name, to the documents of providers that are nodes.

    Args:
        database: As for ``names_of_providers``.
        documents: Pairs of the uuid of a provider and an object that has its ``name``.
    """
    shown = [*documents]
    insert_names(shown, names_of_providers(database, ((uuid, document["name"]) for uuid, document in shown)))


def insert_names(documents: Iterable[tuple[str, dict[str, Any]]], known: Mapping[str, str]) -> None:
    """Add ``node``, after ``name``, to documents whose uuid has a known name."""
    for uuid, document in documents:
        if uuid in known:
            others = {member: document.pop(member) for member in [*document] if member not in ("uuid", "name")}
            document |= {"node": known[uuid], **others}


def unambiguous(known: Mapping[str, str], snapshot: Snapshot) -> Mapping[str, str]:
    """Return the names of nodes, by uuid, that no provider has: such a name is that of the provider."""
    return {uuid: name for uuid, name in known.items() if name not in snapshot.by_name}


def name_in_texts(database: Database, snapshot: Snapshot, document: Any) -> None:
    """Replace the uuids of nodes by their unambiguous names in the sentences of a document.

    Args:
        database: As for ``names_of_providers``.
        snapshot: Has the names of providers.
        document: Changed in place.
    """
    objects = _objects(document)
    sentences = [(each, name) for each in objects for name in _SENTENCES if isinstance(each.get(name), str)]
    uuids = {uuid for each, name in sentences for uuid in _UUID.findall(each[name])}
    named = [snapshot.provider(slot) for slot in map(snapshot.by_uuid.get, uuids) if slot is not None]
    known = unambiguous(names_of_providers(database, ((provider.uuid, provider.name) for provider in named)), snapshot)
    for each, name in sentences if known else ():
        each[name] = _UUID.sub(lambda found: known.get(found[0], found[0]), each[name])


def providers_in(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object in a document that has the ``uuid`` and ``name`` of a provider, as a pair with that uuid."""
    return ((each["uuid"], each) for each in _objects(document) if "uuid" in each and "name" in each)


def providers_of_allocations(documents: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what is held of each provider in documents that may have ``allocations``, after its uuid."""
    for document in documents:
        yield from document.get("allocations", {}).items()


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a document, each before those in it."""
    if isinstance(document, dict):
        yield document
        document = [*document.values()]
    if isinstance(document, list):
        for value in document:
            yield from _objects(value)
