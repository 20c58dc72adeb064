"""Items of several threads are processed in batches, one batch at a time, and each item exactly once."""

from __future__ import annotations

import collections
import ctypes
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from placement import errors
from placement.db.writes import queue as module
from placement.db.writes.queue import Queue
from tests.children import until
from tests.clock import PATIENCE


class _Events(dict):
    """One event per item, even if two threads request it first; a defaultdict could return two."""

    def __missing__(self, item):
        return self.setdefault(item, threading.Event())


class Runner:
    """A runner of batches that a test controls, and their record."""

    def __init__(self, max_size=100, wait=threading.Event.wait):
        self.queue = Queue(max_size, wait)
        self.queue.max_wait, self.queue.gather_time = PATIENCE, 0
        #: The items of each batch that has ended, and the threads that led the batches.
        self.batches, self.leaders = [], []
        #: By the leader's item: the event that the batch awaits, and the function that it then calls.
        self.gates, self.actions = _Events(), {}
        self._threads = ThreadPoolExecutor(32)
        self._begun = _Events()

    def turn(self, item, distinct=(), **facts):
        with self.queue.turn(item, distinct=distinct, **facts) as turn:
            if turn.items:
                self._begun[item].set()
                assert self.gates[item].wait(PATIENCE)
                self.actions.get(item, lambda: None)()
                self.batches.append(turn.items)
                self.leaders.append(threading.get_ident())
                turn.set_results([f"{name} done" for name in turn.items])
        return turn.result

    def submit(self, item, **facts) -> Future:
        return self._threads.submit(self.turn, item, **facts)

    def begin(self, item, **facts) -> Future:
        """Submit an item that need not wait; return once its batch has begun."""
        future = self.submit(item, **facts)
        assert self._begun[item].wait(PATIENCE)
        return future

    def wait(self, item, **facts) -> Future:
        """Submit an item that must wait; return once it does."""
        before, deadline = self.waiting, time.monotonic() + PATIENCE
        future = self.submit(item, **facts)
        while self.waiting == before:
            assert time.monotonic() < deadline, f"{item} does not wait"
            time.sleep(0.001)
        return future

    @property
    def waiting(self):
        return len(self.queue.line.waiting)

    def open_gates(self, *leaders):
        for leader in leaders:
            self.gates[leader].set()

    def close(self):
        for gate in [*self.gates.values()]:
            gate.set()
        self._threads.shutdown()


@pytest.fixture
def make():
    runners = []

    def make_runner(**options):
        runners.append(Runner(**options))
        return runners[-1]

    yield make_runner
    for runner in runners:
        runner.close()


@pytest.fixture
def runner(make):
    return make()


def results(*futures):
    return [future.result(PATIENCE) for future in futures]


def test_a_lone_item_is_done_by_its_own_thread(runner):
    runner.open_gates("a")
    assert runner.turn("a") == "a done"
    assert (runner.batches, runner.leaders) == ([["a"]], [threading.get_ident()])


def test_waiting_items_are_done_together_by_one_thread(runner):
    first = runner.begin("a")
    followers = [runner.wait(item) for item in "bcd"]
    runner.open_gates("a", "b")
    assert results(first, *followers) == [f"{item} done" for item in "abcd"]
    assert runner.batches == [["a"], ["b", "c", "d"]]
    assert len(set(runner.leaders)) == 2


@pytest.mark.parametrize(
    ("facts", "batches"),
    [
        ([{"distinct": [1]}, {"distinct": [2, 1]}, {"distinct": [3]}, {"distinct": [3]}], ["a", "bd", "ce"]),
        ([{"kind": 1}, {"kind": 2}, {"kind": 1}, {"kind": 2}], ["a", "bd", "ce"]),
        ([{"size": 3}, {"size": 3}, {"size": 2}, {"size": 9}], ["a", "bd", "c", "e"]),
    ],
    ids=["distinct", "kinds", "sizes"],
)
def test_items_that_must_not_share_a_batch_are_in_successive_batches(make, facts, batches):
    runner = make(max_size=5)
    first = runner.begin("a")
    followers = [runner.wait(item, **item_facts) for item, item_facts in zip("bcde", facts, strict=True)]
    runner.open_gates(*"abcde")
    assert results(first, *followers) == [f"{item} done" for item in "abcde"]
    assert ["".join(batch) for batch in runner.batches] == batches


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (KeyboardInterrupt("planted"), errors.OutcomeUnknown),
        (errors.OutcomeUnknown(), errors.OutcomeUnknown),
        (errors.DatabaseUnavailable(), errors.DatabaseUnavailable),
    ],
)
def test_the_leader_raises_its_exception_and_the_followers_one_that_states_the_outcome(runner, raised, expected):
    def fail():
        raise raised

    runner.actions["b"] = fail
    first = runner.begin("a")
    leader, follower, later_leader = runner.wait("b"), runner.wait("c"), runner.wait("d", kind=1)
    runner.open_gates("a", "b", "d")
    assert results(first) == ["a done"]
    assert leader.exception(PATIENCE) is raised
    assert type(follower.exception(PATIENCE)) is expected
    assert follower.exception(PATIENCE).__cause__ is raised
    assert results(later_leader) == ["d done"]


