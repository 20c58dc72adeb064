"""Trees on which consumers hold resources."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa

from placement.db import batches
from placement.db.schema.tables import resource_provider_traits, resource_providers, traits
from placement.db.writes.transaction import Reading

_SHARES = "MISC_SHARES_VIA_AGGREGATE"


class Tree(NamedTuple):
    """The tree of a provider."""

    #: Uuid and name of the root.
    uuid: str
    name: str | None
    #: Whether the provider is a sharing provider.
    is_sharing: bool


def trees_of(db: Reading, providers: Collection[str]) -> dict[str, Tree]:
    """Return the tree of each provider, by the uuid of the provider; providers that do not exist are left out."""
    return {
        # A provider in an older database may have no root.
        row.uuid: Tree(row.root or row.uuid, row.root_name if row.root else row.name, bool(row.shares))
        for row in batches.rows(db, _TREES, "uuids", sorted(providers))
    }


_P, _ROOT = resource_providers.c, resource_providers.alias("root")
_SHARING = (
    sa.select(resource_provider_traits.c.resource_provider_id)
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(traits.c.name == _SHARES, resource_provider_traits.c.resource_provider_id == _P.id)
    .limit(1)
    .scalar_subquery()
)
_UUIDS: sa.BindParameter[Any] = sa.bindparam("uuids", expanding=True)
_TREES = (
    sa.select(
        *(_P.uuid, _P.name, _ROOT.c.uuid.label("root"), _ROOT.c.name.label("root_name")),
        _SHARING.is_not(None).label("shares"),
    )
    .select_from(resource_providers.outerjoin(_ROOT, _ROOT.c.id == _P.root_provider_id))
    .where(_P.uuid.in_(_UUIDS))
)
