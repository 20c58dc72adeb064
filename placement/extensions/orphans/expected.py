"""Who should hold something: uuids of a file, and the servers and migrations of nova."""

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
#: Of a server in a cell that does not answer: nova shows little else of it.
_UNKNOWN = "UNKNOWN"


class InvalidNames(Exception):
    """A list of consumers that cannot be meant; the text says where and why."""


def named(lines: Iterable[str], source: str, *, may_be_empty: bool) -> set[str]:
    """Return the uuids that a file names, one in a line; empty lines, and what follows ``#``, are left out.

    Args:
        lines: Of the file.
        source: Its name, for messages.
        may_be_empty: Whether it may name none.

    Raises:
        InvalidNames: A line is no uuid; or there is none: most likely the program that should write them has failed,
            and every consumer would be an orphan.
    """
    found = set()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        consumer = canonical(text.strip('"'))
        if consumer is None:
            raise InvalidNames(f"{source}:{number}: {text[:60]!r} is no uuid")
        found.add(consumer)
    if not found and not may_be_empty:
        raise InvalidNames(f"{source} names no consumer, so that all would be orphans; --allow-empty if that is so")
    return found


@dataclass(frozen=True, slots=True)
class NovaServer:
    """What is compared of a server of nova."""

    uuid: str
    status: str
    project: str
    #: The name of the root provider on which it runs; None if it has no host.
    host: str | None
    #: Whether it is being changed, or nova cannot say more about it, so that only its existence is known.
    in_motion: bool
    #: None if that is not known.
    demand: FlavorDemand | None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> NovaServer:
        """Return the server of a document of the API; raises KeyError for what is none."""
        unknown = cls.is_hidden(document)
        return cls(
            uuid=document["id"],
            status=document["status"],
            project=document["tenant_id"],
            # Without the rights for this nova leaves it out.
            host=None if unknown else document[_NODE],
            in_motion=unknown or document[_TASK] is not None,
            demand=None
            if unknown
            else flavors.demand(document["flavor"], boots_from_volume=document["image"] in ("", None)),
        )

    @staticmethod
    def is_hidden(document: Mapping[str, Any]) -> bool:
        """Whether nova knows nothing of the server, because its cell does not answer."""
        return document.get("status") == _UNKNOWN and _TASK not in document


@dataclass(slots=True)
class Expected:
    """All that should hold something."""

    #: Uuids that are only known to exist.
    named: set[str] = field(default_factory=set)
    #: By uuid.
    servers: dict[str, NovaServer] = field(default_factory=dict)
    #: Uuids of the migrations in progress, which hold what the server had before.
    migrations: set[str] = field(default_factory=set)
    #: Uuids of the servers that migrate.
    migrating: set[str] = field(default_factory=set)
    #: The types of consumers that are compared; None for those of which files name some, but those that are left out.
    types: frozenset[str] | None = None
    #: Types of which the sources know nothing.
    types_left_out: frozenset[str] = frozenset()

    def judges(self, consumer_type: str) -> bool:
        """Whether consumers of this type are compared."""
        return consumer_type not in self.types_left_out if self.types is None else consumer_type in self.types

    def knows(self, uuid: str) -> bool:
        """Whether the consumer should exist."""
        return uuid in self.named or uuid in self.servers or uuid in self.migrations

    def add_migrations(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Add migrations in progress, documents of the API."""
        for document in documents:
            self.migrating.add(document["instance_uuid"])
            self.migrations.add(document["uuid"])

    def hosted(self) -> Iterator[NovaServer]:
        """Yield the servers that have a host."""
        return (server for server in self.servers.values() if server.host is not None)
