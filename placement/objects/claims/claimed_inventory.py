"""The inventories and the usage by which claims are judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement import errors
from placement.db import batches
from placement.db.engine.compiled import CompiledStatement
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.writes.transaction import Reading
from placement.objects import capacity
from placement.objects.provider import GENERATION

#: Providers per statement.  For 200 values or more, MySQL estimates the matching rows roughly, and may read the table.
_BATCH_SIZE = 150


@dataclass(frozen=True, slots=True)
class ClaimedInventory:
    """The inventory of one class on one provider, with its usage.

    It is valid while the provider is locked: the usage of other consumers can decrease, but not increase.
    """

    provider: str
    resource_class: str
    class_id: int
    capacity: float
    min_unit: int
    max_unit: int
    step_size: int
    #: The sum of all allocations.
    used: int
    provider_generation: int

    @classmethod
    def read(
        cls, db: Reading, providers: Mapping[int, str], class_names: Collection[str]
    ) -> dict[tuple[str, str], Self]:
        """Return the inventories of these classes on these providers, by provider uuid and class name.

        Args:
            providers: Uuids by id.
        """
        rows = batches.rows(db, _READ, "providers", providers, _BATCH_SIZE, names=list(class_names))
        return {
            (providers[row.provider_id], row.name): cls(
                provider=providers[row.provider_id],
                resource_class=row.name,
                class_id=row.class_id,
                capacity=capacity.capacity(row.total, row.reserved, row.allocation_ratio),
                min_unit=row.min_unit,
                max_unit=row.max_unit,
                step_size=row.step_size or 1,  # other implementations may have written 0, which divides by zero
                used=int(row.used),
                provider_generation=row.generation,
            )
            for row in rows
        }

    def check(self, amount: int, total: int, used_by_others: int, released: int) -> None:
        """Raise a failure if a claim for this amount does not fit.

        Args:
            amount: The amount of one claim.
            total: The sum of the amounts of all claims that are judged together.
            used_by_others: The sum of the amounts of other consumers.
            released: The sum of the current amounts of the claims' consumers, which the claims replace.

        Raises:
            AmountAgainstConstraints: The amount violates the unit constraints.
            CapacityExceeded: The total does not fit in addition to the amounts of other consumers.
        """
        if not capacity.within_units(amount, self.min_unit, self.max_unit, self.step_size):
            raise errors.AmountAgainstConstraints(resource_class=self.resource_class, uuid=self.provider)
        # In an over-committed inventory, consumers may still keep or reduce their amounts.
        if not capacity.within_capacity(total, used_by_others, self.capacity) and total > released:
            raise errors.CapacityExceeded(resource_class=self.resource_class, uuid=self.provider)


_A, _I, _C = allocations.c, inventories.c, resource_classes.c


_USED = (
    # Without other columns, the database reads only an index.
    sa.select(sa.func.coalesce(sa.func.sum(_A.used), 0))
    .where(_A.resource_provider_id == _I.resource_provider_id, _A.resource_class_id == _I.resource_class_id)
    .correlate(inventories)
    .scalar_subquery()
)
_GENERATION = (
    sa.select(GENERATION)
    .where(resource_providers.c.id == _I.resource_provider_id)
    .correlate(inventories)
    .scalar_subquery()
)
_READ = CompiledStatement(
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
        _USED.label("used"),
        _GENERATION.label("generation"),
    )
    .select_from(inventories)
    # ``+ 0`` keeps MySQL from joining in the other order: with stale statistics it would begin with the classes, and
    # read the inventories of all providers.
    .join(resource_classes, _C.id == _I.resource_class_id + 0)
    .where(
        _I.resource_provider_id.in_(sa.bindparam("providers", expanding=True)),
        _C.name.in_(sa.bindparam("names", expanding=True)),
    )
)
