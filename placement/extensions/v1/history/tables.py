"""The tables of the history."""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.schema.tables import LONG_TEXT, exact, metadata, precise

# What committed transactions have changed (notes.py): a row for each object that a request changed.  Writer and number
# are those of the feed.  There is no foreign key, because events outlive their writers.
events = sa.Table(
    "events",
    metadata,
    sa.Column("writer_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    # Counts from 0 in each transaction.
    sa.Column("ordinal", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    # By the database's clock, a moment before COMMIT.
    precise("at", nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    # The uuid of a provider, consumer or node; null for resource classes and traits.
    sa.Column("uuid", sa.String(36), nullable=True),
    # Set if the event creates, renames or deletes the object: for a rename, the old name.
    sa.Column("name", exact(255), nullable=True),
    # The consumer's.
    sa.Column("project", exact(255), nullable=True),
    # Null: the object did not or does not exist, or its generation is unknown.
    sa.Column("before_generation", sa.Integer, nullable=True),
    sa.Column("generation", sa.Integer, nullable=True),
    # JSON texts.  The first row of a request holds it; the others have the ordinal of that row.
    sa.Column("changes", LONG_TEXT, nullable=False),
    sa.Column("request", LONG_TEXT, nullable=True),
    sa.Column("request_ordinal", sa.Integer, nullable=False),
    # The id of the object's row, which tells its lives apart; null if the generation does not change.
    sa.Column("row_id", sa.Integer, nullable=True),
    sa.Index("events_uuid_idx", "uuid"),
    sa.Index("events_name_idx", "name"),
    # So that the positions of a project's events are found in indexes alone.
    sa.Index("events_project_idx", "project", "writer_id", "seq", "ordinal"),
)

# The order of the transactions that have events (order.py).  A transaction's events have consecutive positions,
# starting with this one.
event_order = sa.Table(
    "event_order",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("writer_id", sa.Integer, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    # How many events the transaction has, and the time of the first.
    sa.Column("events", sa.Integer, nullable=False),
    precise("at", nullable=False),
    sa.UniqueConstraint("writer_id", "seq", name="uniq_event_order0writer_seq"),
    sa.Index("event_order_at_idx", "at"),
)

# What all providers together had, and how much of it was used, at intervals, for charts of the past.
usage_samples = sa.Table(
    "usage_samples",
    metadata,
    # By the database's clock, at the beginning of an interval.
    precise("at", primary_key=True, nullable=False),
    sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
    sa.Column("capacity", sa.BigInteger, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
)

# What the largest projects and aggregates held of each class when a sample was taken.
usage_shares = sa.Table(
    "usage_shares",
    metadata,
    # That of the sample.
    precise("at", primary_key=True, nullable=False),
    # What the name is of: "project" or "aggregate".
    sa.Column("dimension", sa.String(16), primary_key=True, nullable=False),
    sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
    # The place in the order of the usage, from 0 for the largest.  The name is not unique by every collation.
    sa.Column("place", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    # The project, or the uuid of the aggregate.
    sa.Column("name", exact(255), nullable=False),
    # Null for a project.
    sa.Column("capacity", sa.BigInteger, nullable=True),
    sa.Column("used", sa.BigInteger, nullable=False),
)

TABLES = (events, event_order, usage_samples, usage_shares)
