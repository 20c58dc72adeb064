"""What every Placement database holds from the start: standard resource classes and traits (contract 3.9, 5.5)."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Iterator

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.database import Database
from placement.db.tables import feed_instance, resource_classes, traits
from placement.db.transaction import Reading, Transaction

LOG = logging.getLogger(__name__)

#: Ids of the standard resource classes.  They are the same in every Placement, so the order is a fact.
CLASS_IDS: dict[str, int] = {name: number for number, name in enumerate(os_resource_classes.STANDARDS)}
_FIRST_CUSTOM_ID = 10000
_STANDARD = {*CLASS_IDS, *os_traits.get_traits()}
_MISSING = (
    *(errors.ResourceClassNotFound, errors.UnknownResourceClass),
    *(errors.TraitNotFound, errors.UnknownTraits, errors.UnknownProviderTraits),
)

# Several starters may find the same rows missing; all but one collide, look again and find them present.
_ATTEMPTS = 50


def insert(database: Database) -> None:
    """Add what is missing, all of it or nothing; safe against others that do the same.

    What is there is never changed.  Nothing is remembered: the database itself is asked each time what is missing.
    """
    if not database.read(_complete):
        database.write(lambda db: _add(db, database.engine.dialect.name), attempts=_ATTEMPTS)


def put_back(database: Database, failure: errors.Failure) -> bool:
    """Whether a failure misses a standard name that is there now: the rows had vanished under a running service.

    That is so after the database was dropped and made anew, or put back to a time before the service first ran.
    """
    if not isinstance(failure, _MISSING) or not _names(failure) & _STANDARD:
        return False
    LOG.error("The database has lost standard names (%s); they are put back.", failure)
    try:
        insert(database)
    except RuntimeError as error:
        LOG.error("The standard names cannot be put back: %s", error)
        return False
    return True


def renew(database: Database) -> None:
    """Have every worker read everything again, and the rows put back that are missing."""

    def work(db: Transaction) -> None:
        db.execute(sa.delete(feed_instance))
        _add(db, database.engine.dialect.name)

    database.write(work, attempts=_ATTEMPTS)


def _names(failure: errors.Failure) -> set[str]:
    return {str(failure.facts.get("name")), *str(failure.facts.get("names")).split(", ")}


def _complete(db: Reading) -> bool:
    return not _missing_classes(db) and not _missing_traits(db) and _has_identity(db)


def _add(db: Transaction, backend: str) -> None:
    if classes := _missing_classes(db):
        rows = [{"id": number, "name": name} for name, number in classes.items()]
        with _zero_is_an_id(db) if backend in ("mysql", "mariadb") else contextlib.nullcontext():
            db.execute(sa.insert(resource_classes), rows)
        db.changed(feed.NO_PROVIDER, feed.NAMES)
    if names := _missing_traits(db):
        db.execute(sa.insert(traits), [{"name": name} for name in names])
    # The feed's table has no row to lock and no two rows that collide; the first class serves as the lock.
    db.execute(sa.select(resource_classes.c.id).where(resource_classes.c.name == "VCPU").with_for_update())
    if not _has_identity(db):
        db.execute(sa.insert(feed_instance).values(uuid=str(uuid.uuid4())))


def _missing_classes(db: Reading) -> dict[str, int]:
    """Ids by name; raises RuntimeError if one of the ids belongs to another class."""
    standard = sa.select(resource_classes.c.name, resource_classes.c.id).where(resource_classes.c.id < _FIRST_CUSTOM_ID)
    present = {row.name: row.id for row in db.execute(standard)}
    missing = {name: number for name, number in CLASS_IDS.items() if name not in present}
    taken = set(missing.values()) & set(present.values())
    if taken:
        raise RuntimeError(f"Resource class ids {sorted(taken)} belong to other classes than the standard says.")
    return missing


def _missing_traits(db: Reading) -> list[str]:
    present = set(db.execute(sa.select(traits.c.name)).scalars())
    return sorted(set(os_traits.get_traits()) - present)


def _has_identity(db: Reading) -> bool:
    return db.execute(sa.select(feed_instance.c.uuid)).first() is not None


@contextlib.contextmanager
def _zero_is_an_id(db: Transaction) -> Iterator[None]:
    """MySQL takes 0 in an autoincrement column for "the next number" unless told otherwise."""
    before = db.execute(sa.text("SELECT @@SESSION.sql_mode")).scalar()
    set_mode = sa.text("SET SESSION sql_mode = :mode")
    db.execute(set_mode, {"mode": f"{before},NO_AUTO_VALUE_ON_ZERO".lstrip(",")})
    try:
        yield
    finally:
        db.execute(set_mode, {"mode": before})
