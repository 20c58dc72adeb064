"""The database fails in the middle of a write: the response is that of a success, or 409, or 503, and it is true.

Every statement and every COMMIT of every write fails on one of the databases; in a long run everything fails on each,
with every error.  The result is checked in the rows, in the feed, and through an application without faults.

The requests are those of a process that has served others, but for two: the first request of a process has statements
that make connections and the writer of the feed, and they are the same for every write.
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
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.scenario_run import ScenarioRun
from tests.db.scenarios import Write
from tests.made import opened
from tests.run_length import LONG

#: Provides the database of a process, in which faults are planted.
Process = Callable[[], contextlib.AbstractContextManager[Database]]

pytestmark = pytest.mark.usefixtures("no_pauses")


#: Steps of a short run at which one request meets faults.
STEPS_AT_ONCE = 8


class Trial:
    """One write, run again and again with another fault each time."""

    def __init__(self, write: Write, database: Database, process: Process) -> None:
        self.write, self.database, self._process = write, database, process
        self._story_run, plan = ScenarioRun(write, database), Plan()
        self._before = self._story_run.state()
        assert self._ask(self._story_run, plan).status == write.status
        self._after = self._story_run.state()
        #: Statements and COMMITs of the request when nothing goes wrong.
        self.steps = plan.seen

    def run(self, at: int, *injected: faults.Fault, **plan: bool) -> int:
        """Run the write by the plan; return its status, after checking that the database agrees with it."""
        return self.carry_out(Plan(at, injected, **plan))

    def carry_out(self, planned: Plan) -> int:
        """The same for any plan."""
        if self._after != self._before:
            self._story_run = ScenarioRun(self.write, self.database)
        story_run = self._story_run
        status, body, _ = self._ask(story_run, planned)
        last = f"{planned.done} of {planned.faults} at {planned.victim!r}"
        reported = f"{status} {body} after {planned.earlier} and {last}"
        assert planned.done or planned.earlier, reported
        state, unchanged, changed = (
            (story_run.state(), story_run.changes()),
            (self._before, {}),
            (self._after, self.write.changes),
        )
        allowed = {503: [unchanged, changed], 409: [unchanged]} | {self.write.status: [changed]}
        assert status in allowed, reported
        assert state in allowed[status], reported
        return status

    def _ask(self, story_run: ScenarioRun, plan: Plan) -> Answer:
        with self._process() as touched, planted(touched, plan):
            return story_run.ask(placement(touched))


@contextlib.contextmanager
def experienced(database: Database) -> Iterator[Database]:
    """A process that has read and written before: its connections are set up, and it has a writer of the feed."""
    database.read(lambda db: db.execute(sa.select(1)))
    database.writers.check_in(database.writers.check_out(database.engine))
    yield database


@pytest.fixture
def trial(write, database):
    with opened(database.url) as touched:
        yield Trial(write, database, lambda: experienced(touched))


WRITES = [*writes.ALL, *writes.DRY_RUNS]
#: The second one reads before it writes.
FIRST = [write for write in WRITES if LONG or write.name in ("create a provider", "allocate where no node is free")]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.name)
def test_the_response_to_a_write_is_true_despite_faults(trial, backend):
    each_step_fails(trial, backend)
    a_connection_lost_with_commit_leaves_it_open(trial)
    faults_that_stay_are_conflict_or_unavailable(trial, backend)


@pytest.mark.parametrize("write", FIRST, ids=lambda write: write.name)
def test_transient_faults_are_not_noticed_in_a_new_process(write, database, backend):
    trial = Trial(write, database, lambda: opened(database.url))
    each_step_fails(trial, backend)


def each_step_fails(trial, backend):
    """A fault that passes is not noticed.

    A lost connection, then a deadlock, a timeout or a serialization failure, at a statement; these at COMMIT too.  In a
    long run all of them, one after another.  In a short run a request meets one of them at each of the next steps, too:
    to make what it needs takes longer than the request, and a connection may be lost only once.
    """
    collisions = faults.collisions(backend.kind)
    if LONG:
        for at, step in enumerate(trial.steps, 1):
            for loss in faults.LOSSES if step != "COMMIT" else ():
                assert trial.run(at, loss, *collisions) == trial.write.status
            assert trial.run(at, *collisions) == trial.write.status
        return
    left = [*enumerate(trial.steps, 1)]
    while left:
        (at, step), *others = left[:STEPS_AT_ONCE]
        loss = [faults.LOSSES[at // 2 % len(faults.LOSSES)]] if step != "COMMIT" else []
        then = [(other, [collisions[number % len(collisions)]]) for number, other in others]
        plan = Plan(at, [*loss, collisions[at % len(collisions)]], then)
        assert trial.carry_out(plan) == trial.write.status
        # A step may not come again in a later attempt, and an equal one may have been met in its place.
        met = len(plan.earlier) + bool(plan.done)
        sure = itertools.takewhile(lambda step: trial.steps.count(step) == 1, (step for step, _ in then[: met - 1]))
        del left[: 1 + len([*sure])]


def a_connection_lost_with_commit_leaves_it_open(trial):
    """The request is not repeated, since it may have taken effect.  Only what precedes its transaction is.

    The connection is lost on its way there, and on its way back.
    """
    commits = [at for at, step in enumerate(trial.steps, 1) if step == "COMMIT"]
    for answer_only in (False, True):
        statuses = [trial.run(at, faults.lose, answer_only=answer_only) for at in commits]
        if trial.write.changes:
            assert 503 in statuses


def faults_that_stay_are_conflict_or_unavailable(trial, backend):
    """A conflict if every attempt collides, unavailable if the database stays away; and nothing has changed."""
    deadlock = faults.collisions(backend.kind)[0]
    places = range(1, len(trial.steps) + 1)
    for at in places if LONG else places[-2:-1]:
        assert trial.run(at, deadlock, for_ever=True) in (409, 503)
        assert trial.run(at, faults.lose, for_ever=True) == 503
