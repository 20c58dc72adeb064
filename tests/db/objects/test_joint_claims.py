"""One transaction places the waiting claims that fit."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.engine import dialects
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema.tables import consumers, projects, provider_changes, resource_providers
from placement.db.writes.queue import MAX_WAIT
from placement.objects.claims import joint_claims, leases
from placement.objects.claims.claim import Claim
from placement.objects.consumer import Owner
from tests.clock import PATIENCE
from tests.db import lease, sql_hooks
from tests.db.crowd import INVALID_CLAIMS, UNKNOWN, ProviderCrowd, count, provider_crowd, statuses
from tests.db.interleaving import locking, wait_for_lock
from tests.load.storm import holding, new
from tests.made import opened

OWNER = Owner("project", "user")

several_writers = pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)


@pytest.fixture
def crowd(database):
    with provider_crowd(database) as crowd:
        yield crowd


def claim_with_new_owner(provider, name):
    """Return the body of a claim whose consumer has its own project, user and type."""
    return holding([provider]) | {
        "project_id": f"project of {name}",
        "user_id": f"user of {name}",
        "consumer_type": f"TYPE_OF_{name}",
    }


def changes_of(database, skipped=0):
    """Return the providers of all changes but the first ``skipped`` ones, and the transactions of these changes."""
    provider = provider_changes.c.provider_id == resource_providers.c.id
    columns = provider_changes.c.writer_id, provider_changes.c.seq, resource_providers.c.uuid
    order = sa.select(*columns).select_from(provider_changes.join(resource_providers, provider)).order_by(*columns)
    rows = database.read(lambda db: list(db.execute(order)))[skipped:]
    return sorted(row.uuid for row in rows), {(row.writer_id, row.seq) for row in rows}


@pytest.mark.every_database
def test_claims_on_different_providers_are_placed_by_one_transaction(crowd):
    first, shared, *others = (crowd.provider() for _ in range(4))
    places = [[first], [shared], [others[0]], [shared], others, [others[1]]]
    new_consumers, before = [new() for _ in places], {uuid: crowd.state(uuid)[0] for uuid in (first, shared, *others)}
    assert statuses(crowd.claim_each(*zip(places, new_consumers, strict=True))) == [204] * 6
    assert (crowd.joined, crowd.causes) == ([1, 5], [])
    for provider, generation in before.items():
        amounts = {consumer: 1 for consumer, place in zip(new_consumers, places, strict=True) if provider in place}
        assert crowd.state(provider) == (generation + 1, amounts, {1})


@pytest.mark.every_database
def test_each_provider_has_one_feed_row_for_all_claims_of_a_transaction(crowd):
    first, *others = (crowd.provider() for _ in range(3))
    before = count(crowd.database, provider_changes)
    crowd.claim_each(*(([provider], new()) for provider in (first, *others, *others)))
    assert crowd.joined == [1, 4]
    assert count(crowd.database, provider_changes) == before + 1 + 2
    providers, transactions = changes_of(crowd.database, before)
    assert providers == sorted([first, *others])
    assert len(transactions) == 2


@pytest.mark.every_database
def test_each_consumer_gets_its_own_new_owner(crowd):
    """There are more names than one statement looks up."""
    names = [f"N{number}" for number in range(5)]
    places = {name: (crowd.provider(), new()) for name in names}

    def put(name):
        provider, consumer = places[name]
        return crowd.put(consumer, claim_with_new_owner(provider, name))

    assert statuses(crowd.together(*(lambda name=name: put(name) for name in names))) == [204] * 5
    assert crowd.joined == [1, 4]
    for name, (provider, consumer) in places.items():
        assert crowd.ask("GET", f"/allocations/{consumer}").body == claim_with_new_owner(provider, name) | {
            "allocations": {provider: {"resources": {"VCPU": 1}, "generation": crowd.state(provider)[0]}},
            "consumer_generation": 1,
        }


def test_a_transaction_waits_for_as_many_claims_as_waited_before(crowd):
    """The client of the first claim sends another one."""
    crowd.queue.gather_time = PATIENCE
    providers = [crowd.provider() for _ in range(3)]
    first, *others = (lambda provider=provider: crowd.claim([provider], new()) for provider in providers)
    answers = crowd.together(lambda: [first().status, first().status], *others)
    assert [answers[0], *statuses(answers[1:])] == [[204, 204], 204, 204]
    assert crowd.joined == [1, 3]


@pytest.mark.every_database
@pytest.mark.parametrize(
    ("claim", "waits"),
    [
        (Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER, generation=None), True),
        (Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER, generation=1), False),
        (Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER), False),
        (Claim(new(), {}, OWNER, generation=None), False),
        (Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER, generation=None, only_on=UNKNOWN), False),
    ],
)
def test_only_a_claim_of_a_new_consumer_waits_for_other_claims(crowd, claim, waits):
    """Two consumers that exchange providers fit together, but not one after another."""
    received_claims = []
    turn = crowd.queue.turn
    crowd.queue.turn = lambda item, **facts: (received_claims.append(item), turn(item, **facts))[1]
    with contextlib.suppress(errors.Failure):
        joint_claims.place(crowd.database, [claim], attempts=1)
    assert received_claims == [claim] * waits


@pytest.mark.every_database
def test_claims_of_several_consumers_in_one_request_share_no_transaction_with_others(crowd):
    provider, pair, third = crowd.provider(), [new(), new()], new()

    def post():
        return crowd.ask("POST", "/allocations", 39, {consumer: holding([provider]) for consumer in pair})

    with crowd.recording():
        assert statuses([post(), crowd.claim([provider], third)]) == [204, 204]
    assert crowd.joined == [1, 1]
    assert crowd.state(provider)[1] == dict.fromkeys([*pair, third], 1)


@pytest.mark.every_database
def test_a_dry_run_joins_no_transaction(crowd):
    provider, consumer = crowd.provider(), new()
    with crowd.recording():
        dry = crowd.ask("PUT", f"/allocations/{new()}?dry_run=true", 39, holding([provider]))
    assert (dry.status, crowd.joined) == (200, [])
    assert crowd.claim([provider], consumer).status == 204
    assert crowd.state(provider)[1] == {consumer: 1}


@pytest.mark.every_database
def test_only_the_leading_thread_is_admitted(crowd):
    """Threads that wait for the leader's work are not admitted, so they cannot block it."""
    crowd.database.bulkhead = Bulkhead(1)
    provider, new_consumers = crowd.provider(), [new() for _ in range(3)]
    assert statuses(crowd.claim_each(*(([provider], consumer) for consumer in new_consumers))) == [204] * 3
    assert crowd.joined == [1, 2]
    assert crowd.admitted == 1
    assert crowd.state(provider)[1] == dict.fromkeys(new_consumers, 1)


