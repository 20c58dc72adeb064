"""Items of several threads are run in batches: each exactly once; batches with a key in common one after another."""

from __future__ import annotations

import collections
import ctypes
import os
import random
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from placement.db.writes import combining
from placement.db.writes.combining import Combiner, LeaderFailed
from tests.clock import PATIENCE


class _Events(dict):
    """An event for each item; one, even if two threads ask for it first.  A defaultdict would give each its own."""

    def __missing__(self, item):
        return self.setdefault(item, threading.Event())


class Runner:
    """Runs batches as a test lets it, and records them."""

    def __init__(self, **options):
        self.combiner = Combiner(self._run, **{"most": 100, "longest_wait": PATIENCE, **options})
        #: The items of each batch that has ended, and the threads that ran them.
        self.batches, self.leaders = [], []
        #: By the leader's item: what the batch waits for, and what it does then.
        self.gates, self.works = _Events(), {}
        self._threads = ThreadPoolExecutor(32)
        self._begun = _Events()

    def _run(self, batch):
        [leader, *_] = batch.items
        self._begun[leader].set()
        assert self.gates[leader].wait(PATIENCE)
        self.works.get(leader, lambda _batch: None)(batch)
        self.batches.append(batch.items)
        self.leaders.append(threading.get_ident())
        return [f"{item} done" for item in batch.items]

    def submit(self, item, keys="P", **more) -> Future:
        return self._threads.submit(self.combiner.submit, item, keys, **more)

    def begin(self, item, keys="P", **more) -> Future:
        """Submit an item that has nothing to wait for; return once it runs."""
        found = self.submit(item, keys, **more)
        assert self._begun[item].wait(PATIENCE)
        return found

    def queue(self, item, keys="P", **more) -> Future:
        """Submit an item that has to wait; return once it does."""
        before, until = self.waiting, time.monotonic() + PATIENCE
        found = self.submit(item, keys, **more)
        while self.waiting == before:
            assert time.monotonic() < until, f"{item} does not wait"
            time.sleep(0.001)
        return found

    @property
    def waiting(self):
        return len(self.combiner._queue._waiting)

    def open(self, *leaders):
        for leader in leaders:
            self.gates[leader].set()

    def close(self):
        for gate in [*self.gates.values()]:
            gate.set()
        self._threads.shutdown()


@pytest.fixture
def make():
    made = []

    def runner(**options):
        made.append(Runner(**options))
        return made[-1]

    yield runner
    for one in made:
        one.close()


@pytest.fixture
def runner(make):
    return make()


def results(*futures):
    return [future.result(PATIENCE) for future in futures]


def test_an_item_without_others_is_run_by_its_own_thread(runner):
    runner.open("a")
    assert runner.combiner.submit("a", "P") == "a done"
    assert (runner.batches, runner.leaders) == ([["a"]], [threading.get_ident()])


def test_items_that_wait_are_run_together_by_one_thread(runner):
    first = runner.begin("a")
    others = [runner.queue(item) for item in "bcd"]
    runner.open("a", "b")
    assert results(first, *others) == [f"{item} done" for item in "abcd"]
    assert runner.batches == [["a"], ["b", "c", "d"]]
    assert len(set(runner.leaders)) == 2


def test_a_batch_takes_what_waits_for_its_keys_alone(runner):
    added = []
    runner.works["a"] = lambda batch: added.append(batch.extend())
    first = runner.begin("a", "PQ")
    others = [runner.queue(item, keys) for item, keys in [("b", "P"), ("c", "QR"), ("d", "PQ"), ("e", "P"), ("f", "R")]]
    runner.open("a", "c")
    assert results(first, *others) == [f"{item} done" for item in "abcdef"]
    # "d" waits for "c", and "e" for "d".
    assert added == [["b"]]
    assert runner.batches == [["a", "b"], ["c", "d", "e", "f"]]


def test_items_without_a_key_in_common_do_not_wait_for_each_other(runner):
    first, second, third = runner.begin("a", "P"), runner.begin("b", "Q"), runner.begin("c", "")
    runner.open("c")
    assert results(third) == ["c done"]
    runner.open("b")
    assert results(second) == ["b done"]
    runner.open("a")
    assert results(first) == ["a done"]


