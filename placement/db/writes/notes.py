"""What a transaction changes, object by object, for a recorder that writes it in the same transaction.

Changes are noted while the transaction works, as pairs of old and new value by *path*, for instance
``("inventories", "VCPU", "total"): (8, 16)``.  Without a recorder, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from placement.db.engine.compiled import CompiledInsert
from placement.db.writes.author import Author

#: The kinds of objects of the core.  A recorder says which others it takes: the history of ``v1`` also takes nodes.
PROVIDER = "provider"
CONSUMER = "consumer"
RESOURCE_CLASS = "resource_class"
TRAIT = "trait"

#: Where a value is in the document of the changes.
Path = tuple[str, ...]
#: The old and the new value; None where there is none.
Pair = tuple[Any, Any]
Changes = Mapping[Path, Pair]

#: Sets, for which events list added and removed members: a pair is (was in it, is in it).  Consumers are those that
#: hold something on a provider.
MEMBERS = frozenset({"traits", "aggregates", "consumers"})


class Advance(NamedTuple):
    """The change of an object's generation; None where the object does not exist yet, or no longer."""

    #: The id of the object's row: if a uuid is used again, it has another row.
    row: int | None
    before: int | None
    after: int | None


class Notes(Protocol):
    """What one transaction has changed so far."""

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
            kind: What the object is, in one word.
            key: The object's uuid; for a resource class or trait, its name.
            author: In whose name.
            changes: Pairs by path; a name is under ``("name",)``.
            advance: None if the generation does not move.
            project: The owner's, for consumers.
        """

    def __bool__(self) -> bool:
        """Return whether anything was noted."""
        raise NotImplementedError

    def inserts(self, writer_id: int, seq: int) -> Sequence[tuple[CompiledInsert, list[dict[str, Any]]]]:
        """Return the statements, with their rows, that record the notes under the transaction's number in the feed."""
        raise NotImplementedError

    def committed(self) -> None:
        """Called once the transaction is committed with these rows."""


class Recorder(Protocol):
    """Records what each transaction of a process changes."""

    def notes(self) -> Notes | None:
        """Return the notes of a new transaction; None if it is not to be recorded."""

    def committed(self) -> None:
        """Called after each COMMIT, in the thread of a request, for small steps of work that is due."""

    def order(self) -> None:
        """Put everything that is committed in order; raises like ``Database.write``."""

    def maintain(self) -> bool:
        """Called once a minute; return whether the writers that have ended are no longer needed."""
        raise NotImplementedError
