"""Some threads may wait for the database; the others are told so instead of waiting as well."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from placement import deploy, errors, wsgi
from placement.db import bulkhead
from placement.db.bulkhead import Bulkhead
from tests.clock import Clock


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(bulkhead, "time", made)
    return made


@pytest.fixture
def inside():
    """Puts threads into a bulkhead, until the test ends or says so."""
    leave = threading.Event()
    with ThreadPoolExecutor() as threads:

        def put(wall, count):
            came = threading.Barrier(count + 1)

            def stay():
                with wall.admit():
                    came.wait(30)
                    leave.wait(30)

            for _ in range(count):
                threads.submit(stay)
            came.wait(30)
            return leave

        yield put
        leave.set()


def enters(wall):
    with wall.admit():
        return True


def test_a_thread_waits_for_one_that_has_just_come_and_no_longer(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 60)
    wall = Bulkhead(2)
    leave = inside(wall, 2)
    threading.Timer(0.2, leave.set).start()
    began = time.monotonic()
    assert enters(wall)
    assert time.monotonic() - began < 30


def test_one_thread_that_is_stalled_does_not_count_for_all(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 1.5)
    wall = Bulkhead(2)
    inside(wall, 1)
    time.sleep(1.6)
    leave = inside(wall, 1)
    threading.Timer(0.1, leave.set).start()
    assert enters(wall)


def test_a_thread_does_not_wait_for_those_that_are_stalled(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.1)
    wall = Bulkhead(2)
    leave = inside(wall, 2)
    with pytest.raises(errors.DatabaseBusy):
        enters(wall)
    leave.set()
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 30)
    assert enters(wall)


def test_a_thread_is_stalled_after_five_seconds(inside, clock):
    """As the documents say."""
    wall = Bulkhead(1)
    threading.Timer(1, inside(wall, 1).set).start()
    clock.now += 5.1
    with pytest.raises(errors.DatabaseBusy):
        enters(wall)


def test_a_thread_waits_if_one_of_many_has_just_come(inside, clock):
    wall = Bulkhead(2)
    inside(wall, 1)
    clock.now += 60
    leave = inside(wall, 1)
    threading.Timer(0.2, leave.set).start()
    assert enters(wall)


def test_a_thread_enters_when_another_leaves(inside, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 3600)
    wall, entered = Bulkhead(1), threading.Event()
    leave = inside(wall, 1)
    threading.Thread(target=lambda: enters(wall) and entered.set(), daemon=True).start()
    threading.Timer(0.2, leave.set).start()
    assert entered.wait(30)


def test_a_thread_that_is_inside_may_enter_again(monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0)
    wall = Bulkhead(1)
    with wall.admit():
        assert enters(wall)
    assert enters(wall)


def test_a_thread_whose_statements_are_answered_is_not_stalled(monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0.5)
    wall = Bulkhead(1)
    bulkhead.note_progress()  # outside it means nothing
    with ThreadPoolExecutor() as threads, wall.admit():
        waiting = threads.submit(enters, wall)
        for _ in range(8):
            time.sleep(0.2)
            bulkhead.note_progress()
            assert not waiting.done()
        assert isinstance(waiting.exception(10), errors.DatabaseBusy)
    assert enters(wall)


def test_without_a_number_there_is_no_bound(inside):
    wall = Bulkhead()
    inside(wall, 5)
    assert enters(wall)


@pytest.mark.parametrize(
    ("told", "threads", "most"),
    [(None, None, None), (None, 2, None), (None, 3, 2), (None, 8, 7), (0, 8, None), (4, 8, 4)],
)
def test_one_thread_is_left_where_there_are_three(told, threads, most):
    assert deploy._most_threads(told, threads) == most


def test_no_web_server_tells_no_threads():
    assert wsgi._threads() is None
