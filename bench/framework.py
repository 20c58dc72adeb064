#!/usr/bin/env python3
"""Measure where the time of a request goes, in one process, without HTTP.

    python bench/framework.py [--database URL] [--requests N] [--profile NAME]

The output is the median time of each kind of request, divided into these parts:

- *driver*: waiting for the database, in statements and COMMIT;
- *work*: the other time in Database.read and Database.write: the rules of the service, its records, and SQLAlchemy;
- *log*: formatting and writing the log line of the request;
- *framework*: the remaining time of the request: routing, version, policy, schema, JSON.

The default database is a temporary SQLite file, without synchronous writes.  In the database of --database, missing
tables are created, and the providers and consumers of the run remain.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import io
import json
import logging
import os
import pstats
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import claims

from placement.db.database import Database

CONFIGURATION = """
[DEFAULT]
log_file = {directory}/log
[api]
auth_strategy = noauth2
[placement_database]
connection = {url}
sync_on_startup = true
sqlite_synchronous = false
"""


class Clock:
    """A stopwatch for the time inside a context; nested entries count once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.times = 0
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self.times += 1
            self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started

    def around(self, owner: Any, name: str) -> None:
        """Measure a method from now on."""
        method = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self:
                return method(*args, **kwargs)

        setattr(owner, name, timed)

    def take(self) -> tuple[float, int]:
        """Return the seconds and the number of entries since the last call, and reset both."""
        taken, self.seconds, self.times = (self.seconds, self.times), 0.0, 0
        return taken


class Clocks:
    """The clocks of the driver, of the database layer and of the log, for all requests of this process."""

    def __init__(self) -> None:
        self.driver, self.database, self.log = Clock(), Clock(), Clock()
        self.log.around(logging.Logger, "handle")
        for name in ("read", "write"):
            self.database.around(Database, name)
        sa.event.listen(sa.Engine, "engine_connect", self._watch)
        sa.event.listen(sa.Engine, "before_cursor_execute", lambda *_: self.driver.__enter__())
        sa.event.listen(sa.Engine, "after_cursor_execute", lambda *_: self.driver.__exit__())
        sa.event.listen(sa.Engine, "handle_error", lambda *_: self.driver.__exit__())
        self._watched: set[int] = set()

    def _watch(self, connection: sa.Connection) -> None:
        if id(connection.dialect) not in self._watched:
            self._watched.add(id(connection.dialect))
            self.driver.around(connection.dialect, "do_commit")
            self.driver.around(connection.dialect, "do_rollback")


class Service:
    """The WSGI application, called as by a server."""

    def __init__(self, url: str, directory: str) -> None:
        Path(directory, "placement.conf").write_text(CONFIGURATION.format(url=url, directory=directory))
        os.environ["OS_PLACEMENT_CONFIG_DIR"] = directory
        from placement import wsgi

        self.application = wsgi.init_application()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the JSON of the response.

        Raises:
            RuntimeError: The response is an error.
        """
        return self.send(self.environ(method, path, body))

    def environ(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return the WSGI environ of a request, for one call."""
        data = json.dumps(body).encode() if body is not None else b""
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method, "PATH_INFO": path, "SCRIPT_NAME": "", "QUERY_STRING": "",
            "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1",
            "HTTP_HOST": "127.0.0.1", "HTTP_X_AUTH_TOKEN": "admin", "HTTP_ACCEPT": "application/json",
            "HTTP_OPENSTACK_API_VERSION": "placement 1.39", "REMOTE_ADDR": "127.0.0.1",
            "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(data),
            "wsgi.errors": sys.stderr, "wsgi.multithread": False, "wsgi.multiprocess": True, "wsgi.run_once": False,
        }  # fmt: skip
        if body is not None:
            environ |= {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(data))}
        return environ

    def send(self, environ: dict[str, Any]) -> Any:
        status: list[str] = []
        answer = self.application(environ, lambda line, *_: status.append(line))
        data = b"".join(answer)
        with contextlib.suppress(AttributeError):
            answer.close()
        if not status[0].startswith("2"):
            raise RuntimeError(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}: {status[0]} {data.decode()[:500]}")
        return json.loads(data) if data else None


Requests = Iterator[tuple[str, str, Any]]


def root(_: Service) -> Requests:
    while True:
        yield "GET", "/", None


def show_provider(service: Service) -> Requests:
    path = f"/resource_providers/{claims.make_provider(service)}"
    while True:
        yield "GET", path, None


def claim(service: Service) -> Requests:
    provider = claims.make_provider(service)
    while True:
        yield "PUT", f"/allocations/{uuid.uuid4()}", claims.claim(provider)


def move(service: Service) -> Requests:
    source, target = claims.make_provider(service), claims.make_provider(service)
    instance, generation = str(uuid.uuid4()), 1
    service.call("PUT", f"/allocations/{instance}", claims.claim(source))
    while True:
        body = {instance: claims.claim(target, generation), str(uuid.uuid4()): claims.claim(source)}
        yield "POST", "/allocations", body
        source, target, generation = target, source, generation + 1


KINDS: dict[str, Callable[[Service], Requests]] = {
    "root": root,
    "provider": show_provider,
    "claim": claim,
    "move": move,
}


def measure(service: Service, clocks: Clocks, requests: Requests, count: int) -> str:
    """Return the medians of one kind of request, in microseconds, as a line of the table."""
    rows = []
    for number in range(count + 20):
        environ = service.environ(*next(requests))
        clocks.driver.take()
        clocks.database.take()
        clocks.log.take()
        start = time.perf_counter()
        service.send(environ)
        total = time.perf_counter() - start
        driver, statements = clocks.driver.take()
        database, _ = clocks.database.take()
        log, _ = clocks.log.take()
        if number >= 20:  # the first requests fill caches
            rows.append((total, driver, database - driver, log, total - database - log, statements))
    *times, statements = (statistics.median(column) for column in zip(*rows, strict=True))
    return "".join(f"{part * 1e6:11,.0f}" for part in times) + f"{statements:12,.0f}"


def profile(service: Service, requests: Requests, count: int) -> None:
    """Print the profile of one kind of request."""
    environs = [service.environ(*next(requests)) for _ in range(count)]
    with cProfile.Profile() as account:
        for environ in environs:
            service.send(environ)
    statistic = pstats.Stats(account).strip_dirs()
    statistic.sort_stats("cumulative").print_stats(60)
    statistic.sort_stats("tottime").print_stats(40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", metavar="URL")
    parser.add_argument("--requests", type=int, default=500, help="number of requests of each kind")
    parser.add_argument("--profile", metavar="NAME", choices=sorted(KINDS), help="profile one kind of request instead")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        url = arguments.database or f"sqlite:///{directory}/placement.sqlite"
        if arguments.profile:
            service = Service(url, directory)
            profile(service, KINDS[arguments.profile](service), arguments.requests)
            return
        clocks, service = Clocks(), Service(url, directory)
        print(f"machine: {claims.machine()}\nmicroseconds, medians of {arguments.requests} requests")
        print(f"{'':10}{'total':>11}{'driver':>11}{'work':>11}{'log':>11}{'framework':>11}{'statements':>12}")
        for name, kind in KINDS.items():
            print(f"{name:10}{measure(service, clocks, kind(service), arguments.requests)}", flush=True)


if __name__ == "__main__":
    main()
