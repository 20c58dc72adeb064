"""Faults of the database during a write: the response is a success, 409 or 503, and it is true.

Every statement and every COMMIT of every write fails on one of the databases; in a long run everything fails on each,
with every error.  The rows, the feed, and the responses of an application without faults are checked.

The requests follow others in their process, except in two trials: the first request of a process also opens
connections and registers a writer of the feed, with the same statements for every write.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

import pytest
import sqlalchemy as sa

from placement.db.database import Database
from tests.caller import Answer
from tests.db import faults, writes
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenario_run import ScenarioRun
from tests.db.scenarios import Write
from tests.made import opened
from tests.run_length import LONG

#: Opens the database of a process, in which faults are injected.
Process = Callable[[], contextlib.AbstractContextManager[Database]]

pytestmark = pytest.mark.usefixtures("no_pauses")


#: Steps at which one request of a short run meets faults.
STEPS_AT_ONCE = 8


class Trial:
    """One write, which is repeated with a different fault each time."""

    def __init__(self, write: Write, database: Database, process: Process) -> None:
        self.write, self.database, self._process = write, database, process
        self._scenario_run, plan = ScenarioRun(write, database), Plan()
        self._before = self._scenario_run.state()
        assert self._ask(self._scenario_run, plan).status == write.status
        self._after = self._scenario_run.state()
        #: Statements and COMMITs of the request without faults.
        self.steps = plan.seen

    def run(self, at: int, *injected: faults.Fault, **plan: bool) -> int:
        """Run the write with the plan, and check that the database agrees with the status; return the status."""
        return self.carry_out(Plan(at, injected, **plan))

    def carry_out(self, plan: Plan) -> int:
        """Run the write with any plan; see ``run``."""
        if self._after != self._before:
            self._scenario_run = ScenarioRun(self.write, self.database)
        scenario_run = self._scenario_run
        status, body, _ = self._ask(scenario_run, plan)
        last = f"{plan.injected} of {plan.faults} at {plan.victim!r}"
        reported = f"{status} {body} after {plan.earlier} and {last}"
        assert plan.injected or plan.earlier, reported
        state, unchanged, changed = (
            (scenario_run.state(), scenario_run.changes()),
            (self._before, {}),
            (self._after, self.write.changes),
        )
        allowed = {503: [unchanged, changed], 409: [unchanged]} | {self.write.status: [changed]}
        assert status in allowed, reported
        assert state in allowed[status], reported
        return status

    def _ask(self, scenario_run: ScenarioRun, plan: Plan) -> Answer:
        with self._process() as process_database, plant(process_database, plan):
            return scenario_run.ask(placement(process_database))


@contextlib.contextmanager
def used_database(database: Database) -> Iterator[Database]:
    """Return the database of a process that has read and written, so that it has connections and a feed writer."""
    database.read(lambda db: db.execute(sa.select(1)))
    database.writers.check_in(database.writers.check_out(database.engine))
    yield database


@pytest.fixture
def trial(write, database):
    with opened(database.url) as process_database:
        yield Trial(write, database, lambda: used_database(process_database))


WRITES = [*writes.ALL, *writes.DRY_RUNS]
#: Writes that are tested as the first request of a process; the second reads before it writes.
FIRST_WRITES = [
    write for write in WRITES if LONG or write.name in ("create a provider", "allocate where no node is free")
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_the_response_to_a_write_is_true_despite_faults(trial, backend):
    each_step_fails(trial, backend)
    a_connection_lost_at_commit_may_leave_the_outcome_unknown(trial)
    permanent_faults_are_a_conflict_or_unavailable(trial, backend)


@pytest.mark.parametrize("write", FIRST_WRITES, ids=lambda write: write.name)
def test_transient_faults_are_not_noticed_in_a_new_process(write, database, backend):
    trial = Trial(write, database, lambda: opened(database.url))
    each_step_fails(trial, backend)


def each_step_fails(trial, backend):
    """Check that transient faults are not noticed.

    A lost connection, then a deadlock, a timeout or a serialization failure, at a statement; these at COMMIT too.  A
    long run injects all of them in turn.  In a short run a request meets one of them at each of the next steps, too:
    its prerequisites take longer than the request, and a connection may be lost only once.
    """
    collisions = faults.collisions(backend.kind)
    if LONG:
        for at, step in enumerate(trial.steps, 1):
            for loss in faults.LOSSES if step != "COMMIT" else ():
                assert trial.run(at, loss, *collisions) == trial.write.status
            assert trial.run(at, *collisions) == trial.write.status
        return
    steps = [*enumerate(trial.steps, 1)]
    while steps:
        (at, step), *later_steps = steps[:STEPS_AT_ONCE]
        loss = [faults.LOSSES[at // 2 % len(faults.LOSSES)]] if step != "COMMIT" else []
        later_faults = [(other, [collisions[number % len(collisions)]]) for number, other in later_steps]
        plan = Plan(at, [*loss, collisions[at % len(collisions)]], later_faults)
        assert trial.carry_out(plan) == trial.write.status
        # A step may be missing in a later attempt, and an equal step may have failed in its place.
        failed_steps = len(plan.earlier) + bool(plan.injected)
        certain_steps = itertools.takewhile(
            lambda step: trial.steps.count(step) == 1, (step for step, _ in later_faults[: failed_steps - 1])
        )
        del steps[: 1 + len([*certain_steps])]


def a_connection_lost_at_commit_may_leave_the_outcome_unknown(trial):
    """Check that the request, which may have taken effect, is not repeated; only its prerequisites are.

    The connection is lost before the server receives COMMIT, and before its response arrives.
    """
    commits = [at for at, step in enumerate(trial.steps, 1) if step == "COMMIT"]
    for answer_only in (False, True):
        statuses = [trial.run(at, faults.lose, answer_only=answer_only) for at in commits]
        if trial.write.changes:
            assert 503 in statuses


def permanent_faults_are_a_conflict_or_unavailable(trial, backend):
    """Check that permanent faults change nothing: 409 if every attempt collides, 503 if the database is unreachable."""
    deadlock = faults.collisions(backend.kind)[0]
    places = range(1, len(trial.steps) + 1)
    for at in places if LONG else places[-2:-1]:
        assert trial.run(at, deadlock, permanent=True) in (409, 503)
        assert trial.run(at, faults.lose, permanent=True) == 503
