"""A process tells writes, and its children do too but die in the middle: `python -m tests.db.dying URL WRITE ...`.

Each child dies at another statement or COMMIT, before it or right after it.  What is left is what there was before, or
all of the change; and the next process finds nothing in its way.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from placement.db.database import Database, opened
from tests.db import writes
from tests.db.faults import Plan, planted
from tests.db.in_process import placement
from tests.db.story import Telling
from tests.db.writes import Write

#: Where most can be left half done.
DEADLY = (
    "move a subtree",
    "delete a provider",
    "claim for several",
    "give back",
    "reshape",
)


def die(_connection: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def told(telling: Telling, database: Database, plan: Plan) -> int:
    """The status of the answer, from connections that nobody used before."""
    with opened(database.url) as fresh:
        planted(fresh, plan)
        return telling.ask(placement(fresh)).status


def killed(telling: Telling, database: Database, plan: Plan) -> bool:
    """Whether a child that went by the plan died of it."""
    database.dispose()  # a child must not have its connections, not even idle ones
    child = os.fork()
    if child == 0:
        told(telling, database, plan)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def tell(write: Write, database: Database) -> int:
    """How many children died; raises AssertionError if one left something half done."""
    telling, undisturbed = Telling(write, database), Plan()
    before = telling.state(), telling.changes()
    assert told(telling, database, undisturbed) == write.status
    after = telling.state(), telling.changes()
    assert after[1] == write.changes
    deaths = [(at, False) for at, _ in enumerate(undisturbed.seen, 1)]
    # After any other statement is before the next one.
    deaths += [(at, True) for at, step in enumerate(undisturbed.seen, 1) if step == "COMMIT"]
    for at, afterwards in deaths:
        telling = Telling(write, database)
        assert killed(telling, database, Plan(at, [die], answer_only=afterwards))
        found = telling.state(), telling.changes()
        assert found in (before, after), f"{write.name}: killed at {at}: {found}"
        if found == before:
            assert told(telling, database, Plan()) == write.status
            assert (telling.state(), telling.changes()) == after
    return len(deaths)


def main(url: str, *names: str) -> None:
    """One line for each of these writes: how many died of it."""
    with opened(url) as database:
        for write in writes.ALL:
            if write.name in names:
                print(tell(write, database), write.name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
