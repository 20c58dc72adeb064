"""Inventories that a set of claims asks for, with their usage; whether the claims fit is decided from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from placement import errors
from placement.db.engine.packed import PackedQuery
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.writes.transaction import Reading
from placement.objects import capacity
from placement.objects.provider import GENERATION

#: Providers in one statement: of 200 values and more MySQL guesses how many rows they have, and may read all rows.
_MANY = 150


@dataclass(frozen=True, slots=True)
class ClaimedInventory:
    """The inventory of one class on one provider, and how much of it is in use.

    It is valid for as long as the provider is locked: usage of others can shrink then, but not grow.
    """

    provider: str
    resource_class: str
    class_id: int
    capacity: float
    min_unit: int
    max_unit: int
    step_size: int
    #: The amount that all consumers hold.
    used: int
    #: The part of ``used`` that the consumers of the claims hold, and give up for them.
    used_by_claimants: int
    #: That of the provider; None if it was not asked for.
    provider_generation: int | None = None

    @classmethod
    def read(
        cls,
        db: Reading,
        providers: Mapping[int, str],
        class_names: Collection[str],
        holders: Collection[str],
        *,
        generations: bool = False,
    ) -> dict[tuple[str, str], Self]:
        """Return the inventories of these classes on these providers, by provider uuid and class name.

        Args:
            providers: Uuids by id.
            holders: The uuids of those consumers of the claims that hold something.
            generations: Whether the providers' generations are read.
        """
        query, facts = _READ[bool(holders), generations], {"names": list(class_names)}
        if holders:
            facts["holders"] = list(holders)
        ids = list(providers)
        batches = [ids[start : start + _MANY] for start in range(0, len(ids), _MANY)]
        return {
            (providers[row.provider_id], row.name): cls(
                provider=providers[row.provider_id],
                resource_class=row.name,
                class_id=row.class_id,
                capacity=capacity.capacity(row.total, row.reserved, row.allocation_ratio),
                min_unit=row.min_unit,
                max_unit=row.max_unit,
                step_size=row.step_size or 1,  # other implementations may have written 0, a division by zero
                used=int(row.used),
                used_by_claimants=int(row.used_by_claimants),
                provider_generation=row.generation if generations else None,
            )
            for batch in batches
            for row in db.execute(query, {"providers": batch, **facts})
        }

    def check(self, amount: int, total: int) -> None:
        """Raise a failure if a claim for this amount does not fit.

        Args:
            amount: What one claim asks for.
            total: What all claims of the set ask for together.

        Raises:
            AmountAgainstConstraints: No consumer may hold this amount at once.
            CapacityExceeded: The total does not fit beside what others use.
        """
        if not capacity.within_units(amount, self.min_unit, self.max_unit, self.step_size):
            raise errors.AmountAgainstConstraints(resource_class=self.resource_class, uuid=self.provider)
        used_by_others = self.used - self.used_by_claimants
        # Where inventory was cut below what is used, its consumers may still keep or lower what they hold.
        if not capacity.has_room(total, used_by_others, self.capacity) and total > self.used_by_claimants:
            raise errors.CapacityExceeded(resource_class=self.resource_class, uuid=self.provider)


def _among(name: str) -> sa.BindParameter[Any]:
    return sa.bindparam(name, expanding=True)


_A, _I, _C = allocations.c, inventories.c, resource_classes.c


def _sum_used(*conditions: Any) -> sa.ScalarSelect[int]:
    """Return the query for the usage of one inventory; without further conditions the database reads an index only."""
    return (
        sa.select(sa.func.sum(_A.used))
        .where(_A.resource_provider_id == _I.resource_provider_id, _A.resource_class_id == _I.resource_class_id)
        .where(*conditions)
        .correlate(inventories)
        .scalar_subquery()
    )


def _read(used_by_claimants: sa.ColumnElement[Any], *generation: sa.ColumnElement[Any]) -> PackedQuery:
    return PackedQuery(
        sa.select(
            _I.resource_provider_id.label("provider_id"),
            _C.name,
            _C.id.label("class_id"),
            _I.total,
            _I.reserved,
            _I.min_unit,
            _I.max_unit,
            _I.step_size,
            _I.allocation_ratio,
            sa.func.coalesce(_sum_used(), 0).label("used"),
            sa.func.coalesce(used_by_claimants, 0).label("used_by_claimants"),
            *generation,
        )
        .select_from(inventories)
        # With a sum in place of the column no index of classes leads to inventories.  MySQL would begin with the
        # classes where its statistics are old, and read the inventories of all providers.
        .join(resource_classes, _C.id == _I.resource_class_id + 0)
        .where(_I.resource_provider_id.in_(_among("providers")), _C.name.in_(_among("names")))
    )


_GENERATION = (
    sa.select(GENERATION)
    .where(resource_providers.c.id == _I.resource_provider_id)
    .correlate(inventories)
    .scalar_subquery()
    .label("generation")
)
_NONE: sa.ColumnElement[Any] = sa.literal_column("0")
_BY_HOLDERS = _sum_used(_A.consumer_id.in_(_among("holders")))
#: By whether there are holders, and whether generations are read.
_READ = {
    (False, False): _read(_NONE),
    (True, False): _read(_BY_HOLDERS),
    (False, True): _read(_NONE, _GENERATION),
    (True, True): _read(_BY_HOLDERS, _GENERATION),
}
