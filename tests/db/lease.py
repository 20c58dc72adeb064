"""Expiry and counts of leases in tests."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from placement.db.schema.tables import claims, consumers
from placement.db.writes.notes import CONSUMER
from placement.objects.claims import leases
from placement.objects.claims.consumer_notes import format_expiry
from placement.objects.claims.holding import Holding


def expire(database, consumer, seconds=0):
    """Set the expiry of a consumer's lease to ``seconds`` ago, by the database's clock."""
    is_lease_of_consumer = (
        claims.c.consumer_id == sa.select(consumers.c.id).where(consumers.c.uuid == consumer).scalar_subquery()
    )

    def work(db):
        expiry = leases.now(db) - datetime.timedelta(seconds=seconds)
        before = Holding.read_all(db, [consumer]).get(consumer)
        if before is not None:
            db.note(CONSUMER, consumer, {("lease",): (format_expiry(before.expires_at), format_expiry(expiry))})
        return db.execute(sa.update(claims).where(is_lease_of_consumer).values(expires_at=expiry)).rowcount

    assert database.write(work) == 1


def count(database):
    """Return the number of claim records, with or without an expiry."""
    return database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(claims)).scalar_one())
