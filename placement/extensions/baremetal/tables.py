"""The tables of nodes and allocation records."""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.schema.tables import LONG_TEXT, allocations, exact, metadata, precise, resource_providers, utcnow

# A node, beside its resource provider of the same uuid: traits, inventory and holder belong to the provider.
baremetal_nodes = sa.Table(
    "baremetal_nodes",
    metadata,
    precise("created_at", nullable=False, default=utcnow),
    precise("updated_at", nullable=True),
    sa.Column("id", sa.Integer, primary_key=True, nullable=False),
    sa.Column("uuid", sa.String(36), nullable=False, info={"like": resource_providers.c.uuid}),
    sa.Column("name", exact(255), nullable=True),
    sa.Column("driver", exact(255), nullable=False),
    sa.Column("resource_class", exact(80), nullable=True),
    sa.Column("owner", exact(255), nullable=True),
    sa.Column("lessee", exact(255), nullable=True),
    sa.Column("parent_node", sa.String(36), nullable=True, info={"like": resource_providers.c.uuid}),
    sa.Column("provision_state", sa.String(32), nullable=True),
    sa.Column("target_provision_state", sa.String(32), nullable=True),
    precise("provision_updated_at", nullable=True),
    sa.Column("power_state", sa.String(32), nullable=True),
    sa.Column("target_power_state", sa.String(32), nullable=True),
    sa.Column("maintenance", sa.Boolean, nullable=False, default=False),
    # Descriptive fields, by their names in the API.
    sa.Column("details", sa.JSON, nullable=False),
    sa.UniqueConstraint("uuid", name="uniq_baremetal_nodes0uuid"),
    sa.UniqueConstraint("name", name="uniq_baremetal_nodes0name"),
    sa.Index("baremetal_nodes_class_state_idx", "resource_class", "provision_state"),
    sa.Index("baremetal_nodes_owner_idx", "owner", "resource_class", "provision_state"),
    sa.Index("baremetal_nodes_lessee_idx", "lessee", "resource_class", "provision_state"),
    sqlite_autoincrement=True,
    info={"objects": "node"},  # the history finds them by uuid and name
)

# A request for a node and its outcome: active if it names a node, otherwise in error.
baremetal_allocations = sa.Table(
    "baremetal_allocations",
    metadata,
    precise("created_at", nullable=False, default=utcnow),
    precise("updated_at", nullable=True),
    sa.Column("id", sa.Integer, primary_key=True, nullable=False),
    sa.Column("uuid", sa.String(36), nullable=False, info={"like": allocations.c.consumer_id}),
    sa.Column("name", exact(255), nullable=True),
    sa.Column("node_uuid", sa.String(36), nullable=True, info={"like": resource_providers.c.uuid}),
    sa.Column("resource_class", exact(80), nullable=True),
    sa.Column("owner", exact(255), nullable=True),
    sa.Column("traits", sa.JSON, nullable=False),
    sa.Column("candidate_nodes", sa.JSON, nullable=False),
    sa.Column("extra", sa.JSON, nullable=False),
    sa.Column("last_error", LONG_TEXT, nullable=True),
    sa.UniqueConstraint("uuid", name="uniq_baremetal_allocations0uuid"),
    sa.UniqueConstraint("name", name="uniq_baremetal_allocations0name"),
    sa.UniqueConstraint("node_uuid", name="uniq_baremetal_allocations0node_uuid"),
    sa.Index("baremetal_allocations_class_idx", "resource_class"),
    sa.Index("baremetal_allocations_owner_idx", "owner"),
    sqlite_autoincrement=True,
)

#: Whether an allocation record has not ended: it is in error, or the consumer of its uuid has an allocation of the
#: node's provider.
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

TABLES = (baremetal_nodes, baremetal_allocations)
