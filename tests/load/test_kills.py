"""Workers and databases are killed at random: writes remain atomic, and the service recovers by itself.

The state matches the responses.  Both outcomes are possible only without a response, or with one that says so.
"""

from __future__ import annotations

import itertools
import threading

import pytest

from tests import running
from tests.children import until
from tests.load.allocation_ledger import AllocationLedger
from tests.load.soundness import flaws
from tests.load.storm import Storm
from tests.made import opened
from tests.patient import APPLICATION, OPTIONS
from tests.run_length import LONG

KILLS = 100 if LONG else 3
CLIENTS = 6


def open_ledger(storm):
    """Return the ledger of clients of four large providers."""
    return AllocationLedger(storm, [storm.provider(VCPU=10**6, DISK_GB=10**6) for _ in range(4)])


class RunningClients:
    """The clients of a ledger, each in its own thread, during a block."""

    def __init__(self, ledger):
        self._is_done = threading.Event()
        self._threads = [
            threading.Thread(target=ledger.run_client, args=(seed, self._is_done.is_set)) for seed in range(CLIENTS)
        ]
        self._ledger = ledger

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._is_done.set()
        for thread in self._threads:
            thread.join()

    def wait_for_successes(self, number=50):
        """Wait until a number of further requests have succeeded."""
        goal = self._ledger.answers[204] + number
        until(lambda: self._ledger.answers[204] >= goal)


def test_kills_of_workers_leave_allocations_that_match_the_responses(database_url):
    with running.uwsgi(database_url, 3, OPTIONS, module=APPLICATION, flags=()) as service:
        storm = Storm(service.url)
        ledger = open_ledger(storm)
        with RunningClients(ledger) as clients:
            for number in itertools.count(1):
                clients.wait_for_successes(5)
                killed = service.kill_worker()
                service.wait_until(lambda killed=killed: killed not in service.workers)
                if number >= KILLS and ledger.answers[0]:  # at least one client was hit
                    break
            clients.wait_for_successes()
        assert set(ledger.answers) == {0, 204}
        assert ledger.discrepancies() == {}
    with opened(database_url) as database:
        assert flaws(database) == {}


@pytest.mark.parametrize(
    "private_server", [pytest.param("mariadb", marks=pytest.mark.long), "postgresql"], indirect=True
)
def test_kills_of_the_database_leave_allocations_that_match_the_responses(private_server):
    url = private_server.create_database()
    flags = ("--lazy-apps", "--enable-threads", "--threads", "2")
    with running.uwsgi(url, 2, OPTIONS, module=APPLICATION, flags=flags) as service:
        service.wait_until(lambda: len(service.workers) == 2)
        storm, workers = Storm(service.url), service.workers
        ledger = open_ledger(storm)
        with RunningClients(ledger) as clients:
            for _ in range(5 if LONG else 1):
                clients.wait_for_successes()
                private_server.kill()
                missed = ledger.answers[503]
                until(lambda missed=missed: ledger.answers[503] > missed)
                private_server.start()
                clients.wait_for_successes()
        assert service.workers == workers, "the service recovered without new workers"
        assert set(ledger.answers) == {204, 503}
        assert ledger.discrepancies() == {}
    with opened(url) as database:
        assert flaws(database) == {}
