"""The database fails in the middle of a write: the response is that of a success, or 409, or 503, and it is true.

Every statement of every write fails on one of the databases, every COMMIT too, and once more on all of them with the
errors that pass; in a long run everything fails on each.  The result is checked through an application without faults,
and in the feed.
"""

from __future__ import annotations

import pytest

from placement.db import retry
from placement.db.database import Database, opened
from tests.caller import Answer
from tests.conftest import chosen
from tests.db import faults, writes
from tests.db.calls import Write
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.story import StoryRun
from tests.length import LONG


class Trial:
    """One write, run again and again with another fault each time."""

    def __init__(self, write: Write, database: Database) -> None:
        self.write, self.database = write, database
        story_run, plan = StoryRun(write, database), Plan()
        self._before = story_run.state()
        assert self._ask(story_run, plan).status == write.status
        self._after = story_run.state()
        #: Statements and COMMITs of the request when nothing goes wrong.
        self.steps = plan.seen

    def run(self, at: int, *injected: faults.Fault, **plan: bool) -> int:
        """Run the write by the plan; return its status, after checking that the database agrees with it."""
        story_run, planned = StoryRun(self.write, self.database), Plan(at, injected, **plan)
        status, body, _ = self._ask(story_run, planned)
        reported = f"{status} {body} after {planned.done} of {injected} at {planned.victim!r}"
        assert planned.done, reported
        found, unchanged, changed = (
            (story_run.state(), story_run.changes()),
            (self._before, {}),
            (self._after, self.write.changes),
        )
        allowed = {503: [unchanged, changed], 409: [unchanged]} | {self.write.status: [changed]}
        assert status in allowed, reported
        assert found in allowed[status], reported
        return status

    def _ask(self, story_run: StoryRun, plan: Plan) -> Answer:
        with opened(self.database.url) as touched:
            planted(touched, plan)
            return story_run.ask(placement(touched))


@pytest.fixture
def trial(write, database, monkeypatch):
    monkeypatch.setattr(retry, "_LONGEST_PAUSE", 0)
    return Trial(write, database)


each_write = pytest.mark.parametrize("write", [*writes.ALL, *writes.DRY_RUNS], ids=lambda write: write.name)


@each_write
def test_faults_that_pass_are_not_noticed(trial, backend, pytestconfig):
    """A lost connection, then deadlock, timeout and serialization failure, at a statement; these at COMMIT too."""
    kinds = chosen(pytestconfig)
    for at, step in enumerate(trial.steps, 1):
        if not LONG and step != "COMMIT" and kinds[at % len(kinds)] != backend.kind:
            continue  # run on another database
        losses = [[loss] for loss in faults.LOSSES] if step != "COMMIT" else [[]]
        for loss in losses if LONG else [losses[at // len(kinds) % len(losses)]]:
            assert trial.run(at, *loss, *faults.collisions(backend.kind)) == trial.write.status


@each_write
@pytest.mark.in_turn
@pytest.mark.parametrize("answer_only", [False, True], ids=["on its way there", "on its way back"])
def test_a_connection_lost_with_commit_leaves_it_open(trial, answer_only):
    """The request is not repeated, since it may have taken effect.  Only what precedes its transaction is."""
    commits = [at for at, step in enumerate(trial.steps, 1) if step == "COMMIT"]
    statuses = [trial.run(at, faults.lose, answer_only=answer_only) for at in commits]
    if trial.write.changes:
        assert statuses[-1] == 503


@each_write
@pytest.mark.in_turn
def test_faults_that_stay_are_answered_as_conflict_or_unavailable(trial, backend):
    """A conflict if every attempt collides, unavailable if the database stays away; and nothing has changed."""
    deadlock = faults.collisions(backend.kind)[0]
    places = range(1, len(trial.steps) + 1)
    for at in places if LONG else places[-2:]:
        assert trial.run(at, deadlock, for_ever=True) in (409, 503)
        assert trial.run(at, faults.lose, for_ever=True) == 503
