"""A process killed at any statement of a write, or at its COMMIT, leaves nothing or everything (failure-modes 2.5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.db.dying import DEADLY

ROOT = Path(__file__).parents[2]


def test_a_process_killed_at_any_statement_leaves_nothing_or_everything(database):
    url = database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.db.dying", url]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    deaths = {name: int(number) for number, _, name in (line.partition(" ") for line in done.stdout.splitlines())}
    assert set(deaths) == set(DEADLY)
    assert min(deaths.values()) >= 10, deaths
