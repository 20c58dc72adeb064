"""Invariants of the rows of any Placement database.

A violating row is named by the uuid of its provider or consumer, if it has one.
"""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.database import Database
from tests import extension_modules, history_checks

#: Modules of extensions, which add queries for flaws (FLAWS) and conditions on inventories that may be over-committed
#: (MAY_BE_OVER_COMMITTED).
_ADDED = extension_modules.load("load", "soundness")
_FLAWS = {
    "a consumer that holds nothing": """
        SELECT uuid FROM consumers WHERE NOT EXISTS (SELECT * FROM allocations WHERE consumer_id = consumers.uuid)""",
    "an allocation of a missing consumer": """
        SELECT consumer_id FROM allocations
        WHERE NOT EXISTS (SELECT * FROM consumers WHERE uuid = allocations.consumer_id)""",
    "a consumer of a missing project": """
        SELECT uuid FROM consumers WHERE project_id NOT IN (SELECT id FROM projects)""",
    "a consumer of a missing user": """
        SELECT uuid FROM consumers WHERE user_id NOT IN (SELECT id FROM users)""",
    "a consumer of a missing type": """
        SELECT uuid FROM consumers
        WHERE consumer_type_id IS NOT NULL AND consumer_type_id NOT IN (SELECT id FROM consumer_types)""",
    "the same allocation twice": """
        SELECT consumer_id FROM allocations
        GROUP BY consumer_id, resource_provider_id, resource_class_id HAVING COUNT(*) > 1""",
    "an allocation without inventory": """
        SELECT consumer_id FROM allocations WHERE NOT EXISTS (
            SELECT * FROM inventories WHERE resource_provider_id = allocations.resource_provider_id
            AND resource_class_id = allocations.resource_class_id)""",
    "usage above the capacity": """
        SELECT (SELECT uuid FROM resource_providers WHERE id = inventories.resource_provider_id)
        FROM inventories WHERE (total - reserved) * allocation_ratio < (
            SELECT SUM(used) FROM allocations WHERE resource_provider_id = inventories.resource_provider_id
            AND resource_class_id = inventories.resource_class_id)"""
    + "".join(f" AND NOT {module.MAY_BE_OVER_COMMITTED}" for module in _ADDED),
    "a claim of a missing consumer": """
        SELECT consumer_id FROM claims WHERE consumer_id NOT IN (SELECT id FROM consumers)""",
    "a claim with a generation above the generation of its consumer": """
        SELECT consumers.uuid FROM claims JOIN consumers ON consumers.id = claims.consumer_id
        WHERE claims.generation > consumers.generation""",
    "an inventory of a missing class": """
        SELECT id FROM inventories WHERE resource_class_id NOT IN (SELECT id FROM resource_classes)""",
    "an inventory of a missing provider": """
        SELECT id FROM inventories WHERE resource_provider_id NOT IN (SELECT id FROM resource_providers)""",
    "a trait of a missing provider": """
        SELECT trait_id FROM resource_provider_traits
        WHERE resource_provider_id NOT IN (SELECT id FROM resource_providers)""",
    "a provider with a missing trait": """
        SELECT trait_id FROM resource_provider_traits WHERE trait_id NOT IN (SELECT id FROM traits)""",
    "an aggregate of a missing provider": """
        SELECT aggregate_id FROM resource_provider_aggregates
        WHERE resource_provider_id NOT IN (SELECT id FROM resource_providers)""",
    "a provider in a missing aggregate": """
        SELECT aggregate_id FROM resource_provider_aggregates
        WHERE aggregate_id NOT IN (SELECT id FROM placement_aggregates)""",
    "a root that is not its own root": """
        SELECT uuid FROM resource_providers WHERE parent_provider_id IS NULL
        AND (root_provider_id IS NULL OR root_provider_id <> id)""",
    "a child in another tree than its parent": """
        SELECT child.uuid FROM resource_providers child JOIN resource_providers parent
        ON parent.id = child.parent_provider_id WHERE child.root_provider_id <> parent.root_provider_id""",
    "a child of a missing parent": """
        SELECT child.uuid FROM resource_providers child LEFT JOIN resource_providers parent
        ON parent.id = child.parent_provider_id WHERE child.parent_provider_id IS NOT NULL AND parent.id IS NULL""",
    **{flaw: query for module in _ADDED for flaw, query in module.FLAWS.items()},
}


def flaws(database: Database) -> dict[str, list[object]]:
    """Return the violated invariants, with their rows, and the events that contradict the tables."""
    violations = flaws_of_rows(database.engine)
    untrue: list[object] = [*history_checks.untruths(database)]
    return violations | {"an event that contradicts the tables": untrue} if untrue else violations


def flaws_of_rows(engine: sa.Engine) -> dict[str, list[object]]:
    """Return the violated invariants, with their rows."""
    with engine.connect() as connection:
        violations = {flaw: list(connection.execute(sa.text(query)).scalars()) for flaw, query in _FLAWS.items()}
    return {flaw: rows for flaw, rows in violations.items() if rows}