def test_two_batches_can_follow_one(runner):
    first = runner.begin("a", "PQ")
    second, third = runner.queue("b", "P"), runner.queue("c", "Q")
    fourth = runner.queue("d", "PQ")
    runner.open("a")
    assert results(first) == ["a done"]
    runner.open("c")
    assert results(third) == ["c done"]
    runner.open("b", "d")
    assert results(second, fourth) == ["b done", "d done"]
    assert runner.batches == [["a"], ["c"], ["b"], ["d"]]


def test_an_item_with_several_keys_is_not_overtaken(runner):
    first, second = runner.begin("a", "P"), runner.begin("b", "Q")
    both, later = runner.queue("c", "PQ"), runner.queue("d", "P")
    runner.open("a")
    assert results(first) == ["a done"]
    assert runner.waiting == 2
    runner.open("b", "c")
    assert results(second, both, later) == ["b done", "c done", "d done"]
    assert runner.batches[-1] == ["c", "d"]


def test_items_that_must_differ_are_not_run_together(runner):
    runner.works["a"] = lambda batch: batch.extend()
    first = runner.begin("a", distinct=[1])
    others = [runner.queue(item, distinct=distinct) for item, distinct in [("b", [1, 2]), ("c", [2]), ("d", [3])]]
    runner.open("a", "b", "c")
    assert results(first, *others) == [f"{item} done" for item in "abcd"]
    assert runner.batches == [["a"], ["b"], ["c", "d"]]


def test_the_size_of_a_batch_is_bounded_and_a_larger_item_is_run_by_itself(make):
    runner = make(most=5)
    first = runner.begin("a")
    sizes = [("b", 3), ("c", 2), ("d", 1), ("e", 9), ("f", 1)]
    others = [runner.queue(item, size=size) for item, size in sizes]
    runner.open(*"abdef")
    assert results(first, *others) == [f"{item} done" for item in "abcdef"]
    assert runner.batches == [["a"], ["b", "c"], ["d"], ["e"], ["f"]]


def test_an_exception_is_raised_by_the_leader_and_leaves_no_follower_waiting(runner):
    def fail(_batch):
        raise KeyboardInterrupt("planted")

    runner.works["b"] = fail
    first = runner.begin("a")
    leader, follower, other = runner.queue("b"), runner.queue("c"), runner.queue("d", "PQ", distinct=[1])
    runner.open("a", "b")
    assert results(first) == ["a done"]
    with pytest.raises(KeyboardInterrupt, match="planted"):
        leader.result(PATIENCE)
    for one in (follower, other):
        with pytest.raises(LeaderFailed) as raised:
            one.result(PATIENCE)
        assert isinstance(raised.value.__cause__, KeyboardInterrupt)
    runner.open("e")
    assert results(runner.submit("e", "PQ")) == ["e done"]


def test_a_missing_result_is_noticed(make):
    combiner = Combiner(lambda _batch: [], most=1)
    with pytest.raises(ValueError, match="shorter"):
        combiner.submit("a", "P")


def test_an_item_that_waited_long_is_run_once_and_by_itself(make):
    runner = make(longest_wait=0.01)
    first = runner.begin("a")
    runner.open("b")
    second = runner.submit("b")
    assert results(second) == ["b done"]
    assert runner.waiting == 0
    runner.combiner._longest_wait = PATIENCE
    # The first batch still runs: its keys are not free.
    third = runner.queue("c", "P", size=100)
    runner.open("a", "c")
    assert results(first, third) == ["a done", "c done"]
    assert runner.batches[0] == ["b"]


# --- gathering ---


def in_turns(runner, *, ends):
    """Have "a" run alone and "b" with "c" after it, and return what is waited for; the next batch then expects three.

    Args:
        ends: Whether a batch is to wait for "d", which comes last.
    """
    first = runner.begin("a")
    others = [runner.queue("b"), runner.queue("c")]
    runner.open("a", "b", "d")
    if ends:
        while runner.waiting:  # the next batch is formed, so "d" does not count as one that was there
            time.sleep(0.001)
        others.append(runner.submit("d"))
    return first, *others


def test_a_batch_waits_for_as_many_as_there_were_when_the_last_one_ended(make):
    runner = make(gathering=PATIENCE)
    assert results(*in_turns(runner, ends=True)) == ["a done", "b done", "c done", "d done"]
    assert runner.batches == [["a"], ["b", "c", "d"]]


