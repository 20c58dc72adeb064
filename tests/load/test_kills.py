"""Workers and databases are killed at random: writes remain atomic, and the service recovers by itself.

Responses are true.  Only without a response, or with one that says so, both outcomes are possible.
"""

from __future__ import annotations

import itertools
import threading

import pytest

from tests import running
from tests.children import until
from tests.load.allocation_ledger import Books
from tests.load.soundness import flaws
from tests.load.storm import Storm
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS
from tests.run_length import LONG

KILLS = 100 if LONG else 3
CLIENTS = 6


def opening(storm):
    """Return the books of clients of four large providers."""
    return Books(storm, [storm.provider(VCPU=10**6, DISK_GB=10**6) for _ in range(4)])


class Busy:
    """Clients that keep books, each in its own thread, during a block."""

    def __init__(self, books):
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=books.keep, args=(seed, self._enough.is_set)) for seed in range(CLIENTS)
        ]
        self._books = books

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def get_on(self, number=50):
        """Wait until ``more`` further requests have succeeded."""
        goal = self._books.answers[204] + number
        until(lambda: self._books.answers[204] >= goal)


def test_workers_killed_during_claims(database_url):
    with running.uwsgi(database_url, 3, OPTIONS, module=APPLICATION, flags=()) as service:
        storm = Storm(service.url)
        books = opening(storm)
        with Busy(books) as clients:
            for number in itertools.count(1):
                clients.get_on(5)
                killed = service.kill_worker()
                service.wait_until(lambda killed=killed: killed not in service.workers)
                if number >= KILLS and books.answers[0]:  # at least one client was hit
                    break
            clients.get_on()
        assert set(books.answers) == {0, 204}
        assert books.lies() == {}
    with opened(database_url) as database:
        assert flaws(database) == {}


@pytest.mark.parametrize(
    "private_server", [pytest.param("mariadb", marks=pytest.mark.long), "postgresql"], indirect=True
)
def test_a_database_killed_during_a_storm(private_server):
    url = private_server.create_database()
    flags = ("--lazy-apps", "--enable-threads", "--threads", "2")
    with running.uwsgi(url, 2, OPTIONS, module=APPLICATION, flags=flags) as service:
        service.wait_until(lambda: len(service.workers) == 2)
        storm, workers = Storm(service.url), service.workers
        books = opening(storm)
        with Busy(books) as clients:
            for _ in range(5 if LONG else 1):
                clients.get_on()
                private_server.kill()
                missed = books.answers[503]
                until(lambda missed=missed: books.answers[503] > missed)
                private_server.start()
                clients.get_on()
        assert service.workers == workers, "the service went on by itself"
        assert set(books.answers) == {204, 503}
        assert books.lies() == {}
    with opened(url) as database:
        assert flaws(database) == {}
