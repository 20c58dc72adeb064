"""Checks of the data: incomplete consumers and allocations, overdue leases, inconsistent providers."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.checks.check import Subject, within
from placement.checks.finding import Finding, count_phrase, info, warning
from placement.db.schema.tables import (
    allocations,
    claims,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from placement.db.upkeep.standard import CLASS_IDS, FIRST_CUSTOM_ID
from placement.db.writes.transaction import Reading
from placement.extensions.doctor.examination import FIX
from placement.objects.claims import leases

#: Minutes after the expiry at which a lease is overdue; by then a request has usually released it.
_OVERDUE = 5

_A, _K, _P = allocations.c, consumers.c, resource_providers.c


def without_consumer(subject: Subject) -> Iterator[Finding]:
    """Find allocations whose consumer has no row."""
    uuids: dict[str, None] = {}
    for row in subject.batched(_WITHOUT_CONSUMER, _A.id):
        uuids[row.consumer_id] = None
    if uuids:
        yield warning(
            count_phrase(len(uuids), "consumer has allocations", "consumers have allocations")
            + " but no row, and so no project or user: the usage of projects does not include these allocations.",
            tuple(uuids),
            "placement-manage db online_data_migrations",
            fixable=True,
        )


def lost_allocations(subject: Subject) -> Iterator[Finding]:
    """Find allocations of providers and resource classes that do not exist."""
    providers: dict[str, None] = {}
    custom: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for bounds in subject.ranges(_A.id):
        for row in subject.rows(_WITHOUT_PROVIDER, bounds):
            providers[f"consumer {row.consumer_id}: provider id {row.resource_provider_id}"] = None
        for row in subject.rows(_WITHOUT_CLASS, bounds):
            place = f"consumer {row.consumer_id}: class id {row.resource_class_id}"
            if row.resource_class_id >= FIRST_CUSTOM_ID:
                custom[place] = None
            elif row.resource_class_id not in CLASS_IDS.values():
                # A standard class that lacks only its row is a finding of standard_rows.
                unknown[place] = None
    if providers:
        sentence = f"Allocations refer to providers that do not exist, in {_places(providers)}: they hold nothing."
        yield warning(sentence, tuple(providers), FIX, fixable=True)
    if custom:
        sentence = f"Allocations refer to resource classes that do not exist, in {_places(custom)}: they hold nothing."
        yield warning(sentence, tuple(custom), FIX, fixable=True)
    if unknown:
        yield warning(
            f"Allocations refer to standard resource classes that this version does not know, in {_places(unknown)}.",
            tuple(unknown),
            "pip install --upgrade os-resource-classes",
        )


def idle_consumers(subject: Subject) -> Iterator[Finding]:
    """Find consumers without allocations."""
    uuids = [row.uuid for row in subject.batched(HOLDS_NOTHING, _K.id)]
    if uuids:
        sentence = (
            count_phrase(len(uuids), "consumer has a row", "consumers have a row")
            + " but no allocations: a process other than this service left it behind."
        )
        yield info(sentence, tuple(uuids), FIX, fixable=True)


def without_owner(subject: Subject) -> Iterator[Finding]:
    """Find consumers whose project, user or consumer type has no row."""
    places: list[str] = []
    for row in subject.batched(_WITHOUT_OWNER, _K.id):
        missing = [kind for kind in ("project", "user", "type") if getattr(row, kind)]
        places.append(f"consumer {row.uuid}: {', '.join(missing)}")
    if places:
        yield warning(
            count_phrase(len(places), "consumer refers", "consumers refer")
            + " to a project, a user or a consumer type without a row: the usage of projects does not include it.",
            tuple(places),
            "PUT /allocations/<consumer> by the client that owns it, with project_id and user_id; if it has no owner: "
            "placement-ask release <consumer>.",
        )


def overdue_leases(subject: Subject) -> Iterator[Finding]:
    """Find leases that expired minutes ago and have not been released."""
    rows = subject.database.read(_overdue_leases)
    if rows:
        yield warning(
            count_phrase(len(rows), "lease has", "leases have")
            + f" not been released more than {_OVERDUE} minutes after expiry: no request arrived, the database "
            "accepts no writes, or consumers are locked.",
            tuple(f"consumer {row.uuid}: since {row.expires_at:%Y-%m-%dT%H:%M:%SZ}" for row in rows),
            "placement-manage leases sweep",
            fixable=True,
        )


def _overdue_leases(db: Reading) -> Sequence[Any]:
    before = leases.now(db) - datetime.timedelta(minutes=_OVERDUE)
    return db.execute(_OVERDUE_LEASES, {"before": before}).all()


def same_names(subject: Subject) -> Iterator[Finding]:
    """Find providers whose names differ only in case."""
    providers: dict[str, list[str]] = {}
    for row in subject.rows(_SAME_NAMES):
        providers.setdefault(row.lower, []).append(f"{row.name} ({row.uuid})")
    if providers:
        yield warning(
            count_phrase(len(providers), "name belongs", "names belong")
            + " to several providers, ignoring case: usually one host that is registered twice.",
            tuple(", ".join(names) for names in providers.values()),
            "openstack resource provider delete <the provider that no host uses>, or rename it with set --name.",
        )


def disabled_providers(subject: Subject) -> Iterator[Finding]:
    """Find disabled providers on which consumers hold resources."""
    places = [
        f"{row.uuid} ({row.name or row.uuid}): {count_phrase(row.consumers, 'consumer', 'consumers')}"
        for row in subject.batched(_DISABLED, _P.id)
    ]
    if places:
        yield info(
            count_phrase(len(places), "provider is", "providers are")
            + f" disabled ({os_traits.COMPUTE_STATUS_DISABLED}) while consumers hold resources there.",
            tuple(places),
            "openstack compute service set --enable <host> nova-compute; or move the consumers, which placement-ask "
            "consumers --provider <provider> shows.",
        )


def _places(places: Collection[str]) -> str:
    return count_phrase(len(places), "place", "places")


def _has_no(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return ~sa.exists().select_from(table).where(*conditions)


_WITHOUT_CONSUMER = (
    sa.select(_A.consumer_id).distinct().where(within(_A.id), _has_no(consumers, _K.uuid == _A.consumer_id))
).order_by(_A.consumer_id)
_WITHOUT_PROVIDER = (
    sa.select(_A.consumer_id, _A.resource_provider_id)
    .distinct()
    .where(within(_A.id), _has_no(resource_providers, _P.id == _A.resource_provider_id))
    .order_by(_A.consumer_id, _A.resource_provider_id)
)
_WITHOUT_CLASS = (
    sa.select(_A.consumer_id, _A.resource_class_id)
    .distinct()
    .where(within(_A.id), _has_no(resource_classes, resource_classes.c.id == _A.resource_class_id))
    .order_by(_A.consumer_id, _A.resource_class_id)
)
#: Consumers without allocations, with ids from ``first`` to ``last``.
HOLDS_NOTHING = sa.select(_K.uuid).where(within(_K.id), _has_no(allocations, _A.consumer_id == _K.uuid)).order_by(_K.id)
_NO_PROJECT = _has_no(projects, projects.c.id == _K.project_id)
_NO_USER = _has_no(users, users.c.id == _K.user_id)
_NO_TYPE = _K.consumer_type_id.is_not(None) & _has_no(consumer_types, consumer_types.c.id == _K.consumer_type_id)
_WITHOUT_OWNER = (
    sa.select(_K.uuid, _NO_PROJECT.label("project"), _NO_USER.label("user"), _NO_TYPE.label("type"))
    .where(within(_K.id), _NO_PROJECT | _NO_USER | _NO_TYPE)
    .order_by(_K.id)
)
_OVERDUE_LEASES = (
    sa.select(_K.uuid, claims.c.expires_at)
    .join(claims, claims.c.consumer_id == _K.id)
    .where(claims.c.expires_at < sa.bindparam("before"))
    .order_by(claims.c.expires_at, claims.c.consumer_id)
)
_OTHER = resource_providers.alias()
_REPEATED = (
    sa.select(sa.func.lower(_OTHER.c.name).label("lower"))
    .group_by(sa.func.lower(_OTHER.c.name))
    .having(sa.func.count() > 1)
    .subquery()
)
_SAME_NAMES = (
    sa.select(_REPEATED.c.lower, _P.name, _P.uuid)
    .join_from(_REPEATED, resource_providers, sa.func.lower(_P.name) == _REPEATED.c.lower)
    .order_by(_REPEATED.c.lower, _P.id)
)
_HAS = resource_provider_traits.c
_DISABLED = (
    sa.select(_P.uuid, _P.name, sa.func.count(_A.consumer_id.distinct()).label("consumers"))
    .join_from(resource_providers, resource_provider_traits, _HAS.resource_provider_id == _P.id)
    .join(traits, traits.c.id == _HAS.trait_id)
    .join(allocations, _A.resource_provider_id == _P.id)
    .where(within(_P.id), traits.c.name == os_traits.COMPUTE_STATUS_DISABLED)
    .group_by(_P.id, _P.uuid, _P.name)
    .order_by(_P.id)
)
