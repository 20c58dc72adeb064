"""Rows of nodes and allocation records in the snapshots of tests."""

from __future__ import annotations

import sqlalchemy as sa

from placement.extensions.baremetal.tables import baremetal_allocations, baremetal_nodes


def queries(values, uuids):
    """Return queries by name; ``values`` returns the columns to compare, and ``uuids`` selects the rows of the test."""
    columns = baremetal_allocations.c
    return {
        "nodes": sa.select(*values(baremetal_nodes)).where(baremetal_nodes.c.uuid.in_(uuids)),
        "allocations of nodes": sa.select(*values(baremetal_allocations)).where(
            columns.uuid.in_(uuids) | columns.node_uuid.in_(uuids)
        ),
    }
