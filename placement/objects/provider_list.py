"""Providers that match a filter.  Each is judged by itself: nothing is shared, no tree helps (contract 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from placement.db.engine import Reading
from placement.db.tables import (
    allocations,
    inventories,
    placement_aggregates,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from placement.objects import capacity
from placement.objects.provider import COLUMNS, ResourceProvider
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait


@dataclass(frozen=True, slots=True)
class Filter:
    """What a provider must be; everything that is given must hold."""

    name: str | None = None
    uuid: str | None = None
    #: The uuid of any member of the wanted tree.
    in_tree: str | None = None
    #: Class -> amount that must find room.
    resources: Mapping[str, int] = field(default_factory=dict)
    #: Of each set one trait, and none of the forbidden.
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    #: Of each set one aggregate, and none of the forbidden.
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()


def matching(db: Reading, wanted: Filter) -> list[ResourceProvider]:
    """The providers that match, in the order of their ids; raises UnknownResourceClass and UnknownTraits."""
    ResourceClass.check(db, list(wanted.resources))
    Trait.check(db, wanted.forbidden.union(*wanted.required))
    query = sa.select(*COLUMNS).order_by(_P.id)
    if wanted.name is not None:
        query = query.where(_P.name == wanted.name)
    if wanted.uuid is not None:
        query = query.where(_P.uuid == wanted.uuid)
    if wanted.in_tree is not None:
        member = ResourceProvider.find(db, wanted.in_tree)
        if member is None:
            return []
        query = query.where(_P.root_provider_id == member.root_id)
    for names in wanted.required:
        query = query.where(_has_trait(names))
    if wanted.forbidden:
        query = query.where(~_has_trait(wanted.forbidden))
    for uuids in wanted.member_of:
        query = query.where(_in_aggregate(uuids))
    if wanted.forbidden_aggregates:
        query = query.where(~_in_aggregate(wanted.forbidden_aggregates))
    found = [provider for row in db.execute(query) if _is_exactly(provider := ResourceProvider(*row), wanted)]
    if wanted.resources:
        roomy = set.intersection(*(_with_room(db, name, amount) for name, amount in wanted.resources.items()))
        found = [provider for provider in found if provider.id in roomy]
    return found


def _is_exactly(provider: ResourceProvider, wanted: Filter) -> bool:
    """Whether name and uuid are spelled as they were asked for; some collations find them in another case, too."""
    return wanted.name in (None, provider.name) and wanted.uuid in (None, provider.uuid)


def _with_room(db: Reading, resource_class: str, amount: int) -> set[int]:
    """The ids of the providers with room for the amount: the database tells what is there, the one rule decides."""
    return {
        row.resource_provider_id
        for row in db.execute(_ROOM, {"name": resource_class})
        if capacity.fits(
            amount,
            int(row.used),
            capacity.capacity(row.total, row.reserved, row.allocation_ratio),
            row.min_unit,
            row.max_unit,
            row.step_size,
        )
    }


def _has_trait(names: frozenset[str]) -> sa.Exists:
    on = resource_provider_traits.c
    return sa.exists().where(on.resource_provider_id == _P.id, on.trait_id == traits.c.id, traits.c.name.in_(names))


def _in_aggregate(uuids: frozenset[str]) -> sa.Exists:
    within, aggregate = resource_provider_aggregates.c, placement_aggregates.c
    return sa.exists().where(
        within.resource_provider_id == _P.id, within.aggregate_id == aggregate.id, aggregate.uuid.in_(uuids)
    )


_P, _I = resource_providers.c, inventories.c
_USED = (
    sa.select(sa.func.sum(allocations.c.used))
    .where(
        allocations.c.resource_provider_id == _I.resource_provider_id,
        allocations.c.resource_class_id == _I.resource_class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
)
_ROOM = (
    sa.select(
        _I.resource_provider_id,
        _I.total,
        _I.reserved,
        _I.min_unit,
        _I.max_unit,
        _I.step_size,
        _I.allocation_ratio,
        sa.func.coalesce(_USED, 0).label("used"),
    )
    .join(resource_classes, resource_classes.c.id == _I.resource_class_id)
    .where(resource_classes.c.name == sa.bindparam("name"))
)
