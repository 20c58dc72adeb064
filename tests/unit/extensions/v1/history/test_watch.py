"""Waiting for events: one request reads the newest position, or a page, for all waiting requests."""

from __future__ import annotations

import threading
import time

import pytest

from placement import errors
from placement.extensions.v1.history import recorder
from placement.extensions.v1.history import watch as waiting_room
from placement.extensions.v1.history.watch import EventWatch
from tests.clock import PATIENCE


class History:
    """A history whose newest position the test sets; it counts the reads of that position."""

    def __init__(self):
        self.newest, self.reads, self.failing = 0, 0, False

    def read_newest(self):
        self.reads += 1
        if self.failing:
            raise errors.DatabaseUnavailable()
        return self.newest, f"{self.newest}-"


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch):
    monkeypatch.setattr(waiting_room, "INTERVAL", 0.01)
    monkeypatch.setattr(waiting_room, "PAUSE", 0.01)


@pytest.fixture
def history():
    return History()


@pytest.fixture
def watch(history):
    return EventWatch(history.read_newest)


def wait_in_thread(watch, number, seconds=PATIENCE):
    """Wait in a thread; return the thread and a list, to which it appends the result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(watch.wait(number, time.monotonic() + seconds)))
    thread.start()
    return thread, results


def test_a_bounded_number_of_requests_may_wait(watch):
    watch.max_waiting = 2
    assert [watch.enter() for _ in range(3)] == [True, True, False]
    watch.leave()
    assert [watch.enter() for _ in range(2)] == [True, False]


def test_a_wait_ends_at_once_if_the_event_exists(watch, history):
    history.newest = 5
    assert watch.wait(4, time.monotonic())


def test_a_wait_ends_at_its_deadline(watch):
    assert not watch.wait(0, time.monotonic() + 0.05)


def test_a_wait_ends_at_its_deadline_even_if_another_thread_is_reading(history):
    started, released = threading.Event(), threading.Event()

    def read_newest():
        started.set()
        assert released.wait(PATIENCE)
        return history.read_newest()

    watch = EventWatch(read_newest)
    reader, results = wait_in_thread(watch, 0)
    assert started.wait(PATIENCE)
    other, other_results = wait_in_thread(watch, 0, seconds=0)
    other.join(PATIENCE)
    assert other_results == [False]
    history.newest = 1
    released.set()
    reader.join()
    assert results == [True]


def test_one_read_serves_all_waiting_requests(watch, history, monkeypatch):
    waiting_threads = [wait_in_thread(watch, 0) for _ in range(5)]
    while history.reads < 20:
        time.sleep(0.01)
    history.newest = 1
    for thread, _ in waiting_threads:
        thread.join()
    assert [results for _, results in waiting_threads] == [[True]] * 5
    monkeypatch.setattr(waiting_room, "INTERVAL", PATIENCE)
    reads = history.reads
    waiting_threads = [wait_in_thread(watch, 0) for _ in range(5)]
    for thread, _ in waiting_threads:
        thread.join()
    assert history.reads == reads


def test_a_page_is_cached_until_the_next_event(watch, history):
    reads = []

    def page(key):
        def read_page():
            reads.append(key)
            return len(reads)

        return watch.page(key, read_page, time.monotonic() + PATIENCE)

    assert [page("a"), page("a"), page("b"), page("a")] == [1, 1, 2, 1]
    history.newest = 1
    assert watch.wait(0, time.monotonic() + PATIENCE)
    assert [page("a"), page("b")] == [3, 4]
    assert [page(number) for number in range(waiting_room._MAX_PAGES)] == [*range(5, 5 + waiting_room._MAX_PAGES)]
    # Only the oldest page is dropped for a new one.
    assert [page("a"), page(1)] == [5 + waiting_room._MAX_PAGES, 6]


def test_a_wait_continues_while_the_database_is_unavailable(watch, history):
    history.failing = True
    thread, results = wait_in_thread(watch, 0)
    while history.reads < 3:
        time.sleep(0.01)
    history.failing, history.newest = False, 1
    thread.join()
    assert results == [True]


def test_an_outdated_position_ends_no_wait(watch, history):
    """The database was restored to an earlier state after the last read."""
    history.newest = 9
    assert watch.wait(0, time.monotonic())
    history.newest = 2
    reads = history.reads
    while history.reads == reads:
        watch.wait(9, time.monotonic())
    assert not watch.wait(5, time.monotonic() + 0.05)


@pytest.mark.parametrize(
    ("configured", "threads", "expected"),
    [(None, None, 1), (None, 1, 0), (None, 2, 1), (None, 8, 2), (None, 64, 16), (0, 64, 0), (5, 8, 5), (5, None, 5)],
)
def test_a_quarter_of_the_threads_may_wait_by_default(configured, threads, expected):
    assert recorder._max_waiting(configured, threads) == expected
