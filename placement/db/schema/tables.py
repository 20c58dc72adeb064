"""The tables of every Placement database, and the tables of the change feed and of claims.

Other implementations read and write the shared tables, so their names, types and indexes are fixed.  Only this service
uses the tables of the feed and of claims, which can be created and dropped without changing the shared tables
(docs: database-schema).  Extensions add their tables to ``metadata``.
"""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement.db.schema.clock import CLOCK

metadata = sa.MetaData()

#: Maximum allocation ratio: the largest number of single precision, which MySQL stores.  Capacities stay finite.
LARGEST_RATIO = 3.40282e38


class Ratio(sa.types.TypeDecorator[float]):
    """An allocation ratio, which is read as a finite number.

    PostgreSQL and SQLite store any value that other implementations write.  Infinity is read as the largest ratio, and
    NaN, which only PostgreSQL stores, as 0.
    """

    impl = sa.Float
    cache_ok = True

    def process_result_value(self, value: float | None, dialect: sa.Dialect) -> float | None:  # noqa: ARG002
        """Return the finite ratio for the value of a row."""
        if value is None or -LARGEST_RATIO <= value <= LARGEST_RATIO:
            return value
        return 0.0 if value != value else max(-LARGEST_RATIO, min(value, LARGEST_RATIO))


def utcnow() -> datetime.datetime:
    """Return the current time in the form of the tables: UTC, naive."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def touch_value(table: sa.Table) -> sa.ColumnElement[datetime.datetime]:
    """Return the new value of ``updated_at`` for an UPDATE that changes nothing else; bind :func:`touch_parameters`.

    It always differs from the old value, because MySQL neither writes nor locks a row that an UPDATE does not change.
    """
    same = table.c.updated_at == sa.bindparam("now", type_=sa.DateTime)
    return sa.case((same, sa.bindparam("before", type_=sa.DateTime)), else_=sa.bindparam("now", type_=sa.DateTime))


def touch_parameters() -> dict[str, datetime.datetime]:
    """Return the parameters of :func:`touch_value`: times in whole seconds, since MySQL stores no fractions."""
    now = utcnow().replace(microsecond=0)
    return {"now": now, "before": now - datetime.timedelta(seconds=1)}


def _times(created: Any = utcnow) -> list[sa.Column[datetime.datetime]]:
    return [
        sa.Column("created_at", sa.DateTime, nullable=True, default=created),
        sa.Column("updated_at", sa.DateTime, nullable=True, onupdate=utcnow),
    ]


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


def _names(table: str, name: str, kind: sa.types.TypeEngine[str], *, nullable: bool = False) -> sa.Table:
    """Return a table of unique names with ids."""
    unique = sa.UniqueConstraint(name, name=f"uniq_{table}0{name}")
    return sa.Table(table, metadata, *_times(), _id(), sa.Column(name, kind, nullable=nullable), unique)


# Resource providers.  A root's root_provider_id is its own id; its parent_provider_id is null.
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

# Consumer types; a consumer without a type is shown as "unknown".
consumer_types = _names("consumer_types", "name", sa.Unicode(255))

# Consumers.  A row exists as long as the consumer has allocations.
consumers = sa.Table(
    "consumers",
    metadata,
    *_times(CLOCK),  # because consumers are released by their age on the database's clock
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

# Standard classes have fixed ids from 0 (VCPU); custom classes have ids from 10000.
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
# The database's clock sets both times, so that the clocks of hosts do not matter.
change_writers = sa.Table(
    "change_writers",
    metadata,
    _id(),
    sa.Column("started_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sa.Column("seen_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sqlite_autoincrement=True,
)

# The providers that each transaction changed, and the kind of change; provider 0 for a change that concerns no provider
# (placement/db/feed.py).  The foreign key refuses the transactions of a writer that has been ended.
provider_changes = sa.Table(
    "provider_changes",
    metadata,
    sa.Column("writer_id", sa.Integer, sa.ForeignKey("change_writers.id"), primary_key=True, nullable=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("what", sa.String(8), nullable=False),
)

# One row: the identity of the feed.  When the uuid changes, readers must read everything again.
feed_instance = sa.Table(
    "feed_instance",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True, nullable=False),
)

# --- claims -----------------------------------------------------------------------------------------------------------


def precise(name: str, **options: Any) -> sa.Column[datetime.datetime]:
    """Return a column of times with microseconds, which MySQL does not store by default."""
    return sa.Column(name, sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), **options)


# A consumer's claim, except for its allocations: the request that placed it, and its expiry.  The foreign key deletes
# the row with the consumer's row, even if another implementation deletes the consumer.
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
    # The SHA-256 digest of the request, in hexadecimal; null if the row only records the expiry of a claim.
    sa.Column("content", sa.String(64), nullable=True),
    # The consumer's generation after the claim.  The mappings apply until the consumer has another generation.
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("mappings", sa.JSON, nullable=False),
    # By the database's clock; null: the claim does not expire.
    precise("expires_at", nullable=True),
    sa.Index("claims_expires_at_idx", "expires_at"),
)

#: Whether a lease has expired; null, and so not true, for a claim that does not expire.
LEASE_HAS_EXPIRED: sa.ColumnElement[bool] = claims.c.expires_at <= CLOCK

# --- types ------------------------------------------------------------------------------------------------------------


def exact(length: int) -> sa.types.TypeEngine[str]:
    """Return a type for texts with any characters, compared exactly; MySQL's default type provides neither."""
    variant = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.Unicode(length).with_variant(variant, "mysql", "mariadb")


#: Texts of up to 16 MB; MySQL's TEXT is limited to 64 KB, but the error of an allocation repeats its traits.
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

#: Tables of the core that only this service uses.
OURS = (change_writers, provider_changes, feed_instance, claims)
#: Tables of the core; the other tables in ``metadata`` belong to extensions.
CORE = tuple(metadata.sorted_tables)
