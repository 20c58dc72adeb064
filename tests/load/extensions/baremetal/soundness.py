"""Invariants of the rows of nodes and allocation records (tests/load/soundness.py)."""

from __future__ import annotations

#: The unit of an unavailable node is reserved, whether or not a consumer holds it.
MAY_BE_OVER_COMMITTED = """EXISTS (
    SELECT * FROM resource_providers JOIN baremetal_nodes ON baremetal_nodes.uuid = resource_providers.uuid
    WHERE resource_providers.id = inventories.resource_provider_id)"""

#: A query for each flaw, which returns the uuids of its rows.
FLAWS = {
    "a node with two holders": """
        SELECT baremetal_nodes.uuid FROM baremetal_nodes
        JOIN resource_providers ON resource_providers.uuid = baremetal_nodes.uuid
        JOIN allocations ON allocations.resource_provider_id = resource_providers.id
        GROUP BY baremetal_nodes.uuid HAVING COUNT(*) > 1 OR SUM(used) > 1""",
    "a node without a provider": """
        SELECT uuid FROM baremetal_nodes WHERE uuid NOT IN (SELECT uuid FROM resource_providers)""",
    "a node that is available and reserved, or unavailable and not reserved": """
        SELECT baremetal_nodes.uuid FROM inventories
        JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id
        JOIN baremetal_nodes ON baremetal_nodes.uuid = resource_providers.uuid
        WHERE reserved <> CASE WHEN provision_state = 'available' AND power_state IS NOT NULL
        AND power_state <> 'error' AND NOT maintenance AND parent_node IS NULL THEN 0 ELSE 1 END""",
    "a holder of type BAREMETAL without an allocation record": """
        SELECT uuid FROM consumers WHERE consumer_type_id IN (SELECT id FROM consumer_types WHERE name = 'BAREMETAL')
        AND uuid NOT IN (SELECT uuid FROM baremetal_allocations WHERE node_uuid IS NOT NULL)""",
    "a record that is neither active nor in error": """
        SELECT uuid FROM baremetal_allocations WHERE (node_uuid IS NULL) = (last_error IS NULL)""",
}
