"""Claims that wait for one provider are placed by one transaction, and each is answered as if it were alone."""

from __future__ import annotations

import threading
import time
import uuid

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db import retry
from placement.db.bulkhead import Bulkhead
from placement.db.database import opened
from placement.db.joint_write import JointWrite
from placement.db.tables import allocations, consumers, projects, provider_changes
from placement.db.transaction import Collision
from placement.objects.claim import Claim
from placement.objects.consumer import Owner
from placement.objects.joint_claims import joint_write
from tests.db import faults, watch
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.load.soundness import flaws
from tests.load.storm import holding, new

SOON = 60.0
#: A provider that does not exist.
UNKNOWN = str(uuid.UUID(int=7))
OWNER = Owner("project", "user")


class Crowd:
    """Requests of several threads of one process, of which all but the first wait while the first one has begun."""

    def __init__(self, database):
        self.database, self.ask = database, placement(database)
        #: How many writes each transaction did that could do several.
        self.joined = []
        #: How many threads used the database, or waited for one that did, while all but the first waited.
        self.admitted = 0

    def provider(self, total=100, **inventory):
        provider = new()
        assert self.ask("POST", "/resource_providers", 39, {"uuid": provider, "name": provider}).status == 200
        body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": total, **inventory}}}
        assert self.ask("PUT", f"/resource_providers/{provider}/inventories", 39, body).status == 200
        # The names of the owner have ids, and the process has a writer of the feed, from here on.
        assert self.claim([provider], before := new()).status == 204
        assert self.ask("DELETE", f"/allocations/{before}").status == 204
        return provider

    def claim(self, resources, consumer, **more):
        return self.ask("PUT", f"/allocations/{consumer}", 39, holding(resources, **more))

    def together(self, *works):
        """Return what the works return; each runs in a thread, and the first begins to claim once all others wait."""
        results, waiting = [None] * len(works), self.database._joint_writes._combiner._queue._waiting
        first = threading.Event()

        def hold(_statement):
            if threading.current_thread() is threads[0] and not first.is_set():
                first.set()
                until = time.monotonic() + SOON
                while len(self.database._joint_writes._combiner._queue._waiting) < len(works) - 1:
                    assert time.monotonic() < until
                    time.sleep(0.001)
                self.admitted = len(self.database.bulkhead._admitted)

        def run(place):
            try:
                results[place] = works[place]()
            except BaseException as error:
                results[place] = error

        threads = [threading.Thread(target=run, args=(place,)) for place in range(len(works))]
        assert not waiting
        signals.written_jointly.connect(self.joined.append)
        try:
            with watch.statements(self.database.engine, hold):
                threads[0].start()
                assert first.wait(SOON)
                for thread in threads[1:]:
                    thread.start()
                for thread in threads:
                    thread.join(SOON)
        finally:
            signals.written_jointly.disconnect(self.joined.append)
        return results

    def claims(self, provider, *consumers):
        """Return the answers to claims of these consumers for one unit each."""
        return self.together(*(lambda one=one: self.claim([provider], one) for one in consumers))

    def state(self, provider):
        """Return the provider's generation, what its consumers hold, and the generations of these."""
        body = self.ask("GET", f"/resource_providers/{provider}/allocations").body
        held = {one: share["resources"]["VCPU"] for one, share in body["allocations"].items()}
        generations = {share["consumer_generation"] for share in body["allocations"].values()}
        return body["resource_provider_generation"], held, generations


@pytest.fixture(autouse=True)
def _waits(monkeypatch):
    monkeypatch.setattr(retry, "_LONGEST_PAUSE", 0)


@pytest.fixture
def crowd(database):
    """A process on the database; nothing in it waits so long that it goes alone."""
    with opened(database.url) as own:
        own._joint_writes._combiner._longest_wait = SOON
        yield Crowd(own)
    assert flaws(database.engine) == {}


def statuses(answers):
    return [answer.status for answer in answers]


def count(database, table, *where):
    return database.read(lambda db: db.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar())


def test_claims_that_wait_are_placed_with_the_one_that_they_wait_for(crowd):
    provider, several = crowd.provider(), [new() for _ in range(6)]
    before = crowd.state(provider)[0]
    changes = count(crowd.database, provider_changes)
    assert statuses(crowd.claims(provider, *several)) == [204] * 6
    assert crowd.joined == [6]
    assert crowd.state(provider) == (before + 1, dict.fromkeys(several, 1), {1})
    assert count(crowd.database, provider_changes) == changes + 1


def test_together_they_take_no_more_than_there_is(crowd):
    provider = crowd.provider(total=3)
    answers = crowd.claims(provider, *(new() for _ in range(5)))
    assert sorted(statuses(answers)) == [204] * 3 + [409] * 2
    assert crowd.joined == [1, 1, 1]
    assert all("exceed the capacity" in answer.error["detail"] for answer in answers if answer.status == 409)
    assert len(crowd.state(provider)[1]) == 3


