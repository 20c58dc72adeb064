"""Checks of the data: consumers and allocations that lack something, claims whose end has passed, odd providers."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.checks.check import Subject, within
from placement.checks.finding import Finding, counted, info, warning
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

#: Minutes after which a lease counts as overdue: every search and a request now and then gives back what is due.
_OVERDUE = 5

_A, _K, _P = allocations.c, consumers.c, resource_providers.c


def without_consumer(subject: Subject) -> Iterator[Finding]:
    """Find allocations whose consumer has no row."""
    found: dict[str, None] = {}
    for row in subject.batched(_WITHOUT_CONSUMER, _A.id):
        found[row.consumer_id] = None
    if found:
        yield warning(
            counted(len(found), "consumer has allocations", "consumers have allocations")
            + " but no row: without a project and a user, none of that counts in the usage of any project.",
            tuple(found),
            "placement-manage db online_data_migrations",
            fixable=True,
        )


def lost_allocations(subject: Subject) -> Iterator[Finding]:
    """Find allocations of providers, and of resource classes, that do not exist."""
    providers: dict[str, None] = {}
    custom: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for bounds in subject.ranges(_A.id):
        for row in subject.rows(_WITHOUT_PROVIDER, bounds):
            providers[f"consumer {row.consumer_id}: provider with the id {row.resource_provider_id}"] = None
        for row in subject.rows(_WITHOUT_CLASS, bounds):
            place = f"consumer {row.consumer_id}: class with the id {row.resource_class_id}"
            if row.resource_class_id >= FIRST_CUSTOM_ID:
                custom[place] = None
            elif row.resource_class_id not in CLASS_IDS.values():  # else the check of standard rows says it
                unknown[place] = None
    if providers:
        sentence = f"Allocations of providers that do not exist, in {_places(providers)}: they hold nothing."
        yield warning(sentence, tuple(providers), FIX, fixable=True)
    if custom:
        sentence = f"Allocations of resource classes that do not exist, in {_places(custom)}: they hold nothing."
        yield warning(sentence, tuple(custom), FIX, fixable=True)
    if unknown:
        yield warning(
            f"Allocations of standard resource classes that this program does not know, in {_places(unknown)}.",
            tuple(unknown),
            "pip install --upgrade os-resource-classes",
        )


def idle_consumers(subject: Subject) -> Iterator[Finding]:
    """Find rows of consumers that have no allocations."""
    found = [row.uuid for row in subject.batched(HOLDS_NOTHING, _K.id)]
    if found:
        sentence = (
            counted(len(found), "consumer has a row", "consumers have a row")
            + " and no allocation: another program has left the row behind."
        )
        yield info(sentence, tuple(found), FIX, fixable=True)


def without_owner(subject: Subject) -> Iterator[Finding]:
    """Find consumers whose project, user or consumer type has no row."""
    found: list[str] = []
    for row in subject.batched(_WITHOUT_OWNER, _K.id):
        lacking = [kind for kind in ("project", "user", "type") if getattr(row, kind)]
        found.append(f"consumer {row.uuid}: {', '.join(lacking)}")
    if found:
        yield warning(
            counted(len(found), "consumer has", "consumers have")
            + " a project, a user or a consumer type without a row: what is held counts in the usage of no project.",
            tuple(found),
            "PUT /allocations/<consumer> by the program that owns it, with project_id and user_id; what nobody owns: "
            "placement-ask release <consumer>.",
        )


def overdue_leases(subject: Subject) -> Iterator[Finding]:
    """Find leases whose time has been over for minutes, and that are not given back."""
    found = subject.database.read(_overdue)
    if found:
        yield warning(
            counted(len(found), "lease has", "leases have")
            + f" been over for more than {_OVERDUE} minutes, and nothing was given back: no request came, the database "
            "takes no writes, or consumers are locked.",
            tuple(f"consumer {row.uuid}: since {row.expires_at:%Y-%m-%dT%H:%M:%SZ}" for row in found),
            "placement-manage leases sweep",
            fixable=True,
        )


def _overdue(db: Reading) -> Sequence[Any]:
    before = leases.now(db) - datetime.timedelta(minutes=_OVERDUE)
    return db.execute(_OVERDUE_LEASES, {"before": before}).all()


def same_names(subject: Subject) -> Iterator[Finding]:
    """Find providers whose names are the same but for case."""
    found: dict[str, list[str]] = {}
    for row in subject.rows(_SAME_NAMES):
        found.setdefault(row.lower, []).append(f"{row.name} ({row.uuid})")
    if found:
        yield warning(
            counted(len(found), "name belongs", "names belong")
            + " to several providers, if case is ignored: most often one host, registered twice.",
            tuple(", ".join(names) for names in found.values()),
            "openstack resource provider delete <the one that no host uses>, or set --name.",
        )


def disabled(subject: Subject) -> Iterator[Finding]:
    """Find providers with the trait of disabled hosts on which something is held."""
    found = [
        f"{row.uuid} ({row.name or row.uuid}): {counted(row.consumers, 'consumer', 'consumers')}"
        for row in subject.batched(_DISABLED, _P.id)
    ]
    if found:
        yield info(
            counted(len(found), "provider is", "providers are")
            + f" disabled ({os_traits.COMPUTE_STATUS_DISABLED}), and consumers hold something there.",
            tuple(found),
            "openstack compute service set --enable <host> nova-compute; or move what is there: placement-ask "
            "consumers --provider <provider> shows it.",
        )


def _places(found: Collection[str]) -> str:
    return counted(len(found), "place", "places")


def _no(table: sa.Table, *conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return ~sa.exists().select_from(table).where(*conditions)


_WITHOUT_CONSUMER = (
    sa.select(_A.consumer_id).distinct().where(within(_A.id), _no(consumers, _K.uuid == _A.consumer_id))
).order_by(_A.consumer_id)
_WITHOUT_PROVIDER = (
    sa.select(_A.consumer_id, _A.resource_provider_id)
    .distinct()
    .where(within(_A.id), _no(resource_providers, _P.id == _A.resource_provider_id))
    .order_by(_A.consumer_id, _A.resource_provider_id)
)
_WITHOUT_CLASS = (
    sa.select(_A.consumer_id, _A.resource_class_id)
    .distinct()
    .where(within(_A.id), _no(resource_classes, resource_classes.c.id == _A.resource_class_id))
    .order_by(_A.consumer_id, _A.resource_class_id)
)
#: Consumers among the ids from ``first`` to ``last`` that have no allocations.
HOLDS_NOTHING = sa.select(_K.uuid).where(within(_K.id), _no(allocations, _A.consumer_id == _K.uuid)).order_by(_K.id)
_NO_PROJECT = _no(projects, projects.c.id == _K.project_id)
_NO_USER = _no(users, users.c.id == _K.user_id)
_NO_TYPE = _K.consumer_type_id.is_not(None) & _no(consumer_types, consumer_types.c.id == _K.consumer_type_id)
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
