"""Removal of indexes whose columns are a prefix of a unique index."""

from __future__ import annotations

from placement.db.migrations import steps

revision = "a082b8bb98d0"
down_revision = "422ece571366"


_INDEXES = (
    ("inventories_resource_provider_id_idx", "inventories", ["resource_provider_id"]),
    (
        "inventories_resource_provider_resource_class_idx",
        "inventories",
        ["resource_provider_id", "resource_class_id"],
    ),
    ("ix_placement_aggregates_uuid", "placement_aggregates", ["uuid"]),
    ("resource_providers_name_idx", "resource_providers", ["name"]),
    ("resource_providers_uuid_idx", "resource_providers", ["uuid"]),
)


def upgrade() -> None:
    """Drop five indexes."""
    for name, table, _ in _INDEXES:
        steps.drop_index(name, table)


def downgrade() -> None:
    """Create the five indexes again, for a Placement that does not know this revision."""
    for name, table, columns in _INDEXES:
        steps.create_index(name, table, columns)