def test_a_missing_result_is_noticed(runner):
    with pytest.raises(ValueError, match="shorter"), runner.queue.turn("a", distinct=()) as turn:
        turn.set_results([])
    with pytest.raises(errors.OutcomeUnknown), runner.queue.turn("a", distinct=()):
        pass


def test_an_item_that_waited_too_long_is_done_once_and_alone(runner):
    runner.queue.max_wait = 0.01
    first = runner.begin("a")
    runner.open_gates("b")
    assert results(runner.submit("b")) == ["b done"]
    assert runner.waiting == 0
    runner.queue.max_wait = PATIENCE
    # The first batch is still running.
    third = runner.wait("c")
    runner.open_gates("a", "c")
    assert results(first, third) == ["a done", "c done"]
    assert runner.batches == [["b"], ["a"], ["c"]]


# --- gathering ---


def test_a_batch_waits_for_as_many_items_as_the_last_one_left(runner):
    runner.queue.gather_time = PATIENCE
    first = runner.begin("a")
    followers = [runner.wait("b"), runner.wait("c")]
    runner.open_gates("a", "b")
    assert results(first) == ["a done"]
    followers.append(runner.submit("d"))
    assert results(*followers) == ["b done", "c done", "d done"]
    assert runner.batches == [["a"], ["b", "c", "d"]]


def test_a_batch_waits_no_longer_than_the_gather_time(runner):
    runner.queue.gather_time = 0.05
    first = runner.begin("a")
    followers = [runner.wait("b"), runner.wait("c")]
    runner.open_gates("a", "b")
    assert results(first, *followers) == ["a done", "b done", "c done"]
    assert runner.batches == [["a"], ["b", "c"]]
    # This batch still waits for two items; after it, a batch of one item does not wait.
    runner.open_gates("e", "f")
    assert results(runner.submit("e")) == ["e done"]
    runner.queue.gather_time = PATIENCE
    assert results(runner.submit("f")) == ["f done"]


def test_a_lone_thread_does_not_wait(runner):
    runner.queue.gather_time = PATIENCE
    runner.open_gates(*"abc")
    assert [results(runner.submit(item)) for item in "abc"] == [["a done"], ["b done"], ["c done"]]


# --- threads that give up, are interrupted, or are in another process ---


class TurnEvent(threading.Event):
    """An event that threads await without a timeout, until it or another event is set; the wait can be interrupted."""

    def __init__(self, until):
        super().__init__()
        self._until = until

    def wait(self, timeout=None):
        while not (is_set := super().wait(0.001)) and not self._until.is_set():
            pass
        return is_set


@pytest.fixture
def end_of_waits(monkeypatch):
    """An event that ends the wait of all threads for their turn."""
    ended, turn = threading.Event(), module.Turn
    monkeypatch.setattr(module, "Turn", lambda *facts: turn(*facts, called=TurnEvent(ended)))
    yield ended
    ended.set()  # releases the threads that a failed test has left waiting


def test_a_follower_that_gives_up_fails_while_its_item_is_done(make, end_of_waits):
    runner, ends, leads = make(wait=lambda _ended: False), threading.Event(), threading.Event()

    def stay():
        leads.set()
        assert ends.wait(PATIENCE)

    runner.actions["b"] = stay
    first, leader, follower = runner.begin("a"), runner.wait("b"), runner.wait("c")
    runner.open_gates("a", "b")
    assert leads.wait(PATIENCE)
    end_of_waits.set()
    with pytest.raises(errors.OutcomeUnknown):
        follower.result(PATIENCE)
    ends.set()
    assert results(first, leader) == ["a done", "b done"]
    assert runner.batches == [["a"], ["b", "c"]]