# --- claims that are refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("wrong", [*INVALID_CLAIMS, "more than there is"])
def test_an_invalid_claim_is_refused_alone(crowd, wrong, place):
    """The claim may be the leader's; one transaction places all others, even on the same provider."""
    providers = [crowd.provider(total=6, max_unit=8) for _ in range(4)]
    claims = [([provider], new()) for provider in providers]
    provider = providers[place]
    claims[place] = (
        ({provider: {"VCPU": 7}} if wrong == "more than there is" else INVALID_CLAIMS[wrong](provider)),
        new(),
    )
    if wrong == "a consumer that exists":
        assert crowd.claim(*claims[place]).status == 204
    claims.append(([provider], new()))
    answers = crowd.claim_each(*claims)
    # The refused claim was rolled back with all others, which were then placed without it.
    assert (crowd.joined, crowd.causes) == ([1, 3], ["joint"])
    alone = crowd.claim(*claims[place])
    assert alone.status in (400, 409)
    assert statuses(answers) == [alone.status if number == place else 204 for number in range(5)]
    refusals = [(answer.error["code"], answer.error["detail"]) for answer in (answers[place], alone)]
    assert refusals[0] == refusals[1]
    for number, (_, consumer) in enumerate(claims):
        assert bool(crowd.ask("GET", f"/allocations/{consumer}").body["allocations"]) == (
            number != place or wrong == "a consumer that exists"
        )


