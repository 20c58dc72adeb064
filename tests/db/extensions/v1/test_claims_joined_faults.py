"""Faults of transactions that carry out calls of several threads: each call is answered, and nothing is half done."""

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

#: Calls that are carried out together, after a first one.
NUMBER = 3


class Trial:
    """Calls that are carried out together, again and again on the same host."""

    def __init__(self, crowd):
        self.crowd = crowd
        crowd.host("a", VCPU=1000)

    def run(self, plan):
        """Return the answers, and which of the consumers hold something."""
        self.crowd.read()
        self.calls = [call() for _ in range(NUMBER)]
        answers = self.crowd.claim_each(*self.calls, plan=plan)
        return answers, [self.holds(one) for one in self.calls]

    def holds(self, one):
        consumer = one["requests"][0]["consumer"]
        shown = self.crowd("GET", f"/v1/claims/{consumer}")
        assert (shown.status == 200) == (self.crowd("GET", f"/allocations/{consumer}").body["allocations"] != {})
        return shown.status == 200

    def steps(self):
        """Return the statements of the joint transaction, by their numbers."""
        plan = Plan()
        answers, held = self.run(plan)
        assert outcomes_of(answers) == ["claimed"] * NUMBER
        assert held == [True] * NUMBER
        assert self.crowd.joined == [1, NUMBER]
        return {number: step for number, step in enumerate(plan.seen, 1) if number > plan.seen.index("COMMIT") + 1}

    def number_of(self, beginning):
        return next(number for number, step in self.steps().items() if step.startswith(beginning))


@pytest.fixture
def trial(database, monkeypatch):
    with waiting_calls(database, monkeypatch) as crowd:
        yield Trial(crowd)


def leaves_it_open(answer):
    """Whether the answer says that the change may be in effect, or not."""
    return errors.OutcomeUnknown.template in answer.error["detail"]


def test_a_fault_that_passes_is_noticed_by_none_of_them(trial, backend):
    collisions = faults.collisions(backend.kind)
    for number, step in trial.steps().items():
        several = [collisions[number % len(collisions)]]
        if step != "COMMIT":
            several.append(faults.LOSSES[number % len(faults.LOSSES)])
        for fault in several:
            plan = Plan(number, [fault])
            answers, held = trial.run(plan)
            assert (plan.done, plan.victim) == (1, step)
            assert statuses(answers) == [200] * NUMBER, step
            assert outcomes_of(answers) == ["claimed"] * NUMBER, step
            assert held == [True] * NUMBER
            # They were placed separately: an optimistic claim is one attempt, so it does not wait for a lock twice.
            assert trial.crowd.joined == [1] * (1 + NUMBER), step
            assert trial.crowd.outcomes == {"claimed": 1 + NUMBER}


@pytest.mark.every_database
@several_writers
def test_a_consumer_that_another_transaction_has_locked_keeps_the_others_waiting_once(database, monkeypatch):
    """They are answered while the lock is held: another attempt that they all wait for would have to wait for it."""
    monkeypatch.setattr(dialects, "LOCK_TIMEOUT", 1)
    answered, released = [], threading.Event()

    def release(environ, _status, _seconds):
        answered.append(environ)
        if len(answered) == NUMBER:  # the first one, and all but one of the others
            connection.rollback()
            released.set()

    def hold(_connection, _cursor, statement, parameters, _context, _many):
        """So that its attempts are not exhausted before the others are answered."""
        of_its_own = statement.startswith("INSERT INTO consumers") and "joint" in crowd.causes
        if of_its_own and calls[1]["requests"][0]["consumer"] in str(parameters):
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
    # Together they wait for the lock once; then only the one that it is about tries again.
    assert crowd.causes[: crowd.causes.index("joint")].count("lock_timeout") <= 1


@pytest.mark.parametrize("answer_only", [False, True])
def test_a_connection_lost_with_commit_leaves_it_open_for_all_of_them(trial, answer_only):
    plan = Plan(trial.number_of("COMMIT"), [faults.lose], answer_only=answer_only)
    answers, held = trial.run(plan)
    assert plan.victim == "COMMIT"
    assert statuses(answers) == [503] * NUMBER
    assert all(map(leaves_it_open, answers))
    assert held == [answer_only] * NUMBER
    assert trial.crowd.outcomes == {"claimed": 1}
    assert trial.crowd.joined == [1]
    for one in trial.calls:
        [result] = trial.crowd("POST", "/v1/claims", one).body["results"]
        assert result["outcome"] == ("held" if answer_only else "claimed")
        shown = trial.crowd("GET", f"/v1/claims/{result['consumer']}").body
        assert shown["allocations"] == result["allocations"]


def test_a_database_that_stays_away_is_the_answer_to_each(trial):
    plan = Plan(trial.number_of("INSERT INTO consumers"), [faults.lose], for_ever=True)
    answers, held = trial.run(plan)
    assert statuses(answers) == [503] * NUMBER
    assert not any(map(leaves_it_open, answers))
    assert held == [False] * NUMBER


def test_an_interrupted_leader_leaves_the_outcome_open_for_the_others(trial):
    trial.crowd.read()
    calls, begun = [call() for _ in range(NUMBER)], []

    def interrupt(statement):
        if statement.startswith("INSERT INTO allocations"):
            begun.append(statement)
            if len(begun) == 2:
                raise KeyboardInterrupt

    with sql_hooks.statements(trial.crowd.database.engine, interrupt):
        first, *others = trial.crowd.claim_each(*calls)
    assert isinstance(first, KeyboardInterrupt)
    assert statuses(others) == [503, 503]
    assert all(map(leaves_it_open, others))
    assert [trial.holds(one) for one in calls] == [False] * NUMBER
    trial.crowd.read()
    assert outcomes_of(trial.crowd.claim_each(*calls)) == ["claimed"] * NUMBER


@pytest.mark.parametrize("place", range(NUMBER))
def test_an_error_of_the_service_itself_is_answered_to_who_caused_it(trial, place, caplog):
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
    assert [trial.holds(one) for one in calls] == [number != place for number in range(NUMBER)]
    assert trial.crowd.causes.count("joint") == 1
    assert trial.crowd.joined == [1] * NUMBER
    assert trial.crowd.outcomes == {"claimed": NUMBER}
    [logged] = [record for record in caplog.records if "placed separately" in record.getMessage()]
    assert (logged.levelname, logged.exc_info[0]) == ("ERROR", RuntimeError)
    # That of the fixture, that of the first call, and all but one of the others.
    assert [trial.crowd.count(table) for table in (consumers, allocations, claims)] == [1 + NUMBER] * 3


def test_what_cannot_be_read_of_one_consumer_concerns_its_own_call_only(trial):
    """It holds something, and the database is away when that is read; the places of the others are committed."""
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