def interrupt(turn, threads):
    """Interrupt the thread that waits for the turn."""
    [thread] = [thread.ident for thread in threads if waits_for(thread, turn)]
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)) == 1


def waits_for(thread, turn):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code.co_qualname != "Queue.turn":
        frame = frame.f_back
    return frame is not None and frame.f_locals["turn"] is turn


@pytest.mark.parametrize("leads", [True, False])
def test_a_thread_interrupted_while_it_waits_blocks_no_other(runner, request, leads):
    if not leads:
        # Python interrupts a thread that waits for a lock only after the wait, and then the thread leads a batch.
        request.getfixturevalue("end_of_waits")
    first = runner.begin("a")
    interrupted = runner.wait("b")
    [turn] = runner.queue.line.waiting
    follower = runner.wait("c")
    interrupt(turn, runner._threads._threads)
    if leads:
        runner.open_gates("a")
    with pytest.raises(KeyboardInterrupt):
        interrupted.result(PATIENCE)
    runner.open_gates("c", "d")
    assert turn not in runner.queue.line.waiting
    runner.open_gates("a")
    assert results(first, follower) == ["a done", "c done"]
    assert results(runner.submit("d")) == ["d done"]
    assert runner.waiting == 0
    assert runner.batches == [["a"], ["c"], ["d"]]


def all_other_threads_sleep():
    """Whether all other threads of the process are asleep; False if one ends during the check."""
    tasks = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != threading.get_native_id()]
    try:
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in tasks)
    except OSError:
        return False


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(runner):
    running = runner.begin("a")
    waiting = runner.wait("b")
    # If a thread requests the interpreter's lock during the fork, the child waits for that thread, which it lacks.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        until(lambda: all_other_threads_sleep() and all_other_threads_sleep(), "a thread does not sleep")
        # As servers written in C fork: without Python's hooks.
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            signal.alarm(int(PATIENCE))  # ends a child that waits for a thread of its parent
            with runner.queue.turn("c", distinct=()) as turn:
                turn.set_results(turn.items)
            os._exit(0 if turn.result == "c" else 1)
    finally:
        sys.setswitchinterval(interval)
    assert os.waitpid(child, 0)[1] == 0
    runner.open_gates("a", "b")
    assert results(running, waiting) == ["a done", "b done"]


def test_many_items_are_done_exactly_once_in_one_batch_at_a_time():
    lock, counts, flaws = threading.Lock(), collections.Counter(), []
    chances = random.Random(0)
    #: Items that make their batch fail.
    failing = {100 * number + step for number in range(8) for step in range(30) if chances.random() < 0.1}

    def process(items):
        chance = random.Random(items[0][0])
        if not lock.acquire(blocking=False):
            flaws.append("two batches at a time")
        time.sleep(chance.random() / 1000)
        numbers, names, kinds = zip(*items, strict=True)
        if len(set(names)) < len(names) or len(names) > 4 or len(set(kinds)) > 1:
            flaws.append("two items of the same name, too many items, or two kinds")
        counts.update(items)
        lock.release()
        if not failing.isdisjoint(numbers):
            raise RuntimeError("planted")
        return items

    queue = Queue(4, threading.Event.wait)
    queue.max_wait = PATIENCE

    def client(number):
        chance = random.Random(number)
        outcomes = collections.Counter()
        for step in range(30):
            item = 100 * number + step, chance.randint(0, 20), chance.randint(0, 1)
            try:
                with queue.turn(item, distinct=[item[1]], kind=item[2]) as turn:
                    if turn.items:
                        turn.set_results(process(turn.items))
                outcomes[turn.result == item] += 1
            except (RuntimeError, errors.OutcomeUnknown):
                outcomes["failed"] += 1
        return outcomes

    with ThreadPoolExecutor(8) as threads:
        outcomes = sum(threads.map(client, range(8)), collections.Counter())
    assert flaws == []
    assert set(counts.values()) == {1}
    assert len(counts) == 240 == sum(outcomes.values())
    assert outcomes[False] == 0
    assert 0 < len(failing) <= outcomes["failed"] <= 4 * len(failing) < 200
