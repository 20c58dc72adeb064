"""The database fails during a sweep: committed releases stay in effect, and the next sweep does the rest."""

from __future__ import annotations

import uuid

import pytest

from placement import errors, signals
from placement.db.schema.tables import allocations
from placement.index.live import LiveIndex
from placement.objects.claims import lease_sweep, leases, release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from tests.db import faults, lease
from tests.db.faults import Plan, plant
from tests.made import opened

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c015"
COUNT = 3

pytestmark = pytest.mark.usefixtures("no_pauses")


class Trial:
    """Sweeps of three leases each, on separate connections, with a different fault each time."""

    def __init__(self, database):
        self.database = database
        database.write(
            lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", 100)])
        )

    def run(self, plan, sweep=lease_sweep.sweep):
        """Sweep under the plan, then again; return the published number of leases, and the first sweep's failure."""
        uuids = [str(uuid.uuid4()) for _ in range(COUNT)]
        claims = [Claim(consumer, {HOST: {"VCPU": 1}}, Owner("project", "user")) for consumer in uuids]
        self.database.write(lambda db: ClaimSet(db, claims).place())
        for consumer in uuids:
            self.database.write(lambda db: leases.extend(db, consumer, 60))  # noqa: B023
            lease.expire(self.database, consumer)
        published, failure = [], None
        signals.leases_expired.connect(published.append)
        try:
            with opened(self.database.url) as swept:
                # Open the connections and register a feed writer before the faults.
                swept.read(leases.any_expired)
                swept.write(leases.any_expired)
                with plant(swept, plan):
                    try:
                        sweep(swept)
                    except errors.Failure as error:
                        failure = error
            assert lease_sweep.sweep(self.database)
        finally:
            signals.leases_expired.disconnect(published.append)
        assert self.database.read(lambda db: db.execute(allocations.select()).all()) == []
        assert lease.count(self.database) == 0
        _, used = LiveIndex(self.database).current().column("VCPU").usage()
        assert used.sum() == 0
        return sum(published), failure


@pytest.mark.every_database
def test_a_sweep_recovers_from_a_fault_at_each_statement(database, backend):
    trial, plan = Trial(database), Plan()
    assert trial.run(plan) == (COUNT, None)
    for at, step in enumerate(plan.seen, 1):
        collision = faults.collisions(backend.kind)[at % 3]
        assert trial.run(Plan(at, [collision])) == (COUNT, None), step
        if step == "COMMIT":
            released, failure = trial.run(Plan(at, [faults.lose], answer_only=True))
            # The lost connection may belong to another COMMIT: the registration of the feed writer.
            assert released == (0 if isinstance(failure, errors.OutcomeUnknown) else COUNT)
        else:
            released, failure = trial.run(Plan(at, [faults.LOSSES[at % 2]]))
            assert (released, failure) == (COUNT, None), step


@pytest.mark.every_database
def test_a_sweep_whose_database_stays_down_gives_up_and_changes_nothing(database, backend):
    trial = Trial(database)
    for fault, expected in ((faults.lose, errors.Unavailable), (faults.collisions(backend.kind)[0], errors.Conflict)):
        released, failure = trial.run(Plan("DELETE FROM allocations", [fault], permanent=True))
        assert released == COUNT, "by the second sweep"
        assert isinstance(failure, (expected, errors.Unavailable))


@pytest.mark.every_database
def test_a_claim_that_needs_the_capacity_of_a_lease_survives_a_fault_at_each_statement(database, backend):
    trial, plan, claimed = Trial(database), Plan(), []

    def claim_all(swept):
        consumer = str(uuid.uuid4())
        claim = Claim(consumer, {HOST: {"VCPU": 100}}, Owner("project", "user"))
        swept.write(lambda db: ClaimSet(db, [claim]).place())
        claimed.append(consumer)
        database.write(lambda db: release.end_consumer(db, consumer))

    assert trial.run(plan, claim_all) == (COUNT, None)
    for at, step in enumerate(plan.seen, 1):
        if step != "COMMIT":
            assert trial.run(Plan(at, [faults.collisions(backend.kind)[at % 3]]), claim_all) == (COUNT, None), step
    assert len(claimed) == 1 + sum(step != "COMMIT" for step in plan.seen)
