"""Releases of many consumers: their batches, what others change meanwhile, and how long they go on."""

from __future__ import annotations

import uuid

import pytest

from placement import errors
from placement.db.writes import retry
from placement.extensions.v1.bulk_release import release_matching, release_named
from placement.objects.claims import consumer_pages, leases, release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.usage import Usage
from tests.clock import Clock
from tests.db import sql_hooks

HOST = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c014"
RED = ConsumerFilter(project="red")


@pytest.fixture
def consumers(database, monkeypatch):
    """Seven consumers of a project, which are released by three transactions."""
    monkeypatch.setattr(release, "BATCH", 3)
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", 100)])
    )
    several = [str(uuid.uuid4()) for _ in range(7)]
    place(database, several)
    return several


def place(database, several, amount=1, project="red"):
    wanted = [Claim(consumer, {HOST: {"VCPU": amount}}, Owner(project, "user")) for consumer in several]
    database.write(lambda db: ClaimSet(db, wanted).place())


def used(database):
    return database.read(lambda db: Usage.of_provider(db, ResourceProvider.get(db, HOST)))["VCPU"]


def commits_of(database, work):
    """Return what ``work()`` returns, and the number of its transactions that deleted consumers."""
    with sql_hooks.writes(database.engine) as written:
        result = work()
    return result, sum(statement.startswith("DELETE FROM consumers") for statement in written)


def test_named_consumers_are_released_in_batches(database, consumers):
    absent = str(uuid.uuid4())
    named = [consumers[0], absent, *consumers, consumers[3]]
    done, commits = commits_of(database, lambda: release_named(database, named))
    assert (done.released, done.missing, done.complete) == (consumers, [absent], True)
    assert (commits, used(database)) == (3, 0)


@pytest.mark.every_database
@pytest.mark.parametrize("stored", [str.lower, str.upper])
def test_a_consumer_is_released_in_each_spelling(database, consumers, stored):
    """``POST /allocations`` stores capitals; some collations find either."""
    held = [stored("abcdefab-0000-4000-8000-00000000000c"), stored("abcdefab-0000-4000-8000-00000000000d")]
    place(database, held, 2)
    named = [held[0].upper(), held[0].upper().replace("-", ""), held[1]]
    done = release_named(database, named)
    assert (done.released, done.complete, used(database)) == (held, True, len(consumers))


@pytest.mark.every_database
def test_of_two_spellings_that_are_stored_the_exact_one_is_released(database, consumers):
    both = ["ABCDEFAB-0000-4000-8000-00000000000E", "abcdefab-0000-4000-8000-00000000000e"]
    place(database, both[:1])
    try:
        place(database, both[1:], 2)
        left = 2
    except errors.TooManyConflicts:
        left = 0  # some collations have one row for both
    assert release_named(database, both[:1]).released == both[:1]
    assert used(database) == len(consumers) + left


def test_matching_consumers_are_released_in_batches(database, consumers):
    place(database, [str(uuid.uuid4())], project="blue")
    done, commits = commits_of(database, lambda: release_matching(database, RED, 100))
    assert (sorted(done.released), done.complete) == (sorted(consumers), True)
    assert (commits, used(database)) == (3, 1)


def test_a_limit_is_kept(database, consumers):
    done = release_matching(database, RED, 4)
    assert (len(done.released), done.complete, used(database)) == (4, False, 3)
    done = release_matching(database, RED, 4)
    assert (len(done.released), done.complete, used(database)) == (3, True, 0)


def grow(database, consumer):
    place(database, [consumer], 5)


def extend(database, consumer):
    """Its generation stays as it is."""
    database.write(lambda db: leases.extend(db, consumer, 3600))


@pytest.mark.parametrize(("change", "left"), [(grow, 5), (extend, 1)])
def test_a_consumer_that_changed_after_its_conditions_were_judged_keeps_what_it_holds(
    database, consumers, monkeypatch, change, left
):
    page, changed = consumer_pages.page, []

    def then_changed(*arguments):
        found = page(*arguments)
        if not changed:
            changed.append(found.holders[1].uuid)
            change(database, changed[0])
        return found

    monkeypatch.setattr(consumer_pages, "page", then_changed)
    done = release_matching(database, RED, 100)
    assert sorted([*done.released, *changed]) == sorted(consumers)
    assert (done.complete, used(database)) == (False, left)
    done = release_matching(database, RED, 100)
    assert (done.released, done.complete) == (changed, True)


@pytest.mark.every_database
def test_a_consumer_that_ended_and_came_back_is_another_one(database, consumers, monkeypatch):
    """It has the uuid and the generation that were read and, where ids are used again, the id."""
    page, again = consumer_pages.page, []

    def then_changed(*arguments):
        found = page(*arguments)
        newest = consumers[-1]
        if not again and newest in {holder.uuid for holder in found.holders}:
            again.append(newest)
            database.write(lambda db: release.end_consumer(db, newest))
            place(database, again, 5, project="blue")
        return found

    monkeypatch.setattr(consumer_pages, "page", then_changed)
    done = release_matching(database, RED, 100)
    assert sorted([*done.released, *again]) == sorted(consumers)
    assert (done.complete, used(database)) == (False, 5)


def test_a_release_ends_at_the_deadline_of_a_request(database, consumers, monkeypatch):
    clock = Clock(1000.0)
    monkeypatch.setattr(retry, "time", clock)

    def late(statement):
        if statement.startswith("DELETE FROM consumers"):
            clock.now += 61

    for work in (lambda: release_named(database, consumers), lambda: release_matching(database, RED, 100)):
        with sql_hooks.statements(database.engine, late):
            done = work()
        assert (len(done.released), done.missing, done.complete) == (3, [], False)
    assert used(database) == 1
