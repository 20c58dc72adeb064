"""Consumers that should hold resources: uuids from files, and the servers and migrations of nova."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from placement.extensions.orphans import flavors
from placement.extensions.orphans.flavors import FlavorDemand
from placement.uuids import canonical

INSTANCE, MIGRATION, BAREMETAL = "INSTANCE", "MIGRATION", "BAREMETAL"
_NODE = "OS-EXT-SRV-ATTR:hypervisor_hostname"
_TASK = "OS-EXT-STS:task_state"
#: The status of a server in a cell that does not respond; nova omits most of its other fields.
_UNKNOWN = "UNKNOWN"


class InvalidNames(Exception):
    """A list of consumers is invalid; the text contains the line and the reason."""


def read_uuids(lines: Iterable[str], source: str, *, may_be_empty: bool) -> set[str]:
    """Return the uuids in a list, one per line; empty lines and comments after ``#`` are skipped.

    Args:
        lines: The lines of the list.
        source: The name of the file, for messages.
        may_be_empty: Whether to accept a list without uuids.

    Raises:
        InvalidNames: A line is not a uuid, or the list contains no uuid: most likely the command that should have
            written it failed, and every consumer would be an orphan.
    """
    uuids = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        consumer = canonical(text.strip('"'))
        if consumer is None:
            raise InvalidNames(f"{source}:{number}: {text[:60]!r} is not a uuid")
        uuids.add(consumer)
    if not uuids and not may_be_empty:
        raise InvalidNames(f"{source} names no consumers: all would be orphans; use --allow-empty if intended")
    return uuids


@dataclass(frozen=True, slots=True)
class NovaServer:
    """A server of nova, with the fields that are compared."""

    uuid: str
    status: str
    project: str
    #: The name of the root provider of its host; None without a host.
    host: str | None
    #: Whether a task is changing the server or its cell does not respond; only its existence is then compared.
    is_changing: bool
    #: The amounts that the server should hold; None if unknown.
    demand: FlavorDemand | None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> NovaServer:
        """Return the server in a document of nova's API; raise KeyError if a field is missing."""
        unknown = cls.is_hidden(document)
        return cls(
            uuid=document["id"],
            status=document["status"],
            project=document["tenant_id"],
            # nova omits the field unless the caller is an administrator.
            host=None if unknown else document[_NODE],
            is_changing=unknown or document[_TASK] is not None,
            demand=None
            if unknown
            else flavors.demand(document["flavor"], boots_from_volume=document["image"] in ("", None)),
        )

    @staticmethod
    def is_hidden(document: Mapping[str, Any]) -> bool:
        """Whether nova omits the fields of the server because its cell does not respond."""
        return document.get("status") == _UNKNOWN and _TASK not in document


@dataclass(slots=True)
class Expected:
    """The consumers that should hold resources."""

    #: Uuids of consumers named by files or by Ironic.
    named: set[str] = field(default_factory=set)
    #: Servers by uuid.
    servers: dict[str, NovaServer] = field(default_factory=dict)
    #: Uuids of the migrations in progress, which hold the former allocations of their servers.
    migrations: set[str] = field(default_factory=set)
    #: Uuids of the servers that migrate.
    migrating: set[str] = field(default_factory=set)
    #: The consumer types to compare; None for the types of the consumers that files name, except ``types_left_out``.
    types: frozenset[str] | None = None
    #: Consumer types that the sources do not cover.
    types_left_out: frozenset[str] = frozenset()

    def covers(self, consumer_type: str) -> bool:
        """Whether consumers of this type are compared."""
        return consumer_type not in self.types_left_out if self.types is None else consumer_type in self.types

    def knows(self, uuid: str) -> bool:
        """Whether the consumer should exist."""
        return uuid in self.named or uuid in self.servers or uuid in self.migrations

    def add_migrations(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Add migrations in progress, given as documents of nova's API."""
        for document in documents:
            self.migrating.add(document["instance_uuid"])
            self.migrations.add(document["uuid"])

    def hosted_servers(self) -> Iterator[NovaServer]:
        """Yield the servers that have a host."""
        return (server for server in self.servers.values() if server.host is not None)