@pytest.mark.every_database
def test_exactly_the_claims_that_fit_on_one_provider_are_placed(crowd):
    first, scarce, other = crowd.provider(), crowd.provider(total=3), crowd.provider()
    claims = [([provider], new()) for provider in (first, scarce, other, scarce)]
    claims += [({scarce: {"VCPU": 2}}, new()), ([scarce], new()), ([other], new()), ([scarce], new())]
    answers = crowd.claim_each(*claims)
    # Claims are judged in order: a claim that is too large takes nothing from the next one.
    assert statuses(answers) == [204, 204, 204, 204, 409, 204, 204, 409]
    assert crowd.joined == [1, 5]
    assert all("exceed the capacity" in answer.error["detail"] for answer in answers if answer.status == 409)
    assert crowd.state(scarce)[1] == {claims[number][1]: 1 for number in (1, 3, 5)}


@pytest.mark.every_database
def test_an_expired_lease_frees_capacity_for_one_of_the_claims(crowd):
    first, full, other = crowd.provider(), crowd.provider(total=1), crowd.provider()
    expired = new()
    assert crowd.claim([full], expired).status == 204
    crowd.database.write(lambda db: leases.extend(db, expired, 3600))
    lease.expire(crowd.database, expired)
    claims = [([provider], new()) for provider in (first, full, other)]
    assert statuses(crowd.claim_each(*claims)) == [204] * 3
    assert crowd.joined == [1, 1, 1]
    assert crowd.state(full)[1] == {claims[1][1]: 1}
    assert lease.count(crowd.database) == 0


@pytest.mark.every_database
def test_if_no_claim_can_be_placed_nothing_is_written_and_each_is_refused_separately(crowd):
    first, *full = (crowd.provider(total=1) for _ in range(4))
    for provider in full[:2]:
        assert crowd.claim([provider], new()).status == 204
    before = [count(crowd.database, table) for table in (consumers, provider_changes)]
    claims = [([provider], new()) for provider in (first, *full[:2])]
    claims.append((INVALID_CLAIMS["an unknown class"](full[2]), new()))
    answers = crowd.claim_each(*claims)
    assert statuses(answers) == [204, 409, 409, 400]
    assert (crowd.joined, crowd.causes) == ([1], ["joint"])
    for claim, answer in zip(claims[1:], answers[1:], strict=True):
        assert answer.error["detail"] == crowd.claim(*claim).error["detail"]
    assert [count(crowd.database, table) for table in (consumers, provider_changes)] == [
        number + 1 for number in before
    ]


@pytest.mark.every_database
def test_a_refused_claim_leaves_no_names_of_its_owner(crowd):
    first, free, full = crowd.provider(), crowd.provider(), crowd.provider(total=1)
    before = count(crowd.database, projects)
    works = [lambda: crowd.claim([first], new()), lambda: crowd.claim([free], new(), owner="placed")]
    works.append(lambda: crowd.claim({full: {"VCPU": 2}}, new(), owner="refused"))
    assert statuses(crowd.together(*works)) == [204, 204, 409]
    assert count(crowd.database, projects) == before + 1
    assert count(crowd.database, projects, projects.c.external_id == "refused") == 0


def test_one_of_several_claims_of_the_same_consumer_is_placed(crowd):
    consumer, other = new(), new()
    providers = [crowd.provider() for _ in range(4)]
    answers = crowd.claim_each(
        *zip([[provider] for provider in providers], [new(), consumer, consumer, other], strict=True)
    )
    assert statuses(answers) == [204, 204, 409, 204]
    assert answers[2].error["code"] == "placement.concurrent_update"
    # Two claims of one consumer never share a transaction.
    assert crowd.joined == [1, 2]
    assert [len(crowd.state(provider)[1]) for provider in providers] == [1, 1, 0, 1]


