"""Faults in transactions shared by the calls of several threads: each call is answered, and none is half done."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from placement import errors, signals
from placement.db.engine import dialects
from placement.db.schema.tables import allocations, claims, consumers
from tests.clock import PATIENCE
from tests.db import faults, sql_hooks
from tests.db.crowd import statuses
from tests.db.extensions.v1.claim_crowd import call, outcomes_of, waiting_calls
from tests.db.extensions.v1.test_claims import request
from tests.db.extensions.v1.test_claims_at_once import several_writers
from tests.db.faults import Plan
from tests.made import opened

#: The number of calls that are carried out together, after a first call.
NUMBER = 3


class Trial:
    """Repeated runs of calls that are carried out together on one host."""

    def __init__(self, crowd):
        self.crowd = crowd
        crowd.host("a", VCPU=1000)

    def run(self, plan):
        """Return the responses, and whether each consumer holds resources."""
        self.crowd.read()
        self.calls = [call() for _ in range(NUMBER)]
        answers = self.crowd.claim_each(*self.calls, plan=plan)
        return answers, [self.holds(body) for body in self.calls]

    def holds(self, body):
        consumer = body["requests"][0]["consumer"]
        reply = self.crowd("GET", f"/v1/claims/{consumer}")
        assert (reply.status == 200) == (self.crowd("GET", f"/allocations/{consumer}").body["allocations"] != {})
        return reply.status == 200

    def steps(self):
        """Return the statements of the joint transaction, by their numbers."""
        plan = Plan()
        answers, holdings = self.run(plan)
        assert outcomes_of(answers) == ["claimed"] * NUMBER
        assert holdings == [True] * NUMBER
        assert self.crowd.joined == [1, NUMBER]
        return {number: step for number, step in enumerate(plan.seen, 1) if number > plan.seen.index("COMMIT") + 1}

    def number_of(self, beginning):
        return next(number for number, step in self.steps().items() if step.startswith(beginning))


@pytest.fixture
def trial(database, monkeypatch):
    with waiting_calls(database, monkeypatch) as crowd:
        yield Trial(crowd)


def has_unknown_outcome(answer):
    """Whether the response leaves the outcome unknown."""
    return errors.OutcomeUnknown.template in answer.error["detail"]


def test_a_transient_fault_affects_none_of_the_calls(trial, backend):
    collisions = faults.collisions(backend.kind)
    for number, step in trial.steps().items():
        transient = [collisions[number % len(collisions)]]
        if step != "COMMIT":
            transient.append(faults.LOSSES[number % len(faults.LOSSES)])
        for fault in transient:
            plan = Plan(number, [fault])
            answers, holdings = trial.run(plan)
            assert (plan.injected, plan.victim) == (1, step)
            assert statuses(answers) == [200] * NUMBER, step
            assert outcomes_of(answers) == ["claimed"] * NUMBER, step
            assert holdings == [True] * NUMBER
            # They were placed separately: an optimistic claim is one attempt, so it does not wait for a lock twice.
            assert trial.crowd.joined == [1] * (1 + NUMBER), step
            assert trial.crowd.outcomes == {"claimed": 1 + NUMBER}


@pytest.mark.every_database
@several_writers
def test_calls_wait_together_only_once_for_a_locked_consumer(database, monkeypatch):
    """The other calls are answered while the lock is held; a second joint attempt would wait for it again."""
    monkeypatch.setattr(dialects, "LOCK_TIMEOUT", 1)
    answered, released = [], threading.Event()

    def release(environ, _status, _seconds):
        answered.append(environ)
        if len(answered) == NUMBER:  # the first call, and all but one of the others
            connection.rollback()
            released.set()

    def hold(_connection, _cursor, statement, parameters, _context, _many):
        """Delay the locked call's own attempts until the other calls are answered, so that they are not exhausted."""
        is_separate = statement.startswith("INSERT INTO consumers") and "joint" in crowd.causes
        if is_separate and calls[1]["requests"][0]["consumer"] in str(parameters):
            assert released.wait(PATIENCE)

    with opened(database.url) as quick, waiting_calls(quick, monkeypatch) as crowd:
        crowd.host("a", VCPU=100)
        crowd.read()
        calls = [call() for _ in range(NUMBER)]
        row = {"uuid": calls[1]["requests"][0]["consumer"], "project_id": 1, "user_id": 1, "generation": 0}
        with database.engine.connect() as connection:
            connection.execute(sa.insert(consumers).values(**row))
            signals.answered.connect(release)
            sa.event.listen(quick.engine, "before_cursor_execute", hold)
            try:
                answers = crowd.claim_each(*calls)
            finally:
                signals.answered.disconnect(release)
    assert outcomes_of(answers) == ["claimed"] * NUMBER
    assert crowd.joined == [1] * (1 + NUMBER)
    # Together they wait for the lock at most once; then only the call for the locked consumer retries.
    assert crowd.causes[: crowd.causes.index("joint")].count("lock_timeout") <= 1


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_connection_lost_at_commit_leaves_every_outcome_unknown(trial, answer_only):
    plan = Plan(trial.number_of("COMMIT"), [faults.lose], answer_only=answer_only)
    answers, holdings = trial.run(plan)
    assert plan.victim == "COMMIT"
    assert statuses(answers) == [503] * NUMBER
    assert all(map(has_unknown_outcome, answers))
    assert holdings == [answer_only] * NUMBER
    assert trial.crowd.outcomes == {"claimed": 1}
    assert trial.crowd.joined == [1]
    for body in trial.calls:
        [result] = trial.crowd("POST", "/v1/claims", body).body["results"]
        assert result["outcome"] == ("held" if answer_only else "claimed")
        document = trial.crowd("GET", f"/v1/claims/{result['consumer']}").body
        assert document["allocations"] == result["allocations"]


