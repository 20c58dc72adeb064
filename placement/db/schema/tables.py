"""The tables: those of every Placement database, then those of the feed, of claims and of bare metal.

Other implementations read and write the first kind, so their names, types and indexes are fixed.  The other tables are
only ours, and can be created and dropped without touching the first (docs: database-schema).
"""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement.db.schema.clock import CLOCK

metadata = sa.MetaData()

#: The greatest allocation ratio: that of single precision, which MySQL stores.  With it no capacity is infinite.
LARGEST_RATIO = 3.40282e38


class Ratio(sa.types.TypeDecorator[float]):
    """An allocation ratio, which is read as a finite number.

    PostgreSQL and SQLite store every value that other programs write: infinities, which are read as the greatest ratio,
    and on PostgreSQL NaN, which is read as 0.
    """

    impl = sa.Float
    cache_ok = True

    def process_result_value(self, value: float | None, dialect: sa.Dialect) -> float | None:  # noqa: ARG002
        """Return the ratio that a row has."""
        if value is None or -LARGEST_RATIO <= value <= LARGEST_RATIO:
            return value
        return 0.0 if value != value else max(-LARGEST_RATIO, min(value, LARGEST_RATIO))


def utcnow() -> datetime.datetime:
    """Return the current time as the tables store it: UTC, naive."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def touch_of(table: sa.Table) -> sa.ColumnElement[datetime.datetime]:
    """Return the new value of ``updated_at`` in an UPDATE that changes nothing else; see :func:`touched`.

    It differs from the old value in any case: MySQL does not write, and so does not lock, a row that stays the same.
    """
    same = table.c.updated_at == sa.bindparam("now", type_=sa.DateTime)
    return sa.case((same, sa.bindparam("before", type_=sa.DateTime)), else_=sa.bindparam("now", type_=sa.DateTime))


def touched() -> dict[str, datetime.datetime]:
    """Return the parameters of :func:`touch_of`; whole seconds, since MySQL stores no fractions."""
    now = utcnow().replace(microsecond=0)
    return {"now": now, "before": now - datetime.timedelta(seconds=1)}


def _times(created: Any = utcnow) -> list[sa.Column[datetime.datetime]]:
    return [
        sa.Column("created_at", sa.DateTime, nullable=True, default=created),
        sa.Column("updated_at", sa.DateTime, nullable=True, onupdate=utcnow),
    ]


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


# Resource providers.  A root has its own id in root_provider_id, and no parent.
resource_providers = sa.Table(
    "resource_providers",
    metadata,
    *_times(),
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", sa.Unicode(200), nullable=True),
    sa.Column("generation", sa.Integer, default=0),
    sa.Column("root_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
    sa.Column("parent_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
    sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
    sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    sa.Index("resource_providers_root_provider_id_idx", "root_provider_id"),
    sa.Index("resource_providers_parent_provider_id_idx", "parent_provider_id"),
)

# The inventory of a provider in one resource class.  allocation_ratio is single precision on MySQL.
inventories = sa.Table(
    "inventories",
    metadata,
    *_times(),
    _id(),
    sa.Column("resource_provider_id", sa.Integer, nullable=False),
    sa.Column("resource_class_id", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    sa.Column("allocation_ratio", Ratio, nullable=False),
    sa.UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
)

# The amount of one class that a consumer holds on one provider.  consumer_id is the consumer's *uuid*.
allocations = sa.Table(
    "allocations",
    metadata,
    *_times(),
    _id(),
    sa.Column("resource_provider_id", sa.Integer, nullable=False),
    sa.Column("consumer_id", sa.String(36), nullable=False),
    sa.Column("resource_class_id", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False),
    sa.Index("allocations_resource_provider_class_used_idx", "resource_provider_id", "resource_class_id", "used"),
    sa.Index("allocations_resource_class_id_idx", "resource_class_id"),
    sa.Index("allocations_consumer_id_idx", "consumer_id"),
)

# Types of consumers; a consumer without one is shown as "unknown".
consumer_types = sa.Table(
    "consumer_types",
    metadata,
    *_times(),
    _id(),
    sa.Column("name", sa.Unicode(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
)

# Consumers.  A row exists as long as the consumer has allocations.
consumers = sa.Table(
    "consumers",
    metadata,
    *_times(CLOCK),  # the age of a consumer decides whether it is released, and is counted by this clock
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("project_id", sa.Integer, nullable=False),
    sa.Column("user_id", sa.Integer, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0"), default=0),
    sa.Column(
        "consumer_type_id",
        sa.Integer,
        sa.ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey"),
        nullable=True,
    ),
    sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    sa.Index("consumers_project_id_uuid_idx", "project_id", "uuid"),
    sa.Index("consumers_project_id_user_id_uuid_idx", "project_id", "user_id", "uuid"),
    sa.Index("consumers_consumer_type_id_idx", "consumer_type_id"),
)

projects = sa.Table(
    "projects",
    metadata,
    *_times(),
    _id(),
    sa.Column("external_id", sa.String(255), nullable=False),
    sa.UniqueConstraint("external_id", name="uniq_projects0external_id"),
)

users = sa.Table(
    "users",
    metadata,
    *_times(),
    _id(),
    sa.Column("external_id", sa.String(255), nullable=False),
    sa.UniqueConstraint("external_id", name="uniq_users0external_id"),
)

# Standard classes have fixed ids from 0 (VCPU), custom ones begin at 10000.
resource_classes = sa.Table(
    "resource_classes",
    metadata,
    *_times(),
    _id(),
    sa.Column("name", sa.String(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_resource_classes0name"),
)

traits = sa.Table(
    "traits",
    metadata,
    *_times(),
    _id(),
    sa.Column("name", sa.Unicode(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_traits0name"),
)

resource_provider_traits = sa.Table(
    "resource_provider_traits",
    metadata,
    *_times(),
    sa.Column("trait_id", sa.Integer, sa.ForeignKey("traits.id"), primary_key=True, nullable=False),
    sa.Column(
        "resource_provider_id",
        sa.Integer,
        sa.ForeignKey("resource_providers.id"),
        primary_key=True,
        nullable=False,
    ),
    sa.Index("resource_provider_traits_resource_provider_trait_idx", "resource_provider_id", "trait_id"),
)

placement_aggregates = sa.Table(
    "placement_aggregates",
    metadata,
    *_times(),
    _id(),
    sa.Column("uuid", sa.String(36), nullable=True),
    sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
)

resource_provider_aggregates = sa.Table(
    "resource_provider_aggregates",
    metadata,
    *_times(),
    sa.Column("resource_provider_id", sa.Integer, primary_key=True, nullable=False),
    sa.Column("aggregate_id", sa.Integer, primary_key=True, nullable=False),
    sa.Index("resource_provider_aggregates_aggregate_id_idx", "aggregate_id"),
)


# --- the feed ---------------------------------------------------------------------------------------------------------

# Writers, whose transactions are numbered 1, 2, 3 ... and commit in that order (placement/db/feed.py).
# Both times are of the database's clock, so that the clocks of hosts do not matter.
change_writers = sa.Table(
    "change_writers",
    metadata,
    _id(),
    sa.Column("started_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sa.Column("seen_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sqlite_autoincrement=True,
)

# What a transaction changed: a provider's usage or anything else, its deletion, or (provider 0) the names of classes.
# The foreign key refuses a transaction of a writer that was ended.
provider_changes = sa.Table(
    "provider_changes",
    metadata,
    sa.Column("writer_id", sa.Integer, sa.ForeignKey("change_writers.id"), primary_key=True, nullable=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("what", sa.String(8), nullable=False),
)

# One row: the identity of the feed.  Another uuid means that readers must read everything again.
feed_instance = sa.Table(
    "feed_instance",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True, nullable=False),
)

# --- claims -----------------------------------------------------------------------------------------------------------


def _precise(name: str, **options: Any) -> sa.Column[datetime.datetime]:
    """Return a column of dates with microseconds, which MySQL does not keep by default."""
    return sa.Column(name, sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), **options)


# What is known of a consumer's claim beside what it holds: which request it answers, and when it ends.  The row goes
# with the consumer's, whichever program deletes that.
claims = sa.Table(
    "claims",
    metadata,
    sa.Column(
        "consumer_id",
        sa.Integer,
        sa.ForeignKey("consumers.id", name="claims_consumer_id_fkey", ondelete="CASCADE"),
        primary_key=True,
        nullable=False,
        autoincrement=False,
    ),
    # The SHA-256 digest of the request, in hexadecimal; null if the claim was only given an end here.
    sa.Column("content", sa.String(64), nullable=True),
    # The generation that the claim gave the consumer; while it has it, the mappings are those of what it holds.
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("mappings", sa.JSON, nullable=False),
    # By the database's clock; null: it has no end.
    _precise("expires_at", nullable=True),
    sa.Index("claims_expires_at_idx", "expires_at"),
)

#: Whether the time of a lease is over; null, and so not true, for a claim without an end.
LEASE_IS_OVER: sa.ColumnElement[bool] = claims.c.expires_at <= CLOCK

# --- bare metal -------------------------------------------------------------------------------------------------------


def _exact(length: int) -> sa.types.TypeEngine[str]:
    """Return the type of texts that hold every character and are compared exactly; on MySQL the default is neither."""
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Unicode(length).with_variant(exact, "mysql", "mariadb")


#: Texts of up to 16 MB; MySQL's TEXT ends at 64 KB, and the error of an allocation repeats its traits.
_LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

# What a node is beside its resource provider of the same uuid: traits, inventory and holder are the provider's.
baremetal_nodes = sa.Table(
    "baremetal_nodes",
    metadata,
    _precise("created_at", nullable=False, default=utcnow),
    _precise("updated_at", nullable=True),
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", _exact(255), nullable=True),
    sa.Column("driver", _exact(255), nullable=False),
    sa.Column("resource_class", _exact(80), nullable=True),
    sa.Column("owner", _exact(255), nullable=True),
    sa.Column("lessee", _exact(255), nullable=True),
    sa.Column("parent_node", sa.String(36), nullable=True),
    sa.Column("provision_state", sa.String(32), nullable=True),
    sa.Column("target_provision_state", sa.String(32), nullable=True),
    _precise("provision_updated_at", nullable=True),
    sa.Column("power_state", sa.String(32), nullable=True),
    sa.Column("target_power_state", sa.String(32), nullable=True),
    sa.Column("maintenance", sa.Boolean, nullable=False, default=False),
    # Everything else that only describes the node, by its name in the API.
    sa.Column("details", sa.JSON, nullable=False),
    sa.UniqueConstraint("uuid", name="uniq_baremetal_nodes0uuid"),
    sa.UniqueConstraint("name", name="uniq_baremetal_nodes0name"),
    sa.Index("baremetal_nodes_class_state_idx", "resource_class", "provision_state"),
    sa.Index("baremetal_nodes_owner_idx", "owner", "resource_class", "provision_state"),
    sa.Index("baremetal_nodes_lessee_idx", "lessee", "resource_class", "provision_state"),
    sqlite_autoincrement=True,
)

# Requests for a node and what became of them: with a node, active; without one, in error.
baremetal_allocations = sa.Table(
    "baremetal_allocations",
    metadata,
    _precise("created_at", nullable=False, default=utcnow),
    _precise("updated_at", nullable=True),
    _id(),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.Column("name", _exact(255), nullable=True),
    sa.Column("node_uuid", sa.String(36), nullable=True),
    sa.Column("resource_class", _exact(80), nullable=True),
    sa.Column("owner", _exact(255), nullable=True),
    sa.Column("traits", sa.JSON, nullable=False),
    sa.Column("candidate_nodes", sa.JSON, nullable=False),
    sa.Column("extra", sa.JSON, nullable=False),
    sa.Column("last_error", _LONG_TEXT, nullable=True),
    sa.UniqueConstraint("uuid", name="uniq_baremetal_allocations0uuid"),
    sa.UniqueConstraint("name", name="uniq_baremetal_allocations0name"),
    sa.UniqueConstraint("node_uuid", name="uniq_baremetal_allocations0node_uuid"),
    sa.Index("baremetal_allocations_class_idx", "resource_class"),
    sa.Index("baremetal_allocations_owner_idx", "owner"),
    sqlite_autoincrement=True,
)

#: Whether a record of ``baremetal_allocations`` has not ended: it is in error, or the consumer of its uuid has
#: something from the node's provider.
RECORD_IS_LIVE = sa.or_(
    baremetal_allocations.c.node_uuid.is_(None),
    sa.exists()
    .where(
        allocations.c.consumer_id == baremetal_allocations.c.uuid,
        allocations.c.resource_provider_id == resource_providers.c.id,
        resource_providers.c.uuid == baremetal_allocations.c.node_uuid,
    )
    .correlate(baremetal_allocations),
)

# --- the history ------------------------------------------------------------------------------------------------------

# What committed transactions have changed (placement/db/writes/notes.py): a row for each object that a request changed.
# Writer and sequence number are those of the feed.  No foreign key: writers end before their events.
events = sa.Table(
    "events",
    metadata,
    sa.Column("writer_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    # From 0 in each transaction.
    sa.Column("ordinal", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    # By the database's clock, a moment before COMMIT.
    _precise("at", nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    # Of a provider, consumer or node; null for resource classes and traits.
    sa.Column("uuid", sa.String(36), nullable=True),
    # Where the event creates, names or deletes the object: of a rename the old name.
    sa.Column("name", _exact(255), nullable=True),
    # The consumer's.
    sa.Column("project", _exact(255), nullable=True),
    # Null: there was, or is, no such object, or its generation is not known.
    sa.Column("before_generation", sa.Integer, nullable=True),
    sa.Column("generation", sa.Integer, nullable=True),
    # JSON texts.  The request is in the first of its rows, and the others have the ordinal of that one.
    sa.Column("changes", _LONG_TEXT, nullable=False),
    sa.Column("request", _LONG_TEXT, nullable=True),
    sa.Column("request_ordinal", sa.Integer, nullable=False),
    sa.Index("events_uuid_idx", "uuid"),
    sa.Index("events_name_idx", "name"),
    # The positions of a project's events are found in indexes alone.
    sa.Index("events_project_idx", "project", "writer_id", "seq", "ordinal"),
)

# The order of the transactions that have events (placement/db/history/event_order.py).  Events of a transaction have
# the positions from this one on.
event_order = sa.Table(
    "event_order",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("writer_id", sa.Integer, nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    # How many events the transaction has, and the time of the first.
    sa.Column("events", sa.Integer, nullable=False),
    _precise("at", nullable=False),
    sa.UniqueConstraint("writer_id", "seq", name="uniq_event_order0writer_seq"),
    sa.Index("event_order_at_idx", "at"),
)

# What all providers together had and what was used of it, at intervals, for pictures of the past.
usage_samples = sa.Table(
    "usage_samples",
    metadata,
    # By the database's clock, at the beginning of an interval.
    _precise("at", primary_key=True, nullable=False),
    sa.Column("resource_class", sa.String(255), primary_key=True, nullable=False),
    sa.Column("capacity", sa.BigInteger, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
)

#: The tables that other implementations do not know.
OURS = (
    *(change_writers, provider_changes, feed_instance, claims, baremetal_nodes, baremetal_allocations),
    *(events, event_order, usage_samples),
)
