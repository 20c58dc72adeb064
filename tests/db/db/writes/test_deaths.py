"""A process killed at any statement of a write, or at its COMMIT, leaves nothing or everything."""

from __future__ import annotations

import sys

import pytest

from tests import preloaded
from tests.db.dying import DEADLY
from tests.run_length import LONG


def check(database, name):
    url = database.url.render_as_string(hide_password=False)
    result = preloaded.service().run([sys.executable, "-m", "tests.db.dying", url, name])
    assert result.returncode == 0, result.stderr[-4000:]
    number, _, message = result.stdout.strip().partition(" ")
    assert message == name
    assert int(number) >= 10


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", DEADLY if LONG else DEADLY[::2])
def test_a_process_killed_at_any_statement_leaves_no_partial_change(database, name):
    check(database, name)


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
@pytest.mark.parametrize("name", DEADLY if LONG else ("claim for several", "delete a provider"))
def test_a_killed_process_leaves_no_partial_change_on_other_databases(database, name):
    """A short run kills the processes of two writes, because they take longer on a server."""
    check(database, name)
