"""A bulkhead admits a limited number of threads to the database; if all of these are stalled, it refuses others."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from placement import deploy, errors, wsgi
from placement.db.engine import bulkhead
from placement.db.engine.bulkhead import Bulkhead
from tests.clock import PATIENCE, Clock, WatchedClock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(bulkhead, "time", clock)
    return clock


@pytest.fixture
def inside():
    """Return a function that holds threads inside a bulkhead until its event is set or the test ends."""
    leave = threading.Event()
    with ThreadPoolExecutor() as threads:

        def occupy(wall, count):
            entered_all = threading.Barrier(count + 1)

            def stay():
                with wall.admit():
                    entered_all.wait(PATIENCE)
                    leave.wait(PATIENCE)

            for _ in range(count):
                threads.submit(stay)
            entered_all.wait(PATIENCE)
            return leave

        yield occupy
        leave.set()


def enters(wall):
    with wall.admit():
        return True


def leave_once_a_thread_waits(wall, leave):
    """Set the event, in a thread, once a thread waits for admission."""

    def watch():
        while not (wall._released._waiters or leave.is_set()):
            time.sleep(0.001)
        leave.set()

    threading.Thread(target=watch, daemon=True).start()


def test_a_thread_waits_while_an_admitted_thread_is_not_stalled(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)
    wall = Bulkhead(2)
    leave_once_a_thread_waits(wall, inside(wall, 2))
    assert enters(wall)


def test_a_thread_is_refused_if_all_admitted_threads_are_stalled(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.1)
    wall = Bulkhead(2)
    leave = inside(wall, 2)
    with pytest.raises(errors.DatabaseBusy):
        enters(wall)
    leave.set()
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)
    assert enters(wall)


def test_a_thread_is_stalled_after_five_seconds(inside, clock):
    """The documentation states this limit."""
    wall = Bulkhead(1)
    leave_once_a_thread_waits(wall, inside(wall, 1))
    clock.now += 5.1
    with pytest.raises(errors.DatabaseBusy):
        enters(wall)


def test_a_thread_waits_if_only_the_oldest_is_stalled(inside, clock):
    wall = Bulkhead(2)
    inside(wall, 1)
    clock.now += 60
    leave_once_a_thread_waits(wall, inside(wall, 1))
    assert enters(wall)


def test_a_thread_enters_when_another_leaves(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)
    wall, entered = Bulkhead(1), threading.Event()
    leave_once_a_thread_waits(wall, inside(wall, 1))
    threading.Thread(target=lambda: enters(wall) and entered.set(), daemon=True).start()
    assert entered.wait(PATIENCE)


def test_the_bulkhead_is_reentrant(monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0)
    wall = Bulkhead(1)
    with wall.admit():
        assert enters(wall)
    assert enters(wall)


def test_a_thread_whose_statements_are_answered_is_not_stalled(monkeypatch):
    timeout = 0.05  # seconds; the waiting thread reads the clock once in this time
    clock = WatchedClock()
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", timeout)
    monkeypatch.setattr(bulkhead, "time", clock)
    wall = Bulkhead(1)
    bulkhead.note_progress()  # no effect outside a bulkhead

    def enter():
        clock.watch()
        return enters(wall)

    with ThreadPoolExecutor() as threads, wall.admit():
        waiting = threads.submit(enter)
        for _ in range(8):
            clock.advance(timeout * 0.4)
            bulkhead.note_progress()
            assert not waiting.done()
        clock.advance(timeout * 2)
        assert isinstance(waiting.exception(PATIENCE), errors.DatabaseBusy)
    assert enters(wall)


def test_a_bulkhead_without_a_limit_admits_all_threads(inside):
    wall = Bulkhead()
    inside(wall, 5)
    assert enters(wall)


@pytest.mark.parametrize(
    ("configured", "threads", "limit"),
    [(None, None, None), (None, 2, None), (None, 3, 2), (None, 8, 7), (0, 8, None), (4, 8, 4)],
)
def test_one_of_three_or_more_threads_stays_out_of_the_database(configured, threads, limit):
    assert deploy._max_database_threads(configured, threads) == limit


def test_the_number_of_threads_is_unknown_without_a_web_server():
    assert wsgi._threads() is None


# --- waiting for the work of an admitted thread ---


@pytest.fixture
def waiters():
    """Return a function that makes threads wait, one after another; it returns the awaited event and their futures."""
    finished = threading.Event()
    with ThreadPoolExecutor() as threads:

        def wait(wall, count):
            futures = []
            for _ in range(count):
                before = len(wall._followers)
                futures.append(threads.submit(wall.wait_for, finished))
                until = time.monotonic() + PATIENCE
                while len(wall._followers) == before:
                    assert time.monotonic() < until
                    time.sleep(0.001)
            return finished, futures

        yield wait
        finished.set()


def test_followers_beyond_the_limit_give_up_if_all_admitted_threads_are_stalled(inside, waiters, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)  # no thread gives up before all of them wait
    wall = Bulkhead(3, check_interval=0.01)
    inside(wall, 1)
    finished, (first, second, third, fourth) = waiters(wall, 4)
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.1)
    assert [third.result(PATIENCE), fourth.result(PATIENCE)] == [False, False]
    time.sleep(0.2)
    assert [first.done(), second.done()] == [False, False]
    finished.set()
    assert [first.result(PATIENCE), second.result(PATIENCE)] == [True, True]
    assert wall._followers == {}


def test_no_thread_is_admitted_if_stalled_threads_and_their_followers_fill_the_limit(inside, waiters, monkeypatch):
    """An admitted thread would stall, too; until then the others would not count as stalled, or give up."""
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.1)
    wall = Bulkhead(3)
    inside(wall, 1)
    waiters(wall, 1)
    assert enters(wall)
    time.sleep(0.2)
    waiters(wall, 1)
    with pytest.raises(errors.DatabaseBusy):
        enters(wall)


def test_no_follower_gives_up_while_a_thread_is_not_stalled(inside, waiters, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)
    wall = Bulkhead(1, check_interval=0.01)
    inside(wall, 1)
    finished, futures = waiters(wall, 3)
    time.sleep(0.1)
    finished.set()
    assert [future.result(PATIENCE) for future in futures] == [True] * 3


@pytest.mark.parametrize(("limit", "admitted"), [(None, 1), (1, 0), (5, 1)])
def test_no_follower_gives_up_while_a_thread_is_left_for_other_requests(inside, waiters, monkeypatch, limit, admitted):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0)
    wall = Bulkhead(limit, check_interval=0.01)
    if admitted:
        inside(wall, admitted)
    finished, futures = waiters(wall, 4)
    time.sleep(0.1)
    finished.set()
    assert [future.result(PATIENCE) for future in futures] == [True] * 4
