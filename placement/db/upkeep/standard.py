"""The rows that every Placement database contains: standard resource classes and traits, and the feed's identity.

(docs: api-class-rules, entry-points)
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.database import Database
from placement.db.dry_run import DryRun
from placement.db.schema.tables import feed_instance, resource_classes, traits
from placement.db.writes.notes import RESOURCE_CLASS, TRAIT
from placement.db.writes.transaction import Reading, Transaction

LOG = logging.getLogger(__name__)

#: Ids of the standard resource classes: their order in os_resource_classes, the same in every Placement database.
CLASS_IDS: dict[str, int] = {name: number for number, name in enumerate(os_resource_classes.STANDARDS)}
#: The lowest id of a custom resource class.
FIRST_CUSTOM_ID = 10000
#: The prefix of the names of custom resource classes and traits.
CUSTOM_PREFIX = "CUSTOM_"
_STANDARD = {*CLASS_IDS, *os_traits.get_traits()}
_MISSING = (
    *(errors.ResourceClassNotFound, errors.UnknownResourceClass),
    *(errors.TraitNotFound, errors.UnknownTraits, errors.UnknownProviderTraits),
)

# Processes that start at the same time may lack the same rows; all but one collide, and find the rows when they retry.
_ATTEMPTS = 50


def insert(database: Database | DryRun[Any], *, noted: bool = False) -> None:
    """Insert the missing rows in one transaction; several processes may do so at once.

    Existing rows are not changed.  The missing rows are determined from the database each time, never cached.

    Args:
        database: The database, or a dry run on it.
        noted: Whether the history records the inserted rows; it does not for a new database.

    Raises:
        RuntimeError: The id of a standard resource class belongs to another class.
    """
    if not database.read(_complete):
        database.write(lambda db: _add(db, noted=noted), attempts=_ATTEMPTS)


def missing_names(db: Reading) -> list[str]:
    """Return the names of the standard resource classes and traits without a row.

    Raises:
        RuntimeError: The id of a standard resource class belongs to another class.
    """
    return [*_missing_classes(db), *_missing_traits(db)]


def has_identity(db: Reading) -> bool:
    """Whether the feed has an identity."""
    return db.execute(sa.select(feed_instance.c.uuid)).first() is not None


def repair(database: Database | DryRun[Any], failure: errors.Failure) -> bool:
    """Insert the standard rows if a failure shows that one is missing; return whether the request can be retried.

    A dry run rolls them back.

    A running service loses rows when its database is dropped and created again, or is restored from a backup that is
    older than the service.
    """
    if not isinstance(failure, _MISSING) or not _names(failure) & _STANDARD:
        return False
    LOG.error("The database has lost standard names (%s); inserting them again.", failure)
    try:
        insert(database)
    except RuntimeError as error:
        LOG.error("The standard names cannot be inserted again: %s", error)
        return False
    return True


def renew(database: Database) -> None:
    """Replace the identity of the feed, so that every worker reads everything again, and insert missing rows."""

    def work(db: Transaction) -> None:
        db.execute(sa.delete(feed_instance))
        _add(db)

    database.write(work, attempts=_ATTEMPTS)


def _names(failure: errors.Failure) -> set[str]:
    return {str(failure.facts.get("name")), *str(failure.facts.get("names")).split(", ")}


def _complete(db: Reading) -> bool:
    return not missing_names(db) and has_identity(db)


def _add(db: Transaction, *, noted: bool = False) -> None:
    if classes := _missing_classes(db):
        rows = [{"id": number, "name": name} for name, number in classes.items()]
        with _literal_zero(db) if db.dialect in ("mysql", "mariadb") else contextlib.nullcontext():
            db.execute(sa.insert(resource_classes), rows)
        db.record_change(feed.NO_PROVIDER, feed.NAMES)
        _note(db, RESOURCE_CLASS, classes if noted else ())
    if names := _missing_traits(db):
        db.execute(sa.insert(traits), [{"name": name} for name in names])
        _note(db, TRAIT, names if noted else ())
    # An empty table of the identity contains no row to lock, and two new rows would not collide: lock a class.
    db.execute(sa.select(resource_classes.c.id).where(resource_classes.c.name == "VCPU").with_for_update())
    if not has_identity(db):
        db.execute(sa.insert(feed_instance).values(uuid=str(uuid.uuid4())))


def _note(db: Transaction, kind: str, names: Iterable[str]) -> None:
    for name in names:
        db.note(kind, name, {("name",): (None, name)})


def _missing_classes(db: Reading) -> dict[str, int]:
    """Return the ids of missing classes by name; raise RuntimeError if an id belongs to another class."""
    standard = sa.select(resource_classes.c.name, resource_classes.c.id).where(resource_classes.c.id < FIRST_CUSTOM_ID)
    present = {row.name: row.id for row in db.execute(standard)}
    missing = {name: number for name, number in CLASS_IDS.items() if name not in present}
    conflicting = set(missing.values()) & set(present.values())
    if conflicting:
        raise RuntimeError(f"Resource class ids {sorted(conflicting)} belong to other classes than the standard ones.")
    return missing


def _missing_traits(db: Reading) -> list[str]:
    present = set(db.execute(sa.select(traits.c.name)).scalars())
    return sorted(set(os_traits.get_traits()) - present)


@contextlib.contextmanager
def _literal_zero(db: Transaction) -> Iterator[None]:
    """Make MySQL store 0 in an auto-increment column, instead of the next number, while the block runs."""
    before = db.execute(sa.text("SELECT @@SESSION.sql_mode")).scalar()
    set_mode = sa.text("SET SESSION sql_mode = :mode")
    db.execute(set_mode, {"mode": f"{before},NO_AUTO_VALUE_ON_ZERO".lstrip(",")})
    try:
        yield
    finally:
        db.execute(set_mode, {"mode": before})
