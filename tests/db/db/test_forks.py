"""A service that is started once and then forked, as uWSGI does: each process has its own connections and writers.

uWSGI forks in C, so Python's own hooks for forks do not run; this test forks in the same way.
"""

import ctypes
import json
import os
import sys

import sqlalchemy as sa

from placement.db import feed
from placement.db.schema.tables import provider_changes
from tests import preloaded
from tests.made import opened

CONNECTION = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}


def look(database):
    """Return the writer and the connections used by a write and a read."""
    name = CONNECTION.get(database.url.get_backend_name())

    def which(db):
        return db.execute(sa.text(name)).scalar() if name else None

    def write(db):
        db.record_change(os.getpid(), feed.SHAPE)
        return which(db)

    looked = {"writing": database.write(write), "reading": database.read(which)}
    wrote = sa.select(provider_changes.c.writer_id).where(provider_changes.c.provider_id == os.getpid()).distinct()
    looked["writers"] = database.read(lambda db: db.execute(wrote).scalars().all())
    return looked


def say(looks):
    os.write(sys.stdout.fileno(), json.dumps(looks).encode() + b"\n")


def fork_and_look(url):
    """Print the results of the parent before the forks, of both children, and of the parent afterwards."""
    with opened(url) as database:
        look(database)
        for _ in range(2):
            child = ctypes.CDLL(None).fork()
            if child == 0:
                say([look(database), look(database)])
                os._exit(0)
            os.waitpid(child, 0)
        say([look(database)])


def test_forked_processes_share_neither_connections_nor_writers(database):
    url = database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.db.db.test_forks", url]
    result = preloaded.service().run(command)
    assert result.returncode == 0, result.stderr
    first, second, parent = map(json.loads, result.stdout.splitlines())
    for looks in (first, second, parent):
        assert all(len(observation["writers"]) == 1 for observation in looks)
        assert looks[0] == looks[-1], "a process keeps its connections and its writer"
    processes = [looks[0] for looks in (first, second, parent)]
    assert len({observation["writers"][0] for observation in processes}) == 3
    connections = [
        observation[kind] for observation in processes for kind in ("writing", "reading") if observation[kind]
    ]
    assert len(set(connections)) == len(connections)
    assert bool(connections) == (database.url.get_backend_name() in CONNECTION)


if __name__ == "__main__":
    fork_and_look(sys.argv[1])
