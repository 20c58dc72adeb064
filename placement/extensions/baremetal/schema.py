"""The tables of the Bare Metal API as an addition to the schema, and the removal of ended records."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from placement.db.database import Database
from placement.db.schema import schema
from placement.db.upkeep import sweep
from placement.extensions.baremetal.tables import RECORD_IS_LIVE, TABLES, baremetal_allocations, baremetal_nodes


def _losses(connection: Connection) -> str:
    nodes, records = (schema.rows(connection, table) for table in (baremetal_nodes, baremetal_allocations))
    if not nodes and not records:
        return ""
    return (
        f"The database contains {nodes} nodes and {records} allocation records of the Bare Metal API, which would be "
        'lost; their providers and claims stay. "db release" drops them with --discard-baremetal.'
    )


ADDITION = schema.Addition(TABLES, _losses)


def remove_ended_records(database: Database) -> list[sweep.Swept]:
    """Remove ended allocation records.

    No delay is necessary: no transaction refers to an ended record, and a claim for the same uuid inserts a new row.
    """
    ended = sweep.remove(database, baremetal_allocations, ~RECORD_IS_LIVE)
    return [sweep.Swept(baremetal_allocations.name, ended, 0)]
