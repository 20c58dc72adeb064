"""Faults while one transaction places claims on different providers: each gets the response of a lone claim."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db.engine import bulkhead
from placement.db.engine.bulkhead import Bulkhead
from placement.db.schema.tables import allocations, consumers
from placement.db.writes import queue
from tests.clock import PATIENCE
from tests.db import faults, sql_hooks
from tests.db.crowd import count, provider_crowd, statuses
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.load.storm import holding, new

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.fixture
def crowd(database):
    with provider_crowd(database) as crowd:
        yield crowd


class Trial:
    """A claim, and three claims on different providers that the next transaction places together."""

    def __init__(self, crowd):
        self.crowd, self.providers = crowd, [crowd.provider() for _ in range(4)]

    def run(self):
        """Return the responses, and whether each claim is in effect."""
        consumer_uuids = [new() for _ in self.providers]
        places = [[provider] for provider in self.providers]
        answers = self.crowd.claim_each(*zip(places, consumer_uuids, strict=True))
        pairs = zip(self.providers, consumer_uuids, strict=True)
        holdings = [consumer in self.crowd.state(provider)[1] for provider, consumer in pairs]
        return answers, holdings

    def run_with(self, plan):
        with plant(self.crowd.database, plan):
            answers, holdings = self.run()
        return statuses(answers), holdings

    def steps(self):
        """Return the statements of the second transaction, by their numbers among all statements."""
        plan = Plan()
        assert self.run_with(plan) == ([204] * 4, [True] * 4)
        assert self.crowd.joined == [1, 3]
        commits = [number for number, step in enumerate(plan.seen, 1) if step == "COMMIT"]
        return {number: plan.seen[number - 1] for number in range(commits[0] + 1, commits[1] + 1)}


@pytest.fixture
def trial(crowd):
    return Trial(crowd)


def is_unknown(answer):
    return answer.status == 503 and errors.OutcomeUnknown.template in answer.error["detail"]


def test_a_transient_fault_affects_no_response(trial, backend):
    collisions = faults.collisions(backend.kind)
    for at, step in trial.steps().items():
        several = [collisions[at % len(collisions)]]
        if step != "COMMIT":
            several.append(faults.LOSSES[at % len(faults.LOSSES)])
        for fault in several:
            plan = Plan(at, [fault])
            assert trial.run_with(plan) == ([204] * 4, [True] * 4), (at, step)
            assert (plan.injected, plan.victim) == (1, step)
            # Then a separate transaction places each claim.
            assert trial.crowd.joined == [1] * 4, (at, step)
            assert trial.crowd.causes.count("joint") == 1


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_connection_lost_during_commit_leaves_the_outcome_of_all_claims_unknown(trial, answer_only):
    commit = max(trial.steps())
    with plant(trial.crowd.database, Plan(commit, [faults.lose], answer_only=answer_only)):
        answers, holdings = trial.run()
    assert [answers[0].status, *map(is_unknown, answers[1:])] == [204, True, True, True]
    assert holdings == [True, *[answer_only] * 3]
    assert trial.crowd.joined == [1]


@pytest.mark.every_database
def test_all_claims_fail_if_the_database_stays_down(trial):
    plan = Plan(min(trial.steps()), [faults.lose], permanent=True)
    with plant(trial.crowd.database, plan):
        answers = trial.crowd.claim_each(*(([provider], new()) for provider in trial.providers))
    assert statuses(answers) == [204, 503, 503, 503]
    # Nothing was committed, and each response says so, without another attempt.
    assert "joint" not in trial.crowd.causes
    assert all(errors.DatabaseUnavailable.template in answer.error["detail"] for answer in answers[1:])
    assert [len(trial.crowd.state(provider)[1]) for provider in trial.providers] == [2, 1, 1, 1]


@pytest.mark.every_database
def test_an_interrupted_leader_leaves_the_outcome_of_the_others_unknown(trial):
    def interrupt(statement):
        if statement.startswith("INSERT INTO allocations") and trial.crowd.joined == [1]:
            raise KeyboardInterrupt

    with sql_hooks.statements(trial.crowd.database.engine, interrupt):
        (first, leader, *others), holdings = trial.run()
    assert first.status == 204
    assert isinstance(leader, KeyboardInterrupt)
    assert [is_unknown(answer) for answer in others] == [True, True]
    assert holdings == [True, False, False, False]
    answers, holdings = trial.run()
    assert (statuses(answers), holdings) == ([204] * 4, [True] * 4)


@pytest.mark.parametrize("place", [1, 2])
def test_an_internal_error_fails_only_the_claim_that_caused_it(crowd, place, caplog):
    consumer_uuids = [new() for _ in range(4)]

    def fail(connection, cursor, statement, parameters, context, executemany):
        if statement.startswith("INSERT INTO consumers") and consumer_uuids[place] in str(parameters):
            raise RuntimeError("planted")

    claims = [([crowd.provider()], consumer) for consumer in consumer_uuids]
    sa.event.listen(crowd.database.engine, "before_cursor_execute", fail)
    answers = crowd.claim_each(*claims)
    sa.event.remove(crowd.database.engine, "before_cursor_execute", fail)
    assert statuses(answers) == [500 if number == place else 204 for number in range(4)]
    assert crowd.causes == ["joint"]
    [logged] = [record for record in caplog.records if "placed separately" in record.getMessage()]
    assert (logged.levelname, logged.exc_info[0]) == ("ERROR", RuntimeError)
    assert count(crowd.database, consumers) == count(crowd.database, allocations) == 3


def test_an_error_after_all_claims_were_placed_rolls_all_of_them_back(trial):
    failed = []

    def fail(statement):
        if "INSERT INTO provider_changes" in statement and trial.crowd.joined == [1] and not failed:
            failed.append(statement)
            raise RuntimeError("planted")

    with sql_hooks.statements(trial.crowd.database.engine, fail):
        answers, holdings = trial.run()
    assert failed
    assert (statuses(answers), holdings) == ([204] * 4, [True] * 4)
    assert (trial.crowd.joined, trial.crowd.causes) == ([1] * 4, ["joint"])


@pytest.mark.every_database
@pytest.mark.parametrize("why", ["refused", "failed"])
def test_a_second_transaction_that_writes_nothing_affects_no_response(crowd, database, why):
    """The first transaction is rolled back because a claim is refused; then another claim no longer fits, or fails."""
    first, occupied, free, full = providers = [crowd.provider(total=1) for _ in range(4)]
    consumer_uuids, failed = [new() for _ in providers], []

    def take(_cause):
        if why == "refused":
            assert placement(database)("PUT", f"/allocations/{new()}", 39, holding([occupied])).status == 204

    def fail(statement):
        if why == "failed" and statement.startswith("INSERT INTO allocations") and crowd.causes and not failed:
            failed.append(statement)
            raise RuntimeError("planted")

    signals.retried.connect(take)
    try:
        with sql_hooks.statements(crowd.database.engine, fail):
            places = [[first], [occupied], [free], {full: {"VCPU": 2}}]
            answers = crowd.claim_each(*zip(places, consumer_uuids, strict=True))
    finally:
        signals.retried.disconnect(take)
    assert statuses(answers) == [204, 409 if why == "refused" else 204, 204, 409]
    holdings = [
        consumer in crowd.state(provider)[1] for provider, consumer in zip(providers, consumer_uuids, strict=True)
    ]
    assert holdings == [answer.status == 204 for answer in answers]
    assert (crowd.causes, len(failed)) == (["joint"], why == "failed")


def test_a_follower_gives_up_on_a_stalled_leader_if_no_thread_is_left(crowd, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.2)
    crowd.database.bulkhead = Bulkhead(2, check_interval=0.02)
    trial, stalled, has_given_up = Trial(crowd), threading.Event(), threading.Event()

    class Called(threading.Event):
        """An event whose wait times out once the leader is stalled, so that the thread becomes a follower."""

        def wait(self, timeout=None):
            while not super().wait(0.01):
                if stalled.is_set():
                    return False
            return True

    turn = queue.Turn
    monkeypatch.setattr(queue, "Turn", lambda *facts: turn(*facts, called=Called()))
    consumer_uuids = [new() for _ in trial.providers]

    def stall(statement):
        if statement.startswith("INSERT INTO allocations") and crowd.joined == [1]:
            stalled.set()
            assert has_given_up.wait(PATIENCE)

    given_up = []

    def work(at):
        answer = crowd.claim([trial.providers[at]], consumer_uuids[at])
        if answer.status != 204:
            # Its thread is free for other requests.
            given_up.append((is_unknown(answer), crowd.ask("GET", "/").status, [*crowd.joined]))
            has_given_up.set()
        return answer

    with sql_hooks.statements(crowd.database.engine, stall):
        answers = crowd.together(*(lambda at=at: work(at) for at in range(4)))
    # The second claim leads the batch; chance decides which of its followers arrived last.
    assert statuses(answers) in ([204, 204, 204, 503], [204, 204, 503, 204])
    assert given_up == [(True, 200, [1])]
    # The leader does not notice: the claim is in effect like the others.
    assert crowd.joined == [1, 3]
    assert [crowd.state(provider)[1] for provider in trial.providers] == [{consumer: 1} for consumer in consumer_uuids]
