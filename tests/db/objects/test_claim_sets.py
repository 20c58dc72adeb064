"""Claims of several consumers in one transaction, without requests; they are judged together."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.schema.tables import projects
from placement.db.writes.transaction import Collision
from placement.objects.claims import release
from placement.objects.claims.claim import ANY_GENERATION, Claim
from placement.objects.claims.claim_set import ClaimSet, PlacedClaim
from placement.objects.claims.holding import Holding
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.usage import Usage
from tests.db import sql_hooks

pytestmark = pytest.mark.every_database

HOST, TOTAL = "6c1b0f5e-0b8e-4f6e-8a57-51a3f0a4c009", 8
OWNER = Owner("project", "user")


@pytest.fixture
def host(database):
    """Create a provider with eight VCPU; the names of the owner have rows, so a claim takes one attempt."""
    database.write(
        lambda db: LockedProvider.create(db, uuid=HOST, name="host").replace_inventories([Inventory("VCPU", TOTAL)])
    )
    place(database, claim(1, consumer := str(uuid.uuid4())))
    database.write(lambda db: release.end_consumer(db, consumer))


def claim(amount, consumer=None, **options):
    resources = {HOST: {"VCPU": amount}} if amount else {}
    return Claim(consumer or str(uuid.uuid4()), resources, OWNER, **options)


def place(database, *claims):
    database.write(lambda db: ClaimSet(db, claims).place())


def usage(database):
    return database.read(lambda db: Usage.of_provider(db, ResourceProvider.get(db, HOST)))["VCPU"]


def names_of(database, table):
    column = sa.select(table.c.external_id)
    return {*database.read(lambda db: db.execute(column).scalars().all())}


def amount_of(database, consumer):
    holding = database.read(lambda db: Holding.find(db, consumer))
    return holding and holding.resources[HOST]["VCPU"]


@pytest.mark.usefixtures("host")
def test_a_refused_claim_leaves_no_names_behind_while_others_are_placed(database):
    claims = [
        replace(claim(amount, generation=None), owner=Owner(project, "user"))
        for amount, project in ((5, "new"), (4, "refused"))
    ]
    outcomes = database.write(lambda db: ClaimSet(db, claims).place_each())
    assert [type(outcome) for outcome in outcomes] == [PlacedClaim, errors.CapacityExceeded]
    assert names_of(database, projects) == {"project", "new"}


@pytest.mark.usefixtures("host")
def test_the_claims_of_a_set_never_exceed_the_capacity_together(database):
    with pytest.raises(errors.CapacityExceeded):
        place(database, claim(5), claim(4))
    assert usage(database) == 0, "all or none"
    place(database, claim(5), claim(3))
    assert usage(database) == TOTAL


@pytest.mark.usefixtures("host")
def test_another_claim_of_the_set_can_take_the_capacity_that_one_releases(database):
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    place(database, claim(4, first))
    place(database, claim(TOTAL - 1, second, generation=None), claim(1, first, generation=1))
    assert (amount_of(database, first), amount_of(database, second)) == (1, TOTAL - 1)
    place(database, claim(TOTAL, first), claim(0, second))
    assert (amount_of(database, first), amount_of(database, second)) == (TOTAL, None)


@pytest.mark.usefixtures("host")
def test_capacity_released_by_a_claim_is_free_for_the_claims_judged_after_it(database):
    consumer = str(uuid.uuid4())
    place(database, claim(TOTAL, consumer))
    claims = [claim(1, consumer, generation=1), *(claim(amount, generation=None) for amount in (TOTAL - 1, 1))]
    outcomes = database.write(lambda db: ClaimSet(db, claims).place_each())
    assert [type(outcome) for outcome in outcomes] == [PlacedClaim, PlacedClaim, errors.CapacityExceeded]
    assert usage(database) == TOTAL


@pytest.mark.usefixtures("host")
def test_a_wrong_generation_of_one_consumer_refuses_the_set(database):
    consumer = str(uuid.uuid4())
    place(database, claim(1, consumer))
    with pytest.raises(errors.ConsumerGenerationConflict):
        place(database, claim(1, generation=None), claim(2, consumer, generation=7))
    assert usage(database) == 1


@pytest.mark.usefixtures("host")
def test_many_new_consumers_take_no_more_statements_than_two(database):
    """If the server does not return the ids of inserted rows, two consumers take one statement more than one does."""

    def count_statements(*claims):
        statements = []
        with sql_hooks.statements(database.engine, statements.append):
            place(database, *claims)
        return len(statements)

    two, five = ([claim(1, generation=None) for _ in range(number)] for number in (2, 5))
    assert count_statements(*two) == count_statements(*five)


@pytest.mark.usefixtures("host")
def test_inventory_added_between_the_steps_counts_for_the_claims(database):
    large_claim = claim(TOTAL + 1)

    def work(db):
        def grow(claimed_ids):
            providers = LockedProvider.lock_all(db, claimed_ids)
            providers[HOST].replace_inventories([Inventory("VCPU", TOTAL + 1)])

        ClaimSet(db, [large_claim]).place(prepare=grow)

    database.write(work)
    assert usage(database) == TOTAL + 1


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("generation", "locking"),
    [(ANY_GENERATION, [1, 2, 3]), (1, [])],
)
def test_without_a_generation_a_consumer_is_locked_before_it_is_read(database, generation, locking):
    """Otherwise a claim could collide in every attempt while others keep writing the same consumer."""
    consumer, locking_attempts = str(uuid.uuid4()), []
    place(database, claim(1, consumer))
    database.write(lambda db: _attempt(db, database, consumer, generation, locking_attempts))
    assert locking_attempts == locking
    assert amount_of(database, consumer) == 2


def _attempt(db, database, consumer, generation, locking_attempts):
    """Claim, and note the number of the attempt if it locks the consumer; two attempts collide."""
    with sql_hooks.writes(database.engine) as written:
        ClaimSet(db, [claim(2, consumer, generation=generation)]).place()
    # Only the lock inserts a row that may exist.
    if any(statement.startswith("INSERT INTO consumers") for statement in written):
        locking_attempts.append(db.attempt)
    if db.attempt < 3:
        raise Collision


@pytest.mark.usefixtures("host")
def test_a_set_may_keep_or_reduce_its_sum_above_the_capacity(database):
    """The inventory was reduced below the amounts of its consumers."""
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    place(database, claim(4, first), claim(4, second))
    database.write(lambda db: LockedProvider.lock(db, HOST).replace_inventories([Inventory("VCPU", 4)]))
    with pytest.raises(errors.CapacityExceeded):
        place(database, claim(5, first), claim(4, second))
    place(database, claim(5, first), claim(3, second))
    assert (amount_of(database, first), amount_of(database, second)) == (5, 3)
    place(database, claim(4, first), claim(3, second))
    assert usage(database) == 7
