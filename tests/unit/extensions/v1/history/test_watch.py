"""Waiting for events: one of those that wait looks, for all of them, and one reads a page."""

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
    """A newest position that the test sets, and how often it was looked at."""

    def __init__(self):
        self.newest, self.looks, self.failing = 0, 0, False

    def look(self):
        self.looks += 1
        if self.failing:
            raise errors.DatabaseUnavailable()
        return self.newest, f"{self.newest}-"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(waiting_room, "INTERVAL", 0.01)
    monkeypatch.setattr(waiting_room, "PAUSE", 0.01)


@pytest.fixture
def history():
    return History()


@pytest.fixture
def watch(history):
    return EventWatch(history.look)


def waiting(watch, number, seconds=PATIENCE):
    """Wait in a thread; its result is in the list."""
    found = []
    thread = threading.Thread(target=lambda: found.append(watch.wait(number, time.monotonic() + seconds)))
    thread.start()
    return thread, found


def test_there_are_as_many_places_as_may_wait(watch):
    watch.max_waiting = 2
    assert [watch.enter() for _ in range(3)] == [True, True, False]
    watch.leave()
    assert [watch.enter() for _ in range(2)] == [True, False]


def test_what_is_there_already_is_found_at_once(watch, history):
    history.newest = 5
    assert watch.wait(4, time.monotonic())


def test_a_wait_ends_without_an_event(watch):
    assert not watch.wait(0, time.monotonic() + 0.05)


def test_a_wait_ends_without_an_event_also_where_another_thread_looks(history):
    looked, going_on = threading.Event(), threading.Event()

    def look():
        looked.set()
        assert going_on.wait(PATIENCE)
        return history.look()

    watch = EventWatch(look)
    looker, found = waiting(watch, 0)
    assert looked.wait(PATIENCE)
    other, ended = waiting(watch, 0, seconds=0)
    other.join(PATIENCE)
    assert ended == [False]
    history.newest = 1
    going_on.set()
    looker.join()
    assert found == [True]


def test_one_look_serves_all(watch, history, monkeypatch):
    crowd = [waiting(watch, 0) for _ in range(5)]
    while history.looks < 20:
        time.sleep(0.01)
    history.newest = 1
    for thread, _ in crowd:
        thread.join()
    assert [found for _, found in crowd] == [[True]] * 5
    monkeypatch.setattr(waiting_room, "INTERVAL", PATIENCE)
    looks = history.looks
    crowd = [waiting(watch, 0) for _ in range(5)]
    for thread, _ in crowd:
        thread.join()
    assert history.looks == looks


def test_a_page_is_read_once_until_there_is_an_event(watch, history):
    reads = []

    def page(asked):
        def read():
            reads.append(asked)
            return len(reads)

        return watch.page(asked, read, time.monotonic() + PATIENCE)

    assert [page("a"), page("a"), page("b"), page("a")] == [1, 1, 2, 1]
    history.newest = 1
    assert watch.wait(0, time.monotonic() + PATIENCE)
    assert [page("a"), page("b")] == [3, 4]
    assert [page(number) for number in range(waiting_room._MAX_PAGES)] == [*range(5, 5 + waiting_room._MAX_PAGES)]
    # Only the oldest one makes room for another.
    assert [page("a"), page(1)] == [5 + waiting_room._MAX_PAGES, 6]


def test_a_database_that_is_away_ends_no_wait(watch, history):
    history.failing = True
    thread, found = waiting(watch, 0)
    while history.looks < 3:
        time.sleep(0.01)
    history.failing, history.newest = False, 1
    thread.join()
    assert found == [True]


def test_what_was_seen_long_ago_wakes_nobody(watch, history):
    """The database was restored to an earlier state after the last look."""
    history.newest = 9
    assert watch.wait(0, time.monotonic())
    history.newest = 2
    looks = history.looks
    while history.looks == looks:
        watch.wait(9, time.monotonic())
    assert not watch.wait(5, time.monotonic() + 0.05)


@pytest.mark.parametrize(
    ("configured", "threads", "most"),
    [(None, None, 1), (None, 1, 0), (None, 2, 1), (None, 8, 2), (None, 64, 16), (0, 64, 0), (5, 8, 5), (5, None, 5)],
)
def test_a_quarter_of_the_threads_may_wait(configured, threads, most):
    assert recorder._max_waiting(configured, threads) == most
