"""The database server of a measurement is durable, like an operator's: a COMMIT waits for the disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import servers
from tests.conftest import chosen

ROOT = Path(__file__).parents[4]
#: Runs in its own process, like a measurement.
RUN = """
import serve_pair
with serve_pair.database_server({kind!r}) as server:
    print(server.directory)
    print(server._administer({question!r})[0][-1])
"""


@pytest.mark.parametrize(
    ("kind", "question", "setting"),
    [
        # The method "nosync" does not flush (SYSTEM_VARIABLES of MariaDB); the default is O_DIRECT or fsync.
        ("mariadb", "SELECT @@innodb_flush_method <> 'nosync' AND @@innodb_flush_log_at_trx_commit = 1", "1"),
        ("postgresql", "SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit')", "on on"),
    ],
)
def test_a_commit_of_a_measured_server_is_on_the_disk(
    kind: str, question: str, setting: str, request: pytest.FixtureRequest
) -> None:
    if kind not in chosen(request.config):
        pytest.skip(f"{kind} is not among --databases")
    servers.KINDS[kind].check_installed()
    run = subprocess.run(
        [sys.executable, "-c", RUN.format(kind=kind, question=question)],
        cwd=ROOT / "bench",
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'bench'}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    directory, value = run.stdout.split("\n", 1)
    assert value.strip() == setting
    assert not directory.startswith("/dev/shm")
