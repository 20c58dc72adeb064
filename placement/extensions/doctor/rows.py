"""Checks of single rows: values that no request accepts, and rows that there should be once, or not at all.

Another program, or a change by hand, has written them; the service reads each of them in one certain way.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from placement.checks.check import Subject, within
from placement.checks.finding import Finding, counted, warning
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.upkeep.standard import CLASS_IDS

_A, _I, _P, _C = allocations.c, inventories.c, resource_providers.c, resource_classes.c
#: Above the largest ratio that a request may have, that of single precision: what is not finite.
_NO_RATIO = 3.41e38


def incomplete_providers(subject: Subject) -> Iterator[Finding]:
    """Find providers without a name or a generation."""
    found = [
        f"{row.uuid} ({row.name or row.uuid}): {'name' if row.name is None else 'generation'}"
        for row in subject.batched(_INCOMPLETE, _P.id)
    ]
    if found:
        yield warning(
            counted(len(found), "provider has", "providers have")
            + " no name or no generation (NULL), which is shown as no name, and as generation 0.",
            tuple(found),
            "openstack resource provider set --name <name> <provider>; or UPDATE resource_providers SET generation = 0 "
            "WHERE uuid = '<provider>'.",
        )


def impossible_inventories(subject: Subject) -> Iterator[Finding]:
    """Find inventories with numbers that no request accepts."""
    found = [
        f"{row.uuid} ({row.provider}): {row.name}, {', '.join(name for name in _WRONG if getattr(row, name))}"
        for row in subject.batched(_IMPOSSIBLE, _I.id)
    ]
    if found:
        yield warning(
            counted(len(found), "inventory has", "inventories have")
            + " numbers that no request accepts: most often nothing can be claimed there.",
            tuple(found),
            "openstack resource provider inventory set --resource <class>=<total> ... <provider>, or restart the agent "
            "that reports it.",
        )


def lost_inventories(subject: Subject) -> Iterator[Finding]:
    """Find inventories of providers, and of resource classes, that do not exist."""
    found = [
        f"row {row.id}: " + ("provider" if row.no_provider else "class") + f" with the id {row.lost_id}"
        for row in subject.batched(_LOST, _I.id)
    ]
    if found:
        yield warning(
            counted(len(found), "inventory is", "inventories are")
            + " of a provider or a resource class that does not exist: no request shows such an inventory.",
            tuple(found),
            "DELETE FROM inventories WHERE id = <row>; if it is of a standard class: pip install --upgrade "
            "os-resource-classes.",
        )


def repeated_allocations(subject: Subject) -> Iterator[Finding]:
    """Find consumers with several rows for one class on one provider."""
    # A consumer may have allocations in several batches.
    found = dict.fromkeys(
        f"consumer {row.consumer_id}: provider {row.uuid}, class {row.name}"
        for row in subject.batched(_REPEATED, _A.id)
    )
    if found:
        yield warning(
            counted(len(found), "allocation is", "allocations are")
            + " stored more than once: clients see the amount of one row, but all rows count as used.",
            tuple(found),
            "openstack resource provider allocation show <consumer>, then ... allocation set with what it should hold.",
        )


_INCOMPLETE = (
    sa.select(_P.uuid, _P.name).where(within(_P.id), _P.name.is_(None) | _P.generation.is_(None)).order_by(_P.id)
)
#: What is wrong with an inventory, by the name of its number.
_WRONG = {
    "total": _I.total < 0,
    "reserved": _I.reserved < 0,
    "min_unit": _I.min_unit < 1,
    "max_unit": _I.max_unit < 1,
    "step_size": _I.step_size < 1,
    "allocation_ratio": (_I.allocation_ratio <= 0) | (_I.allocation_ratio > _NO_RATIO),
}
_IMPOSSIBLE = (
    sa.select(_P.uuid, _P.name.label("provider"), _C.name, *(wrong.label(name) for name, wrong in _WRONG.items()))
    .join_from(inventories, resource_providers, _P.id == _I.resource_provider_id)
    .join(resource_classes, _C.id == _I.resource_class_id)
    .where(within(_I.id), sa.or_(*_WRONG.values()))
    .order_by(_I.id)
)
_NO_PROVIDER = ~sa.exists().where(_P.id == _I.resource_provider_id)
#: A standard class without a row is a finding of the check of standard rows.
_NO_CLASS = _I.resource_class_id.not_in(CLASS_IDS.values()) & ~sa.exists().where(_C.id == _I.resource_class_id)
_LOST = (
    sa.select(
        _I.id,
        _NO_PROVIDER.label("no_provider"),
        sa.case((_NO_PROVIDER, _I.resource_provider_id), else_=_I.resource_class_id).label("lost_id"),
    )
    .where(within(_I.id), _NO_PROVIDER | _NO_CLASS)
    .order_by(_I.id)
)
_OF_BATCH = allocations.alias()
# By consumers, which have few allocations each: SQLite compares each allocation with all of its class, if it may.
_REPEATED = (
    sa.select(_A.consumer_id, _P.uuid, _C.name)
    .join_from(allocations, resource_providers, _P.id == _A.resource_provider_id)
    .join(resource_classes, _C.id == _A.resource_class_id)
    .where(_A.consumer_id.in_(sa.select(_OF_BATCH.c.consumer_id).where(within(_OF_BATCH.c.id))))
    .group_by(_A.consumer_id, _P.uuid, _C.name)
    .having(sa.func.count() > 1)
    .order_by(sa.func.min(_A.id))
)
