"""Work whose runs threads share: the run that serves a thread, failures, and forks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import sys
import threading
import types

import pytest

from placement import errors
from placement.db.engine import bulkhead
from placement.db.engine.bulkhead import Bulkhead
from placement.db.shared_run import SharedRun
from tests import preloaded
from tests.clock import PATIENCE

THREADS = 4


class Work:
    """Work whose first run waits until the test releases it."""

    def __init__(self, failures=()):
        self.runs = 0
        self.failures = dict(failures)
        self.began, self.release = threading.Event(), threading.Event()

    def __call__(self):
        self.runs += 1
        number = self.runs
        if number == 1:
            self.began.set()
            assert self.release.wait(PATIENCE)
        if number in self.failures:
            raise self.failures[number]


class CountingBulkhead(Bulkhead):
    """A bulkhead that counts the threads that it has admitted."""

    def __init__(self, threads=None):
        super().__init__(threads)
        self._admissions = threading.Semaphore(0)
        self._inside, self.admit = self.admit, self._admit_and_count

    @contextlib.contextmanager
    def _admit_and_count(self):
        with self._inside():
            self._admissions.release()
            yield

    def has_admitted(self, count):
        return all(self._admissions.acquire(timeout=PATIENCE) for _ in range(count))


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(THREADS + 1) as pool:
        yield pool


def shared_run(work, limit=None):
    return SharedRun(types.SimpleNamespace(bulkhead=limit or Bulkhead()), work)


def begin_run(threads, work):
    """Return a shared run during its first run, the future of that run, and the futures of the threads that wait."""
    counting = CountingBulkhead()
    shared = shared_run(work, counting)
    first = threads.submit(shared.run)
    assert work.began.wait(PATIENCE)
    later = [threads.submit(shared.run) for _ in range(THREADS)]
    assert counting.has_admitted(1 + THREADS)
    return shared, first, later


def test_all_threads_that_arrive_during_a_run_share_the_next_one(threads):
    work = Work()
    shared, first, later = begin_run(threads, work)
    assert not any(future.done() for future in later)
    work.release.set()
    for future in (first, *later):
        assert future.result(PATIENCE) is None
    assert work.runs == 2
    shared.run()
    assert work.runs == 3


def test_a_failure_is_raised_in_all_waiting_threads_and_not_later(threads):
    reason = errors.DatabaseBusy()
    work = Work({2: reason})
    shared, first, later = begin_run(threads, work)
    work.release.set()
    assert first.result(PATIENCE) is None
    for future in later:
        with pytest.raises(errors.DatabaseBusy) as raised:
            future.result(PATIENCE)
        assert raised.value.__cause__ is reason
    assert work.runs == 2
    shared.run()
    assert work.runs == 3


def test_the_work_runs_again_after_an_internal_error():
    work = Work({1: ZeroDivisionError()})
    work.release.set()
    shared = shared_run(work)
    with pytest.raises(ZeroDivisionError):
        shared.run()
    shared.run()
    assert work.runs == 2


def test_only_the_thread_of_the_run_is_running_the_work(threads):
    inside = []

    def work():
        inside.append((shared.is_running_here, threads.submit(lambda: shared.is_running_here).result(PATIENCE)))

    shared = shared_run(work)
    assert not shared.is_running_here
    shared.run()
    assert inside == [(True, False)]
    assert not shared.is_running_here


def test_try_run_runs_the_work_unless_another_thread_does(threads):
    work = Work({3: errors.DatabaseUnavailable()})
    shared = shared_run(work)
    first = threads.submit(shared.try_run)
    assert work.began.wait(PATIENCE)
    assert shared.try_run() is False
    work.release.set()
    assert first.result(PATIENCE) is True
    assert shared.try_run() is True
    with pytest.raises(errors.DatabaseUnavailable):
        shared.try_run()
    assert shared.try_run() is True
    assert work.runs == 4


def test_waiting_threads_are_admitted_to_the_bulkhead(threads, monkeypatch):
    monkeypatch.setattr(bulkhead, "STALL_TIMEOUT", 0)
    work, limited = Work(), CountingBulkhead(2)
    shared = shared_run(work, limited)
    futures = [threads.submit(shared.run)]
    assert work.began.wait(PATIENCE)
    futures.append(threads.submit(shared.run))
    assert limited.has_admitted(2)
    with pytest.raises(errors.DatabaseBusy), limited.admit():
        pass
    work.release.set()
    for future in futures:
        assert future.result(PATIENCE) is None


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent():
    result = preloaded.service().run([sys.executable, "-m", __name__])
    assert (result.returncode, result.stdout) == (0, "2 runs\n"), result.stderr


def fork_during_a_run():
    """Print the number of runs in a child that was forked during the first run."""
    work = Work()
    shared = shared_run(work)
    running = threading.Thread(target=shared.run)
    running.start()
    assert work.began.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE))  # ends a child that waits for the lock
        shared.run()
        os.write(sys.stdout.fileno(), f"{work.runs} runs\n".encode())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    work.release.set()
    running.join()
    sys.exit(abs(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    fork_during_a_run()