#: What may be wrong with a claim, by the resources that it asks for on the provider and the rest of its body.
WRONG = {
    "more than a consumer may have": ({"VCPU": 9}, {}),
    "an unknown class": ({"CUSTOM_NEVER": 1}, {}),
    "a class without inventory": ({"VCPU": 1, "MEMORY_MB": 1}, {}),
    "a consumer that exists": ({"VCPU": 1}, {"generation": None}),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.in_turn
def test_what_is_wrong_with_one_claim_is_the_answer_to_that_one(crowd, wrong, place):
    provider, several = crowd.provider(max_unit=8), [new() for _ in range(4)]
    resources, more = WRONG[wrong]
    if "generation" in more:
        assert crowd.claim([provider], several[place]).status == 204

    def ask(number):
        if number == place:
            return crowd.claim({provider: resources}, several[number], **more)
        return crowd.claim([provider], several[number])

    causes = []
    signals.retried.connect(causes.append)
    answers = crowd.together(*(lambda number=number: ask(number) for number in range(4)))
    signals.retried.disconnect(causes.append)
    # The first is refused before it takes others with it if it is mistaken about its consumer.
    assert causes == ([] if wrong == "a consumer that exists" and place == 0 else ["joint"])
    alone = ask(place)
    assert statuses(answers) == [alone.status if number == place else 204 for number in range(4)]
    assert (answers[place].error["detail"], answers[place].error["code"]) == (
        alone.error["detail"],
        alone.error["code"],
    )


def test_an_unknown_provider_refuses_nothing_but_its_own_claim(crowd):
    provider, several = crowd.provider(), [new() for _ in range(3)]
    works = [lambda one=one: crowd.claim([provider], one) for one in several]
    works.insert(1, lambda: crowd.claim([provider, UNKNOWN], new()))
    assert statuses(crowd.together(*works)) == [204, 400, 204, 204]
    assert len(crowd.state(provider)[1]) == 3


def test_claims_of_one_consumer_are_not_joined(crowd):
    provider, consumer, other = crowd.provider(), new(), new()
    answers = crowd.claims(provider, consumer, consumer, other)
    assert sorted(statuses(answers)) == [204, 204, 409]
    assert answers[2].status == 204
    assert crowd.state(provider)[1] == {consumer: 1, other: 1}


def test_claims_on_several_providers_that_have_one_in_common_are_joined(crowd):
    """Those that wait when the first one has ended; it has not locked the others' own providers."""
    shared, own = crowd.provider(), [crowd.provider() for _ in range(4)]
    answers = crowd.together(*(lambda one=one: crowd.claim([one, shared], new()) for one in own))
    assert statuses(answers) == [204] * 4
    assert crowd.joined == [1, 3]
    assert [len(crowd.state(one)[1]) for one in (shared, *own)] == [4, 1, 1, 1, 1]


def test_new_names_of_several_claims_get_their_rows(crowd):
    provider, several = crowd.provider(), [new() for _ in range(4)]
    answers = crowd.together(*(lambda one=one: crowd.claim([provider], one, owner=f"new {one}") for one in several))
    assert statuses(answers) == [204] * 4
    assert crowd.joined == [4]
    for one in several:
        assert count(crowd.database, projects, projects.c.external_id == f"new {one}") == 1
        assert crowd.ask("GET", f"/allocations/{one}").body["project_id"] == f"new {one}"


def test_several_consumers_of_one_request_are_joined_with_others(crowd):
    provider, pair, third = crowd.provider(), [new(), new()], new()

    def post():
        return crowd.ask("POST", "/allocations", 39, {one: holding([provider]) for one in pair})

    assert statuses(crowd.together(post, lambda: crowd.claim([provider], third))) == [204, 204]
    assert crowd.joined == [2]
    assert crowd.state(provider)[1] == dict.fromkeys([*pair, third], 1)


@pytest.mark.parametrize(
    "claim",
    [
        Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER, generation=1),
        Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER),
        Claim(new(), {}, OWNER, generation=None),
    ],
)
def test_a_consumer_that_may_hold_something_is_judged_alone(claim):
    """Two that change places fit together, but not one after another."""
    fresh = Claim(new(), {UNKNOWN: {"VCPU": 1}}, OWNER, generation=None)
    assert joint_write([fresh]).contended == {UNKNOWN}
    assert joint_write([fresh, claim]).contended == frozenset()


def test_a_dry_run_is_joined_with_nothing(crowd):
    provider, consumer = crowd.provider(), new()

    def dry():
        return crowd.ask("PUT", f"/allocations/{new()}?dry_run=true", 39, holding([provider]))

    signals.written_jointly.connect(crowd.joined.append)
    try:
        assert dry().status == 200
    finally:
        signals.written_jointly.disconnect(crowd.joined.append)
    assert crowd.joined == []
    assert crowd.claim([provider], consumer).status == 204
    assert crowd.state(provider)[1] == {consumer: 1}


