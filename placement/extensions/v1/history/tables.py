"""The tables of the history."""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.schema.tables import LONG_TEXT, exact, metadata, precise

# Changes by committed transactions (notes.py): a row for each object that a request changed.  The key begins with the
# transaction's number in the feed.  It has no foreign key, because events outlive their writers.
events = sa.Table(
    "events",
    metadata,
    sa.Column("writer_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    # Counts from 0 in each transaction.
    sa.Column("ordinal", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    # By the database's clock, shortly before COMMIT.
    precise("at", nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    # The uuid of a provider, consumer or node; null for resource classes and traits.
    sa.Column("uuid", sa.String(36), nullable=True),
    # Set if the event creates, renames or deletes the object; for a rename, the old name.
    sa.Column("name", exact(255), nullable=True),
    # The owner of a consumer.
    sa.Column("project", exact(255), nullable=True),
    # Null: the object did not exist before or does not exist after, or its generation is unknown.
    sa.Column("before_generation", sa.Integer, nullable=True),
    sa.Column("generation", sa.Integer, nullable=True),
    # JSON texts.  Only the first row of a request contains the request; the other rows refer to its ordinal.
    sa.Column("changes", LONG_TEXT, nullable=False),
    sa.Column("request", LONG_TEXT, nullable=True),
    sa.Column("request_ordinal", sa.Integer, nullable=False),
    # The id of the object's row, which distinguishes its lifetimes; null if the generation does not change.
    sa.Column("row_id", sa.Integer, nullable=True),
    sa.Index("events_uuid_idx", "uuid"),
    sa.Index("events_name_idx", "name"),
    # A covering index for the positions of a project's events.
    sa.Index("events_project_idx", "project", "writer_id", "seq", "ordinal"),
)

# The order of transactions with events (order.py).  The events of a transaction have consecutive positions, beginning
# with this one.
event_order = sa.Table(
    "event_order",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("writer_id", sa.Integer, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    # The number of events of the transaction, and the timestamp of the first.
    sa.Column("events", sa.Integer, nullable=False),
    precise("at", nullable=False),
    sa.UniqueConstraint("writer_id", "seq", name="uniq_event_order0writer_seq"),
    sa.Index("event_order_at_idx", "at"),
)

# Capacity and usage of all providers together, at intervals, for charts of past usage.
usage_samples = sa.Table(
    "usage_samples",
    metadata,
    # By the database's clock, at the beginning of an interval.
    precise("at", primary_key=True, nullable=False),
    sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
    sa.Column("capacity", sa.BigInteger, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
)

# Usage of each class by the largest projects and aggregates, for each sample.
usage_shares = sa.Table(
    "usage_shares",
    metadata,
    # The timestamp of the sample.
    precise("at", primary_key=True, nullable=False),
    # "project" or "aggregate".
    sa.Column("dimension", sa.String(16), primary_key=True, nullable=False),
    sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
    # The rank by usage, from 0 for the largest.  It is part of the key because some collations equate different names.
    sa.Column("place", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    # The project, or the uuid of the aggregate.
    sa.Column("name", exact(255), nullable=False),
    # Null for a project.
    sa.Column("capacity", sa.BigInteger, nullable=True),
    sa.Column("used", sa.BigInteger, nullable=False),
)

TABLES = (events, event_order, usage_samples, usage_shares)
