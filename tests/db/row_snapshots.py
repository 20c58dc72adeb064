"""Rows of some providers, consumers and names, with uuids and names in place of ids, and without times."""

from __future__ import annotations

import sqlalchemy as sa

from placement.db.database import Database
from placement.db.schema.tables import (
    allocations,
    claims,
    consumer_types,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from tests import extension_modules

_UUIDS, _SUFFIX = sa.bindparam("uuids", expanding=True), sa.bindparam("suffix")
_PARENTS, _ROOTS = resource_providers.alias("parents"), resource_providers.alias("roots")
_P, _I, _A, _K = resource_providers.c, inventories.c, allocations.c, consumers.c
_HAS, _IN = resource_provider_traits.c, resource_provider_aggregates.c
_PROVIDER = _P.uuid.in_(_UUIDS)


def _values(table: sa.Table, *excluded: str) -> list[sa.Column[object]]:
    """Return the columns of the table that are neither ids nor times."""
    return [
        column
        for column in table.c
        if not isinstance(column.type, sa.DateTime) and column.name not in ("id", "resource_provider_id", *excluded)
    ]


_QUERIES = {
    "providers": sa.select(_P.uuid, _P.name, _P.generation, _PARENTS.c.uuid, _ROOTS.c.uuid)
    .outerjoin(_PARENTS, _PARENTS.c.id == _P.parent_provider_id)
    .outerjoin(_ROOTS, _ROOTS.c.id == _P.root_provider_id)
    .where(_PROVIDER),
    "inventories": sa.select(_P.uuid, resource_classes.c.name, *_values(inventories, "resource_class_id"))
    .join_from(inventories, resource_providers, _P.id == _I.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _I.resource_class_id)
    .where(_PROVIDER),
    "traits of providers": sa.select(_P.uuid, traits.c.name)
    .join_from(resource_provider_traits, resource_providers, _P.id == _HAS.resource_provider_id)
    .join(traits, traits.c.id == _HAS.trait_id)
    .where(_PROVIDER),
    "aggregates": sa.select(_P.uuid, placement_aggregates.c.uuid)
    .join_from(resource_provider_aggregates, resource_providers, _P.id == _IN.resource_provider_id)
    .join(placement_aggregates, placement_aggregates.c.id == _IN.aggregate_id)
    .where(_PROVIDER),
    "allocations": sa.select(_P.uuid, _A.consumer_id, resource_classes.c.name, _A.used)
    .join_from(allocations, resource_providers, _P.id == _A.resource_provider_id)
    .join(resource_classes, resource_classes.c.id == _A.resource_class_id)
    .where(_PROVIDER | _A.consumer_id.in_(_UUIDS)),
    "consumers": sa.select(
        *(_K.uuid, _K.generation, projects.c.external_id, users.c.external_id, consumer_types.c.name)
    )
    .outerjoin(projects, projects.c.id == _K.project_id)
    .outerjoin(users, users.c.id == _K.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == _K.consumer_type_id)
    .where(_K.uuid.in_(_UUIDS)),
    # The digest of a request contains its uuids, so it differs in each run.
    "claims": sa.select(
        *(_K.uuid, claims.c.generation, claims.c.mappings, claims.c.content.is_(None), claims.c.expires_at.is_(None))
    )
    .join_from(claims, consumers, _K.id == claims.c.consumer_id)
    .where(_K.uuid.in_(_UUIDS)),
    "classes": sa.select(resource_classes.c.name).where(resource_classes.c.name.like(_SUFFIX)),
    "traits": sa.select(traits.c.name).where(traits.c.name.like(_SUFFIX)),
}
for _module in extension_modules.load("db", "snapshots"):
    _QUERIES |= _module.queries(_values, _UUIDS)


def read(database: Database, uuids: list[str], suffix: str) -> dict[str, list[str]]:
    """Return the rows of these uuids, and of names with this suffix, as texts by kind."""
    parameters = {"uuids": uuids, "suffix": f"%{suffix}"}

    return database.read(
        lambda db: {
            kind: [str(tuple(row)) for row in db.execute(query, parameters)] for kind, query in _QUERIES.items()
        }
    )
