"""Notes of a transaction's changes, object by object, which a recorder writes in the same transaction.

Changes are noted while the transaction works, as pairs of the old and the new value by *path*, for instance
``("inventories", "VCPU", "total"): (8, 16)``.  Without a recorder, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from placement.db.engine.compiled import CompiledInsert
from placement.db.writes.author import Author

#: The kinds of objects of the core.  A recorder may support others: the history of ``v1`` also records nodes.
PROVIDER = "provider"
CONSUMER = "consumer"
RESOURCE_CLASS = "resource_class"
TRAIT = "trait"

#: The place of a value in the document of the changes.
Path = tuple[str, ...]
#: The old and the new value; None for a missing one.
Pair = tuple[Any, Any]
Changes = Mapping[Path, Pair]

#: Set-valued fields, for which events list added and removed members: a pair is (was a member, is a member).  The
#: consumers are the consumers with allocations on a provider.
MEMBERS = frozenset({"traits", "aggregates", "consumers"})


class Advance(NamedTuple):
    """The change of an object's generation; None before the object is created or after it is deleted."""

    #: The id of the object's row, because a reused uuid has another row.
    row: int | None
    before: int | None
    after: int | None


class Notes(Protocol):
    """The changes that one transaction has made so far."""

    def add(
        self,
        kind: str,
        key: str,
        author: Author | None,
        changes: Changes,
        *,
        advance: Advance | None = None,
        project: str | None = None,
    ) -> None:
        """Note a change of an object.

        Args:
            kind: The kind of the object, in one word.
            key: The object's uuid; for a resource class or trait, its name.
            author: The author of the change.
            changes: Pairs by path; the path of a name is ``("name",)``.
            advance: None if the generation does not change.
            project: The owning project of a consumer.
        """

    def __bool__(self) -> bool:
        """Whether anything was noted."""
        raise NotImplementedError

    def inserts(self, writer_id: int, seq: int) -> Sequence[tuple[CompiledInsert, list[dict[str, Any]]]]:
        """Return the statements, with their rows, that record the notes under the transaction's sequence number."""
        raise NotImplementedError

    def committed(self) -> None:
        """Handle the COMMIT of the transaction with these rows."""


class Recorder(Protocol):
    """A recorder of the changes of all transactions of a process."""

    def notes(self) -> Notes | None:
        """Return the notes for a new transaction; None if it is not recorded."""

    def committed(self) -> None:
        """Do a small part of the due work after a COMMIT, in the thread of the request."""

    def order(self) -> None:
        """Assign positions to all committed events; failures as for ``Database.write``."""

    def maintain(self) -> bool:
        """Do due work, about once a minute; return whether writers with an expired lease can be ended."""
        raise NotImplementedError
