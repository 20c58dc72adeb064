"""Claims that wait for one provider are placed by one transaction, and each is answered as if it were alone."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from placement import errors
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema.tables import allocations, consumers, projects, provider_changes
from placement.db.writes.joint_write import JointWrite
from placement.db.writes.transaction import Collision
from placement.objects.claims import joint_claims
from placement.objects.claims.claim import Claim
from placement.objects.claims.joint_claims import joint_write
from placement.objects.consumer import Owner
from tests.clock import PATIENCE
from tests.db import faults, sql_hooks
from tests.db.crowd import UNKNOWN, WRONG, ProviderCrowd, count, statuses
from tests.db.faults import Plan, planted
from tests.load.soundness import flaws
from tests.load.storm import holding, new
from tests.made import opened

OWNER = Owner("project", "user")

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def crowd(database, monkeypatch):
    """A process on the database whose claims wait for those on the same provider, and for no others.

    Nothing in it waits so long that it goes alone.
    """
    monkeypatch.setattr(joint_claims, "_place_free", None)
    with opened(database.url) as own:
        own._joint_writes._alike._longest_wait = PATIENCE
        yield ProviderCrowd(own, own._joint_writes._alike)
    assert flaws(database) == {}


@pytest.mark.every_database
def test_claims_that_wait_are_placed_with_the_one_that_they_wait_for(crowd):
    provider, several = crowd.provider(), [new() for _ in range(6)]
    before = crowd.state(provider)[0]
    changes = count(crowd.database, provider_changes)
    assert statuses(crowd.claims(provider, *several)) == [204] * 6
    assert crowd.joined == [6]
    assert crowd.state(provider) == (before + 1, dict.fromkeys(several, 1), {1})
    assert count(crowd.database, provider_changes) == changes + 1


@pytest.mark.every_database
def test_together_they_take_no_more_than_there_is(crowd):
    provider = crowd.provider(total=3)
    answers = crowd.claims(provider, *(new() for _ in range(5)))
    assert sorted(statuses(answers)) == [204] * 3 + [409] * 2
    assert crowd.joined == [1, 1, 1]
    assert all("exceed the capacity" in answer.error["detail"] for answer in answers if answer.status == 409)
    assert len(crowd.state(provider)[1]) == 3


@pytest.mark.parametrize("wrong", sorted({*WRONG} - {"an unknown provider"}))
@pytest.mark.parametrize("place", [0, 2])
def test_what_is_wrong_with_one_claim_is_the_answer_to_that_one(crowd, wrong, place):
    provider, several = crowd.provider(max_unit=8), [new() for _ in range(4)]
    claims = [([provider], one) for one in several]
    claims[place] = WRONG[wrong](provider), several[place]
    if wrong == "a consumer that exists":
        assert crowd.claim([provider], several[place]).status == 204
    answers = crowd.claim_each(*claims)
    # The first is refused before it takes others with it if it is mistaken about its consumer.
    assert crowd.causes == ([] if wrong == "a consumer that exists" and place == 0 else ["joint"])
    alone = crowd.claim(*claims[place])
    assert statuses(answers) == [alone.status if number == place else 204 for number in range(4)]
    assert (answers[place].error["detail"], answers[place].error["code"]) == (
        alone.error["detail"],
        alone.error["code"],
    )


@pytest.mark.every_database
def test_an_unknown_provider_refuses_nothing_but_its_own_claim(crowd):
    provider, several = crowd.provider(), [new() for _ in range(3)]
    claims = [([provider], one) for one in several]
    claims.insert(1, (WRONG["an unknown provider"](provider), new()))
    assert statuses(crowd.claim_each(*claims)) == [204, 400, 204, 204]
    assert len(crowd.state(provider)[1]) == 3


@pytest.mark.every_database
def test_claims_of_one_consumer_are_not_joined(crowd):
    provider, consumer, other = crowd.provider(), new(), new()
    answers = crowd.claims(provider, consumer, consumer, other)
    assert sorted(statuses(answers)) == [204, 204, 409]
    assert answers[2].status == 204
    assert crowd.state(provider)[1] == {consumer: 1, other: 1}


@pytest.mark.every_database
def test_claims_on_several_providers_that_have_one_in_common_are_joined(crowd):
    """Those that wait when the first one has ended; it has not locked the others' own providers."""
    shared, own = crowd.provider(), [crowd.provider() for _ in range(4)]
    answers = crowd.claim_each(*(([one, shared], new()) for one in own))
    assert statuses(answers) == [204] * 4
    assert crowd.joined == [1, 3]
    assert [len(crowd.state(one)[1]) for one in (shared, *own)] == [4, 1, 1, 1, 1]


