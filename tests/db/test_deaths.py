"""A process killed at any statement of a write, or at its COMMIT, leaves nothing or everything (failure-modes 2.5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import hypothesis

from tests.db.dying import DEADLY
from tests.servers import SQLite

LONG = hypothesis.settings.default.max_examples > 100
ROOT = Path(__file__).parents[2]


def test_a_process_killed_at_any_statement_leaves_nothing_or_everything(backend, database):
    url = database.url.render_as_string(hide_password=False)
    # Servers take their time to see that a client is dead.
    names = DEADLY if LONG or backend.kind == SQLite.kind else ("claim for several", "reshape")
    command = [sys.executable, "-m", "tests.db.dying", url, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    deaths = {name: int(number) for number, _, name in (line.partition(" ") for line in done.stdout.splitlines())}
    assert set(deaths) == set(names)
    assert min(deaths.values()) >= 10, deaths