def test_a_permanent_loss_of_the_database_fails_every_call(trial):
    plan = Plan(trial.number_of("INSERT INTO consumers"), [faults.lose], permanent=True)
    answers, holdings = trial.run(plan)
    assert statuses(answers) == [503] * NUMBER
    assert not any(map(has_unknown_outcome, answers))
    assert holdings == [False] * NUMBER


def test_an_interrupted_leader_leaves_the_outcome_of_the_others_unknown(trial):
    trial.crowd.read()
    calls, insertions = [call() for _ in range(NUMBER)], []

    def interrupt(statement):
        if statement.startswith("INSERT INTO allocations"):
            insertions.append(statement)
            if len(insertions) == 2:
                raise KeyboardInterrupt

    with sql_hooks.statements(trial.crowd.database.engine, interrupt):
        first, *other_answers = trial.crowd.claim_each(*calls)
    assert isinstance(first, KeyboardInterrupt)
    assert statuses(other_answers) == [503, 503]
    assert all(map(has_unknown_outcome, other_answers))
    assert [trial.holds(body) for body in calls] == [False] * NUMBER
    trial.crowd.read()
    assert outcomes_of(trial.crowd.claim_each(*calls)) == ["claimed"] * NUMBER


@pytest.mark.parametrize("place", range(NUMBER))
def test_an_internal_error_fails_only_the_call_that_caused_it(trial, place, caplog):
    trial.crowd.read()
    calls = [call() for _ in range(NUMBER)]
    culprit = calls[place]["requests"][0]["consumer"]

    def fail(_connection, _cursor, statement, parameters, _context, _many):
        if statement.startswith("INSERT INTO consumers") and culprit in str(parameters):
            raise RuntimeError("planted")

    engine = trial.crowd.database.engine
    sa.event.listen(engine, "before_cursor_execute", fail)
    answers = trial.crowd.claim_each(*calls)
    sa.event.remove(engine, "before_cursor_execute", fail)
    assert statuses(answers) == [500 if number == place else 200 for number in range(NUMBER)]
    assert [trial.holds(body) for body in calls] == [number != place for number in range(NUMBER)]
    assert trial.crowd.causes.count("joint") == 1
    assert trial.crowd.joined == [1] * NUMBER
    assert trial.crowd.outcomes == {"claimed": NUMBER}
    [logged] = [record for record in caplog.records if "placed separately" in record.getMessage()]
    assert (logged.levelname, logged.exc_info[0]) == ("ERROR", RuntimeError)
    # The consumers of the fixture and of the first call, and all but one of the others.
    assert [trial.crowd.count(table) for table in (consumers, allocations, claims)] == [1 + NUMBER] * 3


def test_a_holding_that_cannot_be_read_fails_only_its_own_call(trial):
    """The database is unavailable when the holding is read; the places of the others are already committed."""
    holding = request()
    assert trial.crowd.claim(holding).status == 200
    trial.crowd.read()

    def lose(statement):
        if "content" in statement and statement.startswith("SELECT"):
            raise errors.DatabaseUnavailable

    calls = [call(), call(holding), call()]
    with sql_hooks.statements(trial.crowd.database.reading_engine, lose):
        answers = trial.crowd.claim_each(*calls)
    assert statuses(answers) == [200, 503, 200]
    assert outcomes_of([answers[0], answers[2]]) == ["claimed", "claimed"]
    assert trial.crowd.joined == [1, 2]
    assert trial.crowd.outcomes == {"claimed": NUMBER}
