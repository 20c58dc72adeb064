"""The tables: those of every Placement database (contract section 6), then our own.

A row of the first kind may have been written by another implementation, and may be read by one again; their names,
types and indexes are facts.  Our own tables stand apart, so that they can be added and dropped without touching those.
"""

from __future__ import annotations

import datetime

import sqlalchemy as sa

metadata = sa.MetaData()


def utcnow() -> datetime.datetime:
    """Now, as the tables keep time: UTC without a zone."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def touch_of(table: sa.Table) -> sa.ColumnElement[datetime.datetime]:
    """What ``updated_at`` of the table becomes in rows that are written only so that they are written.

    It is another value in any case: a row that stays what it is is not written at all, on MySQL.
    """
    same = table.c.updated_at == sa.bindparam("now", type_=sa.DateTime)
    return sa.case((same, sa.bindparam("before", type_=sa.DateTime)), else_=sa.bindparam("now", type_=sa.DateTime))


def touched() -> dict[str, datetime.datetime]:
    """The parameters of ``touch_of``: whole seconds, which is what MySQL keeps."""
    now = utcnow().replace(microsecond=0)
    return {"now": now, "before": now - datetime.timedelta(seconds=1)}


def _times() -> list[sa.Column[datetime.datetime]]:
    return [
        sa.Column("created_at", sa.DateTime, nullable=True, default=utcnow),
        sa.Column("updated_at", sa.DateTime, nullable=True, onupdate=utcnow),
    ]


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


# A provider: something that has inventory.  A root has its own id as root_provider_id and no parent.
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

# What a provider has of one resource class.  The ratio is single precision on MySQL.
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
    sa.Column("allocation_ratio", sa.Float, nullable=False),
    sa.UniqueConstraint(
        "resource_provider_id",
        "resource_class_id",
        name="uniq_inventories0resource_provider_resource_class",
    ),
    sa.Index("inventories_resource_class_id_idx", "resource_class_id"),
)

# What a consumer holds of one class on one provider.  consumer_id is the consumer's *uuid*.
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

# What kind of thing a consumer is; a consumer without one is shown as "unknown".
consumer_types = sa.Table(
    "consumer_types",
    metadata,
    *_times(),
    _id(),
    sa.Column("name", sa.Unicode(255), nullable=False),
    sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
)

# What holds allocations.  The row lives exactly as long as the consumer holds something.
consumers = sa.Table(
    "consumers",
    metadata,
    *_times(),
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


# --- our own ---------------------------------------------------------------------------------------------------------

# One thread of one process that writes; its transactions are numbered 1, 2, 3 ... and commit in that order.
# Both times are the database's own, so that the clocks of hosts do not matter.
change_writers = sa.Table(
    "change_writers",
    metadata,
    _id(),
    sa.Column("started_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sa.Column("seen_at", sa.DateTime, nullable=False, server_default=sa.func.now()),
    sqlite_autoincrement=True,
)

# What one transaction changed: a provider's usage or shape, its end, or (provider 0) the names of classes.
# The foreign key makes it certain that no transaction writes under the number of a writer that was cleared away.
provider_changes = sa.Table(
    "provider_changes",
    metadata,
    sa.Column("writer_id", sa.Integer, sa.ForeignKey("change_writers.id"), primary_key=True, nullable=False),
    sa.Column("seq", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("provider_id", sa.Integer, primary_key=True, nullable=False, autoincrement=False),
    sa.Column("what", sa.String(8), nullable=False),
)

# One row: the identity of this database's feed.  Another uuid means that the database was replaced.
feed_instance = sa.Table(
    "feed_instance",
    metadata,
    sa.Column("uuid", sa.String(36), primary_key=True, nullable=False),
)

OURS = (change_writers, provider_changes, feed_instance)