# --- rows that a stranger has locked ---------------------------------------------------------------------------------


class Stranger:
    """Another session's transaction, which holds the lock on a provider's row."""

    def __init__(self, connection, provider):
        self._connection = connection
        row = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == provider)
        connection.execute(row.with_for_update(key_share=True))
        self.is_there = True

    def leave(self):
        self.is_there = False
        self._connection.rollback()


@pytest.fixture
def lock(database):
    """Return a function that returns a stranger who has locked a provider."""
    with contextlib.ExitStack() as stack:
        yield lambda provider: Stranger(stack.enter_context(database.engine.connect()), provider)


@pytest.mark.usefixtures("patient_database")
@pytest.mark.every_database
@several_writers
@pytest.mark.parametrize(("place", "skips"), [(1, True), (2, True), (1, False)])
def test_a_locked_provider_delays_only_its_own_claim(crowd, lock, place, skips, monkeypatch):
    """This holds even if the server cannot skip locked rows."""
    if not skips:
        monkeypatch.setattr(dialects, "skips_locked_rows", lambda _dialect: False)
    providers = [crowd.provider() for _ in range(3)]
    stranger, others_placed = lock(providers[place]), threading.Barrier(2, action=lambda: stranger.leave())
    waiting = []

    def raise_if_waiting(statement):
        """Stop a transaction of several claims that would wait for the stranger."""
        of_several = "FROM resource_providers" in statement and "ids_2" in statement
        if of_several and locking(statement) and "SKIP LOCKED" not in statement:
            waiting.append(statement)
            raise sql_hooks.PowerCut(statement)

    def work(number):
        answer = crowd.claim([providers[number]], new())
        was_locked = stranger.is_there
        if number != place:
            others_placed.wait(PATIENCE)
        return answer.status, was_locked

    with sql_hooks.statements(crowd.database.engine, raise_if_waiting):
        answers = crowd.together(*(lambda number=number: work(number) for number in range(3)))
    assert waiting == []
    assert answers == [(204, number != place) for number in range(3)]
    assert (crowd.joined, crowd.causes) == ([1, 1, 1], ["joint"])


@pytest.mark.usefixtures("patient_database")
@pytest.mark.every_database
@several_writers
def test_claims_that_all_need_the_locked_provider_wait_for_it_together(database, crowd, lock):
    free, locked = crowd.provider(), crowd.provider()
    stranger = lock(locked)
    with ThreadPoolExecutor(1) as threads:
        leaving = threads.submit(lambda: (wait_for_lock(database), stranger.leave()))
        answers = crowd.claim_each(([free], new()), *(([locked], new()) for _ in range(3)))
        leaving.result(PATIENCE)
    assert statuses(answers) == [204] * 4
    # Their transaction is not abandoned and retried.
    assert (crowd.joined, crowd.causes) == ([1, 3], [])
    assert len(crowd.state(locked)[1]) == 3


@pytest.mark.usefixtures("patient_database")
@pytest.mark.every_database
@several_writers
def test_a_thread_behind_a_stuck_batch_places_its_claim_alone(database, lock):
    with opened(database.url) as own, ThreadPoolExecutor(1) as threads:
        crowd, begun = ProviderCrowd(own), threading.Event()
        own.queue.max_wait = MAX_WAIT
        locked, free = crowd.provider(), crowd.provider()
        stranger = lock(locked)

        def note_update(statement):
            if statement.startswith("UPDATE resource_providers"):
                begun.set()

        with crowd.recording(), sql_hooks.statements(own.engine, note_update):
            stuck = threads.submit(crowd.claim, [locked], new())
            assert begun.wait(PATIENCE)
            free_answer, was_stuck = crowd.claim([free], new()), not stuck.done()
            stranger.leave()
            assert (free_answer.status, was_stuck) == (204, True)
            assert stuck.result(PATIENCE).status == 204
        assert crowd.joined == [1, 1]
