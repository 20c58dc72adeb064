"""Several processes that do the same thing to one database at the same moment, as the starters of a service do."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from placement.db import schema, standard, tables
from placement.db.engine import opened

_ROOT = Path(__file__).parents[2]


def together(number: int, url: str) -> list[dict[str, Any]]:
    """What each of ``number`` starters found when it was done; raises if one failed."""
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(_starter(url)) for _ in range(number)]
        for _step in ("sync", "insert"):
            for starter in crowd:
                assert starter.stdout.readline() == "ready\n", starter.stderr.read()
            for starter in crowd:
                starter.stdin.write("go\n")
                starter.stdin.flush()
        return [_outcome(starter) for starter in crowd]


@contextlib.contextmanager
def _starter(url: str) -> Any:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "tests.db.crowd", url], cwd=_ROOT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def _outcome(starter: Any) -> dict[str, Any]:
    out, err = starter.communicate(timeout=120)
    assert starter.returncode == 0, err
    return dict(json.loads(out))


def _start(url: str) -> None:
    with opened(url) as database:
        _wait()
        schema.sync(database.engine)
        _wait()
        standard.insert(database)
        found: dict[str, Any] = {"version": schema.version(database.engine)}
        for table in (tables.resource_classes, tables.traits, tables.feed_instance):
            rows = sa.select(sa.func.count()).select_from(table)
            found[table.name] = database.read(lambda db, rows=rows: db.execute(rows).scalar())
        sys.stdout.write(json.dumps(found))


def _wait() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    _start(sys.argv[1])
