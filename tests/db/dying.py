"""A process that runs writes, and forks children that run them and die at a statement.

    python -m tests.db.dying URL WRITE ...

Each child dies right before or after a different statement or COMMIT.  Afterwards the database contains the old
state or the complete change, and nothing blocks the next process.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from placement.db.database import Database
from tests.db import writes
from tests.db.faults import Plan, plant
from tests.db.in_process import placement
from tests.db.scenario_run import ScenarioRun
from tests.db.scenarios import Write
from tests.made import opened

#: The writes with the most statements.
DEADLY = (
    "move a subtree",
    "delete a provider",
    "claim for several",
    "release",
    "reshape",
    *(name for module in writes.ADDED for name in module.DEADLY),
)


def die(_connection: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_write(scenario_run: ScenarioRun, database: Database, plan: Plan) -> int:
    """Run the write with new connections; return the status of the response."""
    with opened(database.url) as fresh:
        plant(fresh, plan)
        return scenario_run.ask(placement(fresh)).status


def is_killed(scenario_run: ScenarioRun, database: Database, plan: Plan) -> bool:
    """Whether a child that follows the plan is killed."""
    database.dispose()  # a child must not inherit connections, not even idle ones
    child = os.fork()
    if child == 0:
        run_write(scenario_run, database, plan)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_at_each_statement(write: Write, database: Database) -> int:
    """Return the number of killed children; raise AssertionError if one left a partial change."""
    scenario_run, undisturbed = ScenarioRun(write, database), Plan()
    before = scenario_run.state(), scenario_run.changes()
    assert run_write(scenario_run, database, undisturbed) == write.status
    after = scenario_run.state(), scenario_run.changes()
    assert after[1] == write.changes
    deaths = [(at, False) for at, _ in enumerate(undisturbed.seen, 1)]
    # The point after any other statement is the point before the next one.
    deaths += [(at, True) for at, step in enumerate(undisturbed.seen, 1) if step == "COMMIT"]
    for at, afterwards in deaths:
        scenario_run = ScenarioRun(write, database)
        assert is_killed(scenario_run, database, Plan(at, [die], answer_only=afterwards))
        observed = scenario_run.state(), scenario_run.changes()
        assert observed in (before, after), f"{write.name}: killed at {at}: {observed}"
        if observed == before:
            assert run_write(scenario_run, database, Plan()) == write.status
            assert (scenario_run.state(), scenario_run.changes()) == after
    return len(deaths)


def main(url: str, *names: str) -> None:
    """Print the number of killed children for each of these writes."""
    with opened(url) as database:
        for write in writes.ALL:
            if write.name in names:
                print(kill_at_each_statement(write, database), write.name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