def test_a_batch_waits_no_longer_than_it_takes_to_return(make):
    runner = make(gathering=0.05)
    assert results(*in_turns(runner, ends=False)) == ["a done", "b done", "c done"]
    assert runner.batches == [["a"], ["b", "c"]]
    # Two were there at the end, and the one that comes back is not waited for a second time.
    runner.open("e", "f")
    assert results(runner.submit("e")) == ["e done"]
    runner.combiner._gathering = PATIENCE
    assert results(runner.submit("f")) == ["f done"]


def test_who_is_alone_waits_for_nobody(make):
    runner = make(gathering=PATIENCE)
    runner.open(*"abc")
    assert [results(runner.submit(item)) for item in "abc"] == [["a done"], ["b done"], ["c done"]]


@pytest.mark.parametrize("options", [{"most": 2}, {"most": 100}])
def test_a_batch_does_not_wait_for_those_that_it_has_no_room_for(make, options):
    runner = make(gathering=PATIENCE, **options)
    distinct = [1] if options["most"] == 100 else []
    first = runner.begin("a", distinct=distinct)
    others = [runner.queue(item, distinct=distinct) for item in "bcd"]
    # The last batch has room for others, so that it waits for some.
    last_but_one = "b" if options["most"] == 2 else "c"
    runner.works[last_but_one] = lambda _batch: setattr(runner.combiner, "_gathering", 0.05)
    runner.open(*"abcd")
    assert results(first, *others) == [f"{item} done" for item in "abcd"]
    assert runner.batches == ([["a"], ["b", "c"], ["d"]] if options["most"] == 2 else [["a"], ["b"], ["c"], ["d"]])


def test_those_of_other_keys_are_not_waited_for(make):
    runner = make(gathering=PATIENCE)
    other = runner.begin("x", "X")
    waiting = runner.queue("y", "X")
    runner.open(*"ab")
    assert [results(runner.submit(item)) for item in "ab"] == [["a done"], ["b done"]]
    runner.combiner._gathering = 0
    runner.open(*"xy")
    assert results(other, waiting) == ["x done", "y done"]


def test_how_many_there_were_is_remembered_for_a_limited_number_of_keys(make, monkeypatch):
    monkeypatch.setattr(combining, "REMEMBERED", 3)
    runner, remembered = make(gathering=0.001), []
    for number in range(10):
        runner.works[number, 1] = lambda batch: batch.extend()
        both = runner.begin((number, 1), [number]), runner.queue((number, 2), [number])
        runner.open((number, 1))
        results(*both)
        remembered.append(len(runner.combiner._queue._present))
    assert remembered == [1, 2, 3, 1, 2, 3, 1, 2, 3, 1]


class Called(threading.Event):
    """What a thread waits for until it is called, or an event is set, and not for a time; it can be interrupted."""

    def __init__(self, until):
        super().__init__()
        self._until = until

    def wait(self, timeout=None):
        while not (called := super().wait(0.001)) and not self._until.is_set():
            pass
        return called


@pytest.fixture
def over(monkeypatch):
    """An event that ends the time for which threads wait for their turn."""
    ended, entry = threading.Event(), combining._Entry
    monkeypatch.setattr(combining, "_Entry", lambda *facts: entry(*facts, called=Called(ended)))
    return ended


def test_a_follower_that_gives_up_fails_while_its_item_is_run(make, over):
    runner, ends = make(wait=lambda _ended: False), threading.Event()

    def take_and_stay(batch):
        batch.extend()
        over.set()
        assert ends.wait(PATIENCE)

    runner.works["a"] = take_and_stay
    first, follower = runner.begin("a"), runner.queue("b")
    runner.open("a")
    with pytest.raises(LeaderFailed):
        follower.result(PATIENCE)
    ends.set()
    assert results(first) == ["a done"]
    assert runner.batches == [["a", "b"]]


def interrupt(entry, threads):
    """Interrupt the one thread that waits for the entry."""
    [thread] = [thread.ident for thread in threads if waits_for(thread, entry)]
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)) == 1


def waits_for(thread, entry):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None and frame.f_code is not Combiner.submit.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_locals["entry"] is entry