def test_the_thread_that_does_the_work_needs_no_further_admission(crowd):
    """Threads that wait are admitted, and no more than the limit: one is left for requests without the database."""
    crowd.database.bulkhead = Bulkhead(3)
    provider, several = crowd.provider(), [new() for _ in range(3)]
    assert statuses(crowd.claims(provider, *several)) == [204] * 3
    assert crowd.joined == [3]
    assert crowd.admitted == 3
    assert crowd.state(provider)[1] == dict.fromkeys(several, 1)


@pytest.mark.in_turn
def test_a_write_has_the_time_of_its_own_request(database):
    """What it has waited for others counts."""
    attempts = []

    def collide(_db, values, _late):
        attempts.append(values)
        raise Collision

    given = {"work": collide, "contended": frozenset(), "distinct": frozenset(), "size": 1, "attempts": 3}
    with pytest.raises(errors.TooManyConflicts):
        database.write_jointly(JointWrite(value="late", deadline=time.monotonic(), **given))
    with pytest.raises(errors.TooManyConflicts):
        database.write_jointly(JointWrite(value="early", **given))
    assert attempts == [["late"], *[["early"]] * 3]


# --- faults ----------------------------------------------------------------------------------------------------------


class Trial:
    """Three claims that are placed together, one of them with a new project."""

    def __init__(self, crowd):
        self.crowd, self.provider = crowd, crowd.provider()

    def run(self, plan):
        several = [new() for _ in range(3)]
        with planted(self.crowd.database, plan):
            answers = self.crowd.claims(self.provider, *several)
        _, held, _ = self.crowd.state(self.provider)
        return statuses(answers), [one in held for one in several]

    def steps(self):
        plan = Plan()
        assert self.run(plan) == ([204] * 3, [True] * 3)
        assert self.crowd.joined == [3]
        return plan.seen


@pytest.fixture
def trial(crowd):
    return Trial(crowd)


def test_a_fault_that_passes_is_noticed_by_none_of_them(trial, backend):
    steps = trial.steps()
    late = steps.index(next(step for step in steps if step.startswith("UPDATE resource_providers"))) + 2
    for at, step in enumerate(steps, 1):
        collisions = faults.collisions(backend.kind)
        for fault in (
            [collisions[at % len(collisions)]]
            if step == "COMMIT"
            else [
                collisions[at % len(collisions)],
                faults.LOSSES[at % len(faults.LOSSES)],
            ]
        ):
            plan, trial.crowd.joined = Plan(at, [fault]), []
            assert trial.run(plan) == ([204] * 3, [True] * 3), (at, step)
            assert plan.done == 1
            # Before the others have joined, the first one is run again as it is.
            assert trial.crowd.joined == ([3] if at < late else [1] * 3), (at, step)


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_connection_lost_with_commit_leaves_it_open_for_all_of_them(trial, answer_only):
    commit = trial.steps().index("COMMIT") + 1
    plan = Plan(commit, [faults.lose], answer_only=answer_only)
    found, done = trial.run(plan)
    assert found == [503] * 3
    assert done == [answer_only] * 3


def test_a_database_that_stays_away_is_the_answer_to_each(trial):
    plan = Plan(3, [faults.lose], for_ever=True)
    assert trial.run(plan) == ([503] * 3, [False] * 3)


def test_an_interrupted_leader_leaves_the_outcome_open_for_the_others(crowd):
    provider, several = crowd.provider(), [new() for _ in range(3)]

    def interrupt(statement):
        if statement.startswith("INSERT INTO allocations"):
            raise KeyboardInterrupt

    with watch.statements(crowd.database.engine, interrupt):
        first, *others = crowd.claims(provider, *several)
    assert isinstance(first, KeyboardInterrupt)
    assert statuses(others) == [503, 503]
    assert all(errors.OutcomeUnknown.template in answer.error["detail"] for answer in others)
    assert crowd.state(provider)[1] == {}
    assert statuses(crowd.claims(provider, *several)) == [204] * 3


def test_an_error_of_the_service_itself_is_answered_to_who_caused_it(crowd):
    provider, several = crowd.provider(), [new() for _ in range(3)]

    def fail(connection, cursor, statement, parameters, context, executemany):
        if statement.startswith("INSERT INTO consumers") and several[1] in str(parameters):
            raise RuntimeError("planted")

    sa.event.listen(crowd.database.engine, "before_cursor_execute", fail)
    answers = crowd.claims(provider, *several)
    sa.event.remove(crowd.database.engine, "before_cursor_execute", fail)
    assert statuses(answers) == [204, 500, 204]
    assert count(crowd.database, consumers) == count(crowd.database, allocations) == 2
