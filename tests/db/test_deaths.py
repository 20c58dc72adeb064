"""A process killed at any statement of a write, or at its COMMIT, leaves nothing or everything (failure-modes 2.5)."""

from __future__ import annotations

import sys

from tests import preloaded
from tests.db.dying import DEADLY
from tests.run_length import LONG
from tests.servers import SQLite


def test_a_process_killed_at_any_statement_leaves_nothing_or_everything(backend, database):
    url = database.url.render_as_string(hide_password=False)
    # Servers take some time to notice that a client has died.
    names = DEADLY if LONG or backend.kind == SQLite.kind else ("claim for several", "reshape")
    command = [sys.executable, "-m", "tests.db.dying", url, *names]
    done = preloaded.service().run(command)
    assert done.returncode == 0, done.stderr[-4000:]
    deaths = {name: int(number) for number, _, name in (line.partition(" ") for line in done.stdout.splitlines())}
    assert set(deaths) == set(names)
    assert min(deaths.values()) >= 10, deaths
