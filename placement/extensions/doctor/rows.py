"""Checks for values that no request accepts, and for duplicate and unreachable rows.

Such rows are written by other processes or by hand.  The service reads each of them in a defined way.
"""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from placement.checks.check import Subject, within
from placement.checks.finding import Finding, count_phrase, warning
from placement.db.schema.tables import allocations, inventories, resource_classes, resource_providers
from placement.db.upkeep.standard import CLASS_IDS

_A, _I, _P, _C = allocations.c, inventories.c, resource_providers.c, resource_classes.c
#: Just above the largest allocation ratio that a request can set, the largest single-precision number; larger values
#: are infinite.
_MAX_RATIO = 3.41e38


def incomplete_providers(subject: Subject) -> Iterator[Finding]:
    """Find providers without a name or a generation."""
    places = [
        f"{row.uuid} ({row.name or row.uuid}): {'name' if row.name is None else 'generation'}"
        for row in subject.batched(_INCOMPLETE, _P.id)
    ]
    if places:
        yield warning(
            count_phrase(len(places), "provider has", "providers have")
            + " no name or no generation (NULL): clients see no name, and generation 0.",
            tuple(places),
            "openstack resource provider set --name <name> <provider>; or UPDATE resource_providers SET generation = 0 "
            "WHERE uuid = '<provider>'.",
        )


def impossible_inventories(subject: Subject) -> Iterator[Finding]:
    """Find inventories with numbers that no request accepts."""
    places = [
        f"{row.uuid} ({row.provider}): {row.name}, {', '.join(name for name in _INVALID if getattr(row, name))}"
        for row in subject.batched(_IMPOSSIBLE, _I.id)
    ]
    if places:
        yield warning(
            count_phrase(len(places), "inventory has", "inventories have")
            + " numbers that no request accepts: in most cases nothing can be claimed there.",
            tuple(places),
            "openstack resource provider inventory set --resource <class>=<total> ... <provider>, or restart the agent "
            "that reports it.",
        )


def lost_inventories(subject: Subject) -> Iterator[Finding]:
    """Find inventories of providers and resource classes that do not exist."""
    places = [
        f"row {row.id}: " + ("provider" if row.no_provider else "class") + f" id {row.lost_id}"
        for row in subject.batched(_LOST, _I.id)
    ]
    if places:
        yield warning(
            count_phrase(len(places), "inventory refers", "inventories refer")
            + " to a provider or a resource class that does not exist: no request shows such an inventory.",
            tuple(places),
            "DELETE FROM inventories WHERE id = <row>; or, for a standard class, pip install --upgrade "
            "os-resource-classes.",
        )


def repeated_allocations(subject: Subject) -> Iterator[Finding]:
    """Find consumers with several rows for one class on one provider."""
    # The allocations of a consumer may be in several batches.
    places = dict.fromkeys(
        f"consumer {row.consumer_id}: provider {row.uuid}, class {row.name}"
        for row in subject.batched(_REPEATED, _A.id)
    )
    if places:
        yield warning(
            count_phrase(len(places), "allocation is", "allocations are")
            + " stored more than once: clients see the amount of one row, but all rows count as used.",
            tuple(places),
            "openstack resource provider allocation show <consumer>, then ... allocation set with the right amounts.",
        )


_INCOMPLETE = (
    sa.select(_P.uuid, _P.name).where(within(_P.id), _P.name.is_(None) | _P.generation.is_(None)).order_by(_P.id)
)
#: Conditions of an invalid number, by field of the inventory.
_INVALID = {
    "total": _I.total < 0,
    "reserved": _I.reserved < 0,
    "min_unit": _I.min_unit < 1,
    "max_unit": _I.max_unit < 1,
    "step_size": _I.step_size < 1,
    "allocation_ratio": (_I.allocation_ratio <= 0) | (_I.allocation_ratio > _MAX_RATIO),
}
_IMPOSSIBLE = (
    sa.select(
        _P.uuid, _P.name.label("provider"), _C.name, *(condition.label(name) for name, condition in _INVALID.items())
    )
    .join_from(inventories, resource_providers, _P.id == _I.resource_provider_id)
    .join(resource_classes, _C.id == _I.resource_class_id)
    .where(within(_I.id), sa.or_(*_INVALID.values()))
    .order_by(_I.id)
)
_NO_PROVIDER = ~sa.exists().where(_P.id == _I.resource_provider_id)
#: Inventories of classes without a row, except standard classes: ``standard_rows`` finds their missing rows.
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
_BATCH = allocations.alias()
# Restricted to consumers, which have few allocations each; otherwise SQLite compares all allocations of a class.
_REPEATED = (
    sa.select(_A.consumer_id, _P.uuid, _C.name)
    .join_from(allocations, resource_providers, _P.id == _A.resource_provider_id)
    .join(resource_classes, _C.id == _A.resource_class_id)
    .where(_A.consumer_id.in_(sa.select(_BATCH.c.consumer_id).where(within(_BATCH.c.id))))
    .group_by(_A.consumer_id, _P.uuid, _C.name)
    .having(sa.func.count() > 1)
    .order_by(sa.func.min(_A.id))
)