@pytest.mark.parametrize("leads", [True, False])
def test_a_thread_that_is_interrupted_while_it_waits_leaves_no_other_waiting(runner, request, leads):
    if not leads:
        # Python interrupts a thread that waits for a lock only after the wait, and then it leads.
        request.getfixturevalue("over")
    first = runner.begin("a")
    interrupted = runner.queue("b")
    [entry] = runner.combiner._queue._waiting
    follower = runner.queue("c") if leads else None
    interrupt(entry, runner._threads._threads)
    if leads:
        runner.open("a")
    with pytest.raises(KeyboardInterrupt):
        interrupted.result(PATIENCE)
    if follower:
        with pytest.raises(LeaderFailed):
            follower.result(PATIENCE)
    assert runner.waiting == 0
    runner.open("a", "d")
    assert results(first, runner.submit("d")) == ["a done", "d done"]
    assert runner.batches == [["a"], ["d"]]


def test_who_waited_for_a_thread_that_is_interrupted_goes_on(runner, over):
    """At once, and not when the next batch ends."""
    first = runner.begin("a", "P")
    interrupted = runner.queue("b", "PQ")
    [entry] = runner.combiner._queue._waiting
    other = runner.queue("c", "Q")
    interrupt(entry, runner._threads._threads)
    with pytest.raises(KeyboardInterrupt):
        interrupted.result(PATIENCE)
    runner.open("c")
    assert results(other) == ["c done"]
    runner.open("a")
    assert results(first) == ["a done"]


def others_sleep():
    """Whether all other threads of the process sleep."""
    others = [task for task in Path("/proc/self/task").iterdir() if int(task.name) != threading.get_native_id()]
    return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in others)


def test_a_forked_child_does_not_wait_for_threads_of_its_parent(runner):
    running = runner.begin("a")
    waiting = runner.queue("b")
    # A child would wait for a thread that asks for the interpreter's lock at this moment, and is not in the child.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        while not (others_sleep() and others_sleep()):
            time.sleep(10 * interval)
        # As servers written in C do, without the hooks of Python.
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            combiner = runner.combiner
            combiner._run = lambda batch: batch.items
            os._exit(0 if combiner.submit("c", "P") == "c" else 1)
    finally:
        sys.setswitchinterval(interval)
    assert os.waitpid(child, 0)[1] == 0
    runner.open("a", "b")
    assert results(running, waiting) == ["a done", "b done"]


def test_each_of_many_items_is_run_once_and_batches_that_run_have_nothing_in_common():
    lock, running, ran, flaws = threading.Lock(), [], collections.Counter(), []

    def run(batch):
        chance = random.Random(batch.items[0][0])
        held = {key for _, keys, _ in batch.items for key in keys}
        with lock:
            if any(held & other for other in running):
                flaws.append("a key was in two batches")
            running.append(held)
        time.sleep(chance.random() / 1000)
        before = [*batch.items]
        added = batch.extend()
        if not all(set(keys) <= held for _, keys, _ in added) or batch.items != before + added:
            flaws.append("a key was added")
        names = [name for _, _, name in batch.items]
        if len(set(names)) < len(names) or len(names) > 4:
            flaws.append("two have the same name, or there are too many")
        with lock:
            running.remove(held)
            ran.update(batch.items)
        if chance.random() < 0.1:
            raise RuntimeError("planted")
        return batch.items

    combiner = Combiner(run, most=4, longest_wait=PATIENCE)

    def client(number):
        chance = random.Random(number)
        outcomes = collections.Counter()
        for step in range(30):
            item = (100 * number + step, "".join(chance.sample("PQRS", chance.randint(0, 3))), chance.randint(0, 20))
            try:
                outcomes[combiner.submit(item, item[1], distinct=[item[2]]) == item] += 1
            except (RuntimeError, LeaderFailed):
                outcomes["failed"] += 1
        return outcomes

    with ThreadPoolExecutor(8) as threads:
        outcomes = sum(threads.map(client, range(8)), collections.Counter())
    assert flaws == []
    assert set(ran.values()) == {1}
    assert len(ran) == 240 == sum(outcomes.values())
    assert outcomes[False] == 0
    assert 0 < outcomes["failed"] < 200
