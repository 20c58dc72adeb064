"""Completeness of events: for the writes of every route, replaying them results in the state of the tables."""

from __future__ import annotations

import contextlib
import uuid
from unittest import mock

import pytest

from placement import errors, routes
from placement.db.writes.transaction import Transaction
from placement.objects.claims import leases
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet, PlacedClaim
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests import apis
from tests.db import faults, interleaving
from tests.db.extensions import event_rows, replay
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenarios import Names
from tests.db.writes import ALL, REFUSED, VARIANTS, every_tenth
from tests.made import opened

OWNER = Owner("project", "user")
each_write = pytest.mark.parametrize("write", [*ALL, *VARIANTS], ids=lambda write: write.name)


def run_write(database, write, *, silent=False, plan=None):
    """Send the requests of a write; return the status of the last one and its events.

    Args:
        silent: Whether the request records no events.
        plan: The faults of the request.
    """
    names, service = Names(), placement(database)
    for call in write.before:
        answer = service(*names.fill(call))
        assert answer.status < 300, (call, answer)
    before = len([*event_rows.following(database)])
    with (
        mock.patch.object(Transaction, "note", autospec=True) if silent else contextlib.nullcontext(),
        plant(database, plan) if plan else contextlib.nullcontext(),
    ):
        answer = service(*names.fill(write.call))
    return answer.status, [*event_rows.following(database)][before:]


@each_write
def test_replaying_the_events_results_in_the_state_of_the_tables(database, write):
    status, request_events = run_write(database, write)
    assert status == write.status
    assert replay.differences(replay.replay(database), replay.read(database)) == {}
    assert event_rows.without_row(database) == []
    if status >= 400 or write in REFUSED or write.name.startswith("a dry run"):
        assert request_events == []
    elif write.changes:
        assert request_events
        method, path = write.call.target.split()
        api = next((api for api in apis.ALL if api.prefix and path.startswith(api.prefix)), routes.PLACEMENT)
        for event in request_events:
            assert event.request["route"].startswith(f"{method} {api.prefix}/"), event
            assert event.request["request_id"].startswith("req-")
            assert event.request["api"] == api.name


@pytest.mark.usefixtures("no_pauses")
@each_write
def test_an_attempt_that_is_rolled_back_causes_no_gap_and_no_duplicate(database, backend, write):
    plan = Plan("COMMIT", [faults.collisions(backend.kind)[0]])
    status, _ = run_write(database, write, plan=plan)
    assert status == write.status
    assert replay.differences(replay.replay(database), replay.read(database)) == {}
    assert plan.injected or not write.changes


def test_a_refused_claim_advances_no_generation(database):
    """The refused claim is on a provider that a consumer leaves in the same transaction."""
    source, target, consumer = (str(uuid.uuid4()) for _ in range(3))
    for host in (source, target):
        database.write(
            lambda db, host=host: LockedProvider.create(db, uuid=host, name=host).replace_inventories(
                [Inventory("VCPU", 8)]
            )
        )
    database.write(lambda db: ClaimSet(db, [Claim(consumer, {source: {"VCPU": 4}}, OWNER, None)]).place())
    move = Claim(consumer, {target: {"VCPU": 4}}, OWNER, 1)
    too_much = Claim(str(uuid.uuid4()), {source: {"VCPU": 9}}, OWNER, None)
    moved, refused = database.write(lambda db: ClaimSet(db, [move, too_much]).place_each())
    assert isinstance(moved, PlacedClaim)
    assert isinstance(refused, errors.CapacityExceeded)
    assert replay.differences(replay.replay(database), replay.read(database)) == {}


@pytest.mark.every_database
@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_an_empty_claim_records_the_expiry_of_a_lease_extended_meanwhile(database):
    """An extension does not advance the generation, so the claim does not collide with it."""
    host, consumer = str(uuid.uuid4()), str(uuid.uuid4())
    database.write(
        lambda db: LockedProvider.create(db, uuid=host, name="host").replace_inventories([Inventory("VCPU", 8)])
    )
    database.write(lambda db: ClaimSet(db, [Claim(consumer, {host: {"VCPU": 4}}, OWNER, None)]).place())

    def extend(target, seconds):
        target.write(lambda db: leases.extend(db, consumer, seconds))

    extend(database, 3600)
    with (
        opened(database.url) as second_database,
        interleaving.just_before(database, interleaving.holding_consumers, lambda: extend(second_database, 7200)),
    ):
        database.write(lambda db: ClaimSet(db, [Claim(consumer, {}, OWNER, 1)]).place())
    assert replay.untruths(database) == []


@pytest.mark.parametrize("write", every_tenth(write for write in (*ALL, *VARIANTS) if write.changes))
def test_replaying_detects_a_write_without_events(database, write):
    run_write(database, write, silent=True)
    assert replay.differences(replay.replay(database), replay.read(database)) != {}