@pytest.mark.every_database
def test_new_names_of_several_claims_get_their_rows(crowd):
    provider, several = crowd.provider(), [new() for _ in range(4)]
    answers = crowd.together(*(lambda one=one: crowd.claim([provider], one, owner=f"new {one}") for one in several))
    assert statuses(answers) == [204] * 4
    assert crowd.joined == [4]
    for one in several:
        assert count(crowd.database, projects, projects.c.external_id == f"new {one}") == 1
        assert crowd.ask("GET", f"/allocations/{one}").body["project_id"] == f"new {one}"


@pytest.mark.every_database
def test_several_consumers_of_one_request_are_joined_with_others(crowd):
    provider, pair, third = crowd.provider(), [new(), new()], new()

    def post():
        return crowd.ask("POST", "/allocations", 39, {one: holding([provider]) for one in pair})

    assert statuses(crowd.together(post, lambda: crowd.claim([provider], third))) == [204, 204]
    assert crowd.joined == [2]
    assert crowd.state(provider)[1] == dict.fromkeys([*pair, third], 1)


@pytest.mark.every_database
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
    assert joint_write([fresh]).mixed_work is not None
    assert joint_write([claim]).mixed_work is joint_write([fresh, fresh]).mixed_work is None


@pytest.mark.every_database
def test_a_dry_run_is_joined_with_nothing(crowd):
    provider, consumer = crowd.provider(), new()

    def dry():
        return crowd.ask("PUT", f"/allocations/{new()}?dry_run=true", 39, holding([provider]))

    with crowd.recorded():
        assert dry().status == 200
    assert crowd.joined == []
    assert crowd.claim([provider], consumer).status == 204
    assert crowd.state(provider)[1] == {consumer: 1}


@pytest.mark.every_database
def test_the_thread_that_does_the_work_is_the_only_one_that_is_admitted(crowd):
    """Threads that wait for another's work are not admitted, so they are not in its way."""
    crowd.database.bulkhead = Bulkhead(1)
    provider, several = crowd.provider(), [new() for _ in range(3)]
    assert statuses(crowd.claims(provider, *several)) == [204] * 3
    assert crowd.joined == [3]
    assert crowd.admitted == 1
    assert crowd.state(provider)[1] == dict.fromkeys(several, 1)


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


@pytest.mark.every_database
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
            plan = Plan(at, [fault])
            assert trial.run(plan) == ([204] * 3, [True] * 3), (at, step)
            assert plan.done == 1
            # Before the others have joined, the first one is run again as it is.
            assert trial.crowd.joined == ([3] if at < late else [1] * 3), (at, step)


@pytest.mark.every_database
@pytest.mark.parametrize("answer_only", [False, True])
def test_a_connection_lost_with_commit_leaves_it_open_for_all_of_them(trial, answer_only):
    commit = trial.steps().index("COMMIT") + 1
    plan = Plan(commit, [faults.lose], answer_only=answer_only)
    found, done = trial.run(plan)
    assert found == [503] * 3
    assert done == [answer_only] * 3


@pytest.mark.every_database
def test_a_database_that_stays_away_is_the_answer_to_each(trial):
    plan = Plan(3, [faults.lose], for_ever=True)
    assert trial.run(plan) == ([503] * 3, [False] * 3)


@pytest.mark.every_database
def test_an_interrupted_leader_leaves_the_outcome_open_for_the_others(crowd):
    provider, several = crowd.provider(), [new() for _ in range(3)]

    def interrupt(statement):
        if statement.startswith("INSERT INTO allocations"):
            raise KeyboardInterrupt

    with sql_hooks.statements(crowd.database.engine, interrupt):
        first, *others = crowd.claims(provider, *several)
    assert isinstance(first, KeyboardInterrupt)
    assert statuses(others) == [503, 503]
    assert all(errors.OutcomeUnknown.template in answer.error["detail"] for answer in others)
    assert crowd.state(provider)[1] == {}
    assert statuses(crowd.claims(provider, *several)) == [204] * 3


@pytest.mark.every_database
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
