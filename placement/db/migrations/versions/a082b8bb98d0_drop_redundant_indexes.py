"""Drop indexes whose columns lead a unique index anyway."""

from __future__ import annotations

from placement.db.migrations import steps

revision = "a082b8bb98d0"
down_revision = "422ece571366"


def upgrade() -> None:
    """Drop five indexes."""
    steps.drop_index("inventories_resource_provider_id_idx", "inventories")
    steps.drop_index("inventories_resource_provider_resource_class_idx", "inventories")
    steps.drop_index("ix_placement_aggregates_uuid", "placement_aggregates")
    steps.drop_index("resource_providers_name_idx", "resource_providers")
    steps.drop_index("resource_providers_uuid_idx", "resource_providers")
