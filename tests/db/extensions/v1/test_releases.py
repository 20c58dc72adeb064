"""Releases of many consumers: batches, concurrent changes, limits and the deadline."""

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
    """Seven consumers of a project; three transactions release them."""
    monkeypatch.setattr(release, "BATCH", 3)
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", 100)])
    )
    uuids = [str(uuid.uuid4()) for _ in range(7)]
    place(database, uuids)
    return uuids


def place(database, uuids, amount=1, project="red"):
    claims = [Claim(consumer, {HOST: {"VCPU": amount}}, Owner(project, "user")) for consumer in uuids]
    database.write(lambda db: ClaimSet(db, claims).place())


def usage(database):
    return database.read(lambda db: Usage.of_provider(db, ResourceProvider.get(db, HOST)))["VCPU"]


def commits_of(database, work):
    """Return the result of ``work()``, and the number of its transactions that deleted consumers."""
    with sql_hooks.writes(database.engine) as written:
        result = work()
    return result, sum(statement.startswith("DELETE FROM consumers") for statement in written)


def test_named_consumers_are_released_in_batches(database, consumers):
    absent = str(uuid.uuid4())
    named = [consumers[0], absent, *consumers, consumers[3]]
    result, commits = commits_of(database, lambda: release_named(database, named))
    assert (result.released, result.missing, result.complete) == (consumers, [absent], True)
    assert (commits, usage(database)) == (3, 0)


@pytest.mark.every_database
@pytest.mark.parametrize("stored", [str.lower, str.upper])
def test_a_consumer_is_released_by_every_spelling_of_its_uuid(database, consumers, stored):
    """``POST /allocations`` stores capitals, and some collations match both cases."""
    uuids = [stored("abcdefab-0000-4000-8000-00000000000c"), stored("abcdefab-0000-4000-8000-00000000000d")]
    place(database, uuids, 2)
    named = [uuids[0].upper(), uuids[0].upper().replace("-", ""), uuids[1]]
    result = release_named(database, named)
    assert (result.released, result.complete, usage(database)) == (uuids, True, len(consumers))


@pytest.mark.every_database
def test_the_exact_spelling_is_released_if_two_spellings_are_stored(database, consumers):
    spellings = ["ABCDEFAB-0000-4000-8000-00000000000E", "abcdefab-0000-4000-8000-00000000000e"]
    place(database, spellings[:1])
    try:
        place(database, spellings[1:], 2)
        remaining_usage = 2
    except errors.TooManyConflicts:
        remaining_usage = 0  # some collations store one row for both
    assert release_named(database, spellings[:1]).released == spellings[:1]
    assert usage(database) == len(consumers) + remaining_usage


def test_matching_consumers_are_released_in_batches(database, consumers):
    place(database, [str(uuid.uuid4())], project="blue")
    result, commits = commits_of(database, lambda: release_matching(database, RED, 100))
    assert (sorted(result.released), result.complete) == (sorted(consumers), True)
    assert (commits, usage(database)) == (3, 1)


def test_a_release_respects_its_limit(database, consumers):
    result = release_matching(database, RED, 4)
    assert (len(result.released), result.complete, usage(database)) == (4, False, 3)
    result = release_matching(database, RED, 4)
    assert (len(result.released), result.complete, usage(database)) == (3, True, 0)


def grow(database, consumer):
    place(database, [consumer], 5)


def extend(database, consumer):
    """Extend the lease of a consumer, which does not change its generation."""
    database.write(lambda db: leases.extend(db, consumer, 3600))


@pytest.mark.parametrize(("change", "remaining_usage"), [(grow, 5), (extend, 1)])
def test_a_consumer_that_changed_after_it_was_matched_is_not_released(
    database, consumers, monkeypatch, change, remaining_usage
):
    page, changed = consumer_pages.page, []

    def then_change(*arguments):
        matches = page(*arguments)
        if not changed:
            changed.append(matches.holders[1].uuid)
            change(database, changed[0])
        return matches

    monkeypatch.setattr(consumer_pages, "page", then_change)
    result = release_matching(database, RED, 100)
    assert sorted([*result.released, *changed]) == sorted(consumers)
    assert (result.complete, usage(database)) == (False, remaining_usage)
    result = release_matching(database, RED, 100)
    assert (result.released, result.complete) == (changed, True)


@pytest.mark.every_database
def test_a_consumer_that_was_released_and_created_again_is_not_released(database, consumers, monkeypatch):
    """The new consumer has the same uuid and generation as the matched one and, if ids are reused, the same id."""
    page, recreated = consumer_pages.page, []

    def then_replace(*arguments):
        matches = page(*arguments)
        newest = consumers[-1]
        if not recreated and newest in {holder.uuid for holder in matches.holders}:
            recreated.append(newest)
            database.write(lambda db: release.end_consumer(db, newest))
            place(database, recreated, 5, project="blue")
        return matches

    monkeypatch.setattr(consumer_pages, "page", then_replace)
    result = release_matching(database, RED, 100)
    assert sorted([*result.released, *recreated]) == sorted(consumers)
    assert (result.complete, usage(database)) == (False, 5)


def test_a_release_ends_at_the_deadline_of_a_request(database, consumers, monkeypatch):
    clock = Clock(1000.0)
    monkeypatch.setattr(retry, "time", clock)

    def delay(statement):
        if statement.startswith("DELETE FROM consumers"):
            clock.now += 61

    for work in (lambda: release_named(database, consumers), lambda: release_matching(database, RED, 100)):
        with sql_hooks.statements(database.engine, delay):
            result = work()
        assert (len(result.released), result.missing, result.complete) == (3, [], False)
    assert usage(database) == 1
