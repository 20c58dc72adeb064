#!/usr/bin/env python3
"""Serve this project and another Placement service on one private database server, for claims.py.

    python bench/serve_pair.py [--peer COMMAND] [-- COMMAND ...]

The peer's command has the fields {port} and {database} (the URL of its database) and stays in the foreground until
SIGTERM.  The command after ``--`` is run with the URLs appended, the peer's first; without a command both serve until
interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests import children, servers

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = """
[api]
auth_strategy = noauth2
[placement_database]
connection = {database}
sync_on_startup = true
"""


@contextlib.contextmanager
def database_server(kind: str) -> Iterator[servers.ServerProcess]:
    """Run a private, durable database server, and stop all children at the end; exit if it is not installed."""
    children.begin_run(in_memory=False)
    try:
        with servers.private(kind, durable=True) as server:
            yield server
    except servers.Missing as missing:
        raise SystemExit(str(missing)) from None
    finally:
        children.end_run()


class Service(NamedTuple):
    """A running service."""

    url: str
    #: The process id of the master.
    pid: int


def with_driver(database: str, driver: str | None) -> str:
    """Return the URL with this driver (mysqldb, psycopg2, ...), without options specific to PyMySQL; None keeps it."""
    if driver is None:
        return database
    url = sa.make_url(database)
    url = url.set(drivername=f"{url.get_backend_name()}+{driver}").difference_update_query(["ssl_disabled"])
    return url.render_as_string(hide_password=False)


#: Threads per worker, as in etc/uwsgi/placement.ini.
THREADS = 4


def start_ours(database: str, workers: int, options: str = "", threads: int = THREADS) -> Service:
    """Start this project under uWSGI and wait until it responds.  SIGHUP reloads it without losing a request.

    Args:
        options: Text appended to the configuration file.
        threads: Threads per worker.
    """
    uwsgi = Path(sys.executable).with_name("uwsgi")
    if not uwsgi.exists():
        raise SystemExit(f"{uwsgi} is not installed: pip install pyuwsgi")
    directory = Path(tempfile.mkdtemp(prefix="ours-", dir=children.run_directory()))
    (directory / "placement.conf").write_text(CONFIGURATION.format(database=database) + options)
    port = children.free_port()
    command = [
        *(str(uwsgi), "--http-socket", f"127.0.0.1:{port}", "--module", "placement.wsgi.api:application"),
        *("--processes", str(workers), "--enable-threads", "--threads", str(threads), "--listen", "100"),
        *("--master", "--need-app", "--disable-logging", "--die-on-term"),
        *("--buffer-size", "65535", "--pythonpath", str(ROOT)),
        *("--binary-path", sys.executable),  # as in etc/uwsgi/placement.ini
    ]
    return _start("ours", command, port, dict(os.environ, OS_PLACEMENT_CONFIG_DIR=str(directory)))


def start_peer(template: str, database: str) -> Service:
    """Start the peer and wait until it responds."""
    port = children.free_port()
    return _start("peer", shlex.split(template.format(port=port, database=database)), port, dict(os.environ))


def _start(name: str, command: list[str], port: int, environment: dict[str, str]) -> Service:
    url = f"http://127.0.0.1:{port}"
    directory = children.run_directory()  # not the repository, whose package has the same name as the peer's
    started = children.Child(command, directory / f"{name}.log", env=environment, cwd=directory)
    started.wait_until(_answers(url), seconds=300)
    print(f"{name}: {url}", flush=True)
    return Service(url, started.pid)


def _answers(url: str) -> Callable[[], bool]:
    def ready() -> bool:
        with contextlib.suppress(OSError):  # refused, timed out, or closed without a response
            return bool(urllib.request.urlopen(url + "/", timeout=5).status == 200)
        return False

    return ready


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="COMMAND")
    parser.add_argument("--database", choices=("mariadb", "postgresql"), default="mariadb")
    parser.add_argument("--workers", type=int, default=2, help="number of processes of this project's service")
    parser.add_argument("--threads", type=int, default=THREADS, help="number of threads of each process")
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()
    with database_server(arguments.database) as server:
        urls = [start_peer(arguments.peer, server.create_database()).url] if arguments.peer else []
        urls.append(start_ours(server.create_database(), arguments.workers, threads=arguments.threads).url)
        if arguments.command:
            return subprocess.run([*arguments.command, *urls]).returncode
        print("serving until interrupted", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
        return 0


if __name__ == "__main__":
    sys.exit(main())
