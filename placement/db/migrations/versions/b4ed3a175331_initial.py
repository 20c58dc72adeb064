"""All tables except consumer types."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from placement.db.migrations import steps

revision = "b4ed3a175331"
down_revision = None


def upgrade() -> None:
    """Create the tables with their indexes; referenced tables come first."""
    _create_provider_table()
    _create_amount_tables()
    _create_consumer_table()
    _create_name_tables()
    _create_membership_tables()


def _create_table(name: str, *items: sa.schema.SchemaItem) -> None:
    times = (sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime))
    steps.create_table(name, *times, *items)


def _id() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True, nullable=False)


def _required_column(name: str, kind: Any = sa.Integer) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _create_provider_table() -> None:
    _create_table(
        "resource_providers",
        _id(),
        _required_column("uuid", sa.String(36)),
        sa.Column("name", sa.Unicode(200)),
        sa.Column("generation", sa.Integer),
        sa.Column("root_provider_id", sa.Integer),
        sa.Column("parent_provider_id", sa.Integer),
        sa.ForeignKeyConstraint(["parent_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["root_provider_id"], ["resource_providers.id"]),
        sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
        sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    )
    steps.create_index("resource_providers_name_idx", "resource_providers", ["name"])
    steps.create_index("resource_providers_parent_provider_id_idx", "resource_providers", ["parent_provider_id"])
    steps.create_index("resource_providers_root_provider_id_idx", "resource_providers", ["root_provider_id"])
    steps.create_index("resource_providers_uuid_idx", "resource_providers", ["uuid"])


def _create_amount_tables() -> None:
    _create_table(
        "inventories",
        _id(),
        _required_column("resource_provider_id"),
        _required_column("resource_class_id"),
        _required_column("total"),
        _required_column("reserved"),
        _required_column("min_unit"),
        _required_column("max_unit"),
        _required_column("step_size"),
        _required_column("allocation_ratio", sa.Float),
        sa.UniqueConstraint(
            "resource_provider_id", "resource_class_id", name="uniq_inventories0resource_provider_resource_class"
        ),
    )
    provider_and_class = ["resource_provider_id", "resource_class_id"]
    steps.create_index("inventories_resource_class_id_idx", "inventories", ["resource_class_id"])
    steps.create_index("inventories_resource_provider_id_idx", "inventories", ["resource_provider_id"])
    steps.create_index("inventories_resource_provider_resource_class_idx", "inventories", provider_and_class)

    _create_table(
        "allocations",
        _id(),
        _required_column("resource_provider_id"),
        _required_column("consumer_id", sa.String(36)),
        _required_column("resource_class_id"),
        _required_column("used"),
    )
    steps.create_index("allocations_resource_provider_class_used_idx", "allocations", [*provider_and_class, "used"])
    steps.create_index("allocations_resource_class_id_idx", "allocations", ["resource_class_id"])
    steps.create_index("allocations_consumer_id_idx", "allocations", ["consumer_id"])


def _create_consumer_table() -> None:
    _create_table(
        "consumers",
        _id(),
        _required_column("uuid", sa.String(36)),
        _required_column("project_id"),
        _required_column("user_id"),
        sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    )
    steps.create_index("consumers_project_id_user_id_uuid_idx", "consumers", ["project_id", "user_id", "uuid"])
    steps.create_index("consumers_project_id_uuid_idx", "consumers", ["project_id", "uuid"])


def _create_name_tables() -> None:
    """Create the tables of names with ids."""
    for name, column, kind, required in (
        ("projects", "external_id", sa.String(255), True),
        ("users", "external_id", sa.String(255), True),
        ("resource_classes", "name", sa.String(255), True),
        ("traits", "name", sa.Unicode(255), True),
        ("placement_aggregates", "uuid", sa.String(36), False),
    ):
        unique = sa.UniqueConstraint(column, name=f"uniq_{name}0{column}")
        _create_table(name, _id(), sa.Column(column, kind, nullable=not required), unique)
    steps.create_index("ix_placement_aggregates_uuid", "placement_aggregates", ["uuid"])


def _create_membership_tables() -> None:
    """Create the tables of pairs of ids: the traits and aggregates of providers."""
    _create_table(
        "resource_provider_traits",
        _required_column("trait_id"),
        _required_column("resource_provider_id"),
        sa.ForeignKeyConstraint(["resource_provider_id"], ["resource_providers.id"]),
        sa.ForeignKeyConstraint(["trait_id"], ["traits.id"]),
        sa.PrimaryKeyConstraint("trait_id", "resource_provider_id"),
    )
    steps.create_index(
        "resource_provider_traits_resource_provider_trait_idx",
        "resource_provider_traits",
        ["resource_provider_id", "trait_id"],
    )
    _create_table(
        "resource_provider_aggregates",
        _required_column("resource_provider_id"),
        _required_column("aggregate_id"),
        sa.PrimaryKeyConstraint("resource_provider_id", "aggregate_id"),
    )
    steps.create_index(
        "resource_provider_aggregates_aggregate_id_idx", "resource_provider_aggregates", ["aggregate_id"]
    )
