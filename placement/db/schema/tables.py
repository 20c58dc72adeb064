"""The tables: those of every Placement database, then those of the feed and of claims.

Other implementations read and write the first kind, so their names, types and indexes are fixed.  The other tables are
only ours, and can be created and dropped without touching the first (docs: database-schema).  Extensions add theirs to
``metadata``.
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


def _names(table: str, name: str, of: sa.types.TypeEngine[str], *, nullable: bool = False) -> sa.Table:
    """Return a table of unique names."""
    unique = sa.UniqueConstraint(name, name=f"uniq_{table}0{name}")
    return sa.Table(table, metadata, *_times(), _id(), sa.Column(name, of, nullable=nullable), unique)


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
consumer_types = _names("consumer_types", "name", sa.Unicode(255))

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

projects = _names("projects", "external_id", sa.String(255))
users = _names("users", "external_id", sa.String(255))

# Standard classes have fixed ids from 0 (VCPU), custom ones begin at 10000.
resource_classes = _names("resource_classes", "name", sa.String(255))

traits = _names("traits", "name", sa.Unicode(255))

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

placement_aggregates = _names("placement_aggregates", "uuid", sa.String(36), nullable=True)

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


def precise(name: str, **options: Any) -> sa.Column[datetime.datetime]:
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
    precise("expires_at", nullable=True),
    sa.Index("claims_expires_at_idx", "expires_at"),
)

#: Whether the time of a lease is over; null, and so not true, for a claim without an end.
LEASE_HAS_EXPIRED: sa.ColumnElement[bool] = claims.c.expires_at <= CLOCK

# --- types ------------------------------------------------------------------------------------------------------------


def exact(length: int) -> sa.types.TypeEngine[str]:
    """Return the type of texts that hold every character and are compared exactly; on MySQL the default is neither."""
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Unicode(length).with_variant(exact, "mysql", "mariadb")


#: Texts of up to 16 MB; MySQL's TEXT ends at 64 KB, and the error of an allocation repeats its traits.
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

#: The tables of the core that other implementations do not know.
OURS = (change_writers, provider_changes, feed_instance, claims)
#: Those of the core; other tables of ``metadata`` are of extensions.
CORE = tuple(metadata.sorted_tables)
