"""A process that runs writes, and forks children that run them and die in the middle.

    python -m tests.db.dying URL WRITE ...

Each child dies at another statement or COMMIT, before it or right after it.  The database then has the state before, or
the complete change, and nothing blocks the next process.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from placement.db.database import Database
from tests.db import writes
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.scenario_run import ScenarioRun
from tests.db.scenarios import Write
from tests.made import opened

#: Where most can remain half done.
DEADLY = (
    "move a subtree",
    "delete a provider",
    "claim for several",
    "give back",
    "reshape",
    *(name for each in writes.ADDED for name in each.DEADLY),
)


def die(_connection: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def reported(story_run: ScenarioRun, database: Database, plan: Plan) -> int:
    """Return the status of the response; the connections are new."""
    with opened(database.url) as fresh:
        planted(fresh, plan)
        return story_run.ask(placement(fresh)).status


def killed(story_run: ScenarioRun, database: Database, plan: Plan) -> bool:
    """Whether a child that follows the plan dies by it."""
    database.dispose()  # a child must not inherit connections, not even idle ones
    child = os.fork()
    if child == 0:
        reported(story_run, database, plan)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def tell(write: Write, database: Database) -> int:
    """Return the number of children that died; raises AssertionError if one left something half done."""
    story_run, undisturbed = ScenarioRun(write, database), Plan()
    before = story_run.state(), story_run.changes()
    assert reported(story_run, database, undisturbed) == write.status
    after = story_run.state(), story_run.changes()
    assert after[1] == write.changes
    deaths = [(at, False) for at, _ in enumerate(undisturbed.seen, 1)]
    # The time after another statement is that before the next one.
    deaths += [(at, True) for at, step in enumerate(undisturbed.seen, 1) if step == "COMMIT"]
    for at, afterwards in deaths:
        story_run = ScenarioRun(write, database)
        assert killed(story_run, database, Plan(at, [die], answer_only=afterwards))
        observed = story_run.state(), story_run.changes()
        assert observed in (before, after), f"{write.name}: killed at {at}: {observed}"
        if observed == before:
            assert reported(story_run, database, Plan()) == write.status
            assert (story_run.state(), story_run.changes()) == after
    return len(deaths)


def main(url: str, *names: str) -> None:
    """Print for each of these writes how many children died."""
    with opened(url) as database:
        for write in writes.ALL:
            if write.name in names:
                print(tell(write, database), write.name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
