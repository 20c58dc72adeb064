"""Child processes that never outlive the test run: databases, services.

Each is recorded in the run's directory.  A watcher, in its own session, waits until the run ends - by itself, by Ctrl-C
or by SIGKILL - then stops every process that is still recorded, kills the remaining ones after five seconds, and
removes the directory.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

#: The environment variable with the run's directory, for all processes of the run (pytest-xdist's workers too).
_DIRECTORY = "PLACEMENT_TEST_RUN"
#: A directory of files in memory, so that no COMMIT waits for a disk; and the bytes that databases and logs may use.
_IN_MEMORY, _ROOM = Path("/dev/shm"), 4 * 1024**3
#: Seconds after which a test stops waiting: only a hang takes this long, even on a busy machine.
PATIENCE = 300.0
#: Seconds after which the watcher kills a process of a run that has ended.
_GRACE = 5.0
#: The ports of servers, below the kernel's ephemeral ports, so that a port stays free during a restart.  A process
#: reserves them in blocks, by a socket without a file for each, which processes of other runs respect.
_PORTS, _BLOCK = range(20000, 32000), 100
_ports: list[int] = []
_taking_ports = threading.Lock()
_watcher: subprocess.Popen[bytes] | None = None


def begin_run(*, in_memory: bool = True) -> None:
    """Create the run's directory and start its watcher; for the main process of the run.

    Args:
        in_memory: Whether files may be in memory; otherwise they are in the system's directory of temporary files.
    """
    global _watcher
    place = _IN_MEMORY if in_memory and _suits(_IN_MEMORY) else None
    directory = tempfile.mkdtemp(prefix="placement-tests-", dir=place)
    os.chmod(directory, 0o711)  # databases run as other users, and need access to their directories in it
    os.mkdir(f"{directory}/children")
    os.environ[_DIRECTORY] = directory
    watch = [sys.executable, "-S", __file__, directory, str(os.getpid())]
    _watcher = subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True)


def _suits(place: Path) -> bool:
    """Whether a directory has enough space and allows programs to run; in Docker it does neither by default."""
    if not os.access(place, os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(place).free > _ROOM and not os.statvfs(place).f_flag & os.ST_NOEXEC


def end_run() -> None:
    """Wait until all children of the run have ended and its directory is removed."""
    global _watcher
    if _watcher is not None and _watcher.stdin is not None:
        _watcher.stdin.write(b".")
        _watcher.stdin.close()
        _watcher.wait()
        _watcher = None


def is_run() -> bool:
    """Whether this process belongs to a run of the tests."""
    return _DIRECTORY in os.environ


def run_directory() -> Path:
    """Return the directory of this run, for sockets, data and logs."""
    return Path(os.environ[_DIRECTORY])


def free_port() -> int:
    """Return a port without a listener, exclusive to this process; each is returned once in a run."""
    with _taking_ports:
        while True:
            if not _ports:
                _ports.extend(_take_block())
            port = _ports.pop()
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                (run_directory() / f"port-{port}").touch(exist_ok=False)
                return port


def _take_block() -> Sequence[int]:
    """Reserve a block of ports, exclusive to this process until it ends; return them."""
    for first in random.sample(_PORTS[::_BLOCK], len(_PORTS) // _BLOCK):
        block = socket.socket(socket.AF_UNIX)
        try:
            block.bind(f"\0placement-tests-ports-{first}")
        except OSError:
            block.close()
        else:
            block.detach()  # open until the process ends
            return range(first, first + _BLOCK)
    raise RuntimeError(f"all ports from {_PORTS.start} to {_PORTS.stop} are taken")


def until(ready: Callable[[], object], problem: str = "") -> None:
    """Wait until ``ready()`` is true; raise AssertionError, with a sentence, if it never is."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, problem or f"not true after {PATIENCE:.0f} s"
        time.sleep(0.02)


class Child:
    """A running process, its output in ``log``; ``begin`` starts it, with ``argv`` and the keywords ``more``."""

    def __init__(
        self,
        argv: Sequence[str],
        log: Path,
        stop_with: signal.Signals = signal.SIGTERM,
        begin: Callable[..., Any] = subprocess.Popen,
        **more: Any,
    ) -> None:
        self.log = log
        self._stop_with = stop_with
        with log.open("ab") as output:
            self._process = begin(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **more
            )
        self.pid = self._process.pid
        self._note = run_directory() / "children" / f"{self.pid}.{int(stop_with)}.{start_time(self.pid)}"
        try:
            self._note.touch()
        except OSError:  # the run has ended, and a process that outlives it must not start children
            self._process.kill()
            self._process.wait()
            raise

    @property
    def ended(self) -> bool:
        """Whether the process has ended; it is not reaped before `kill`, so that its id is not reused."""
        return not alive(self.pid)

    def disown(self) -> None:
        """Let the process run until the end of the test run, when the watcher ends it."""
        self._process.returncode = 0  # otherwise Popen warns that it still runs

    def stop(self, workers: Callable[[], Collection[int]] = tuple) -> None:
        """Stop the process as an operator would; do nothing if it has been stopped.

        If it takes too long, kill it and raise RuntimeError with the end of its log.

        Args:
            workers: Returns processes that get the signal, too, if the process has not ended after a second.
        """
        if self._note.exists():
            deadline = time.monotonic() + PATIENCE
            # uWSGI's master ignores SIGTERM until all its workers run, although the first may already respond.
            while ignores(self.pid, self._stop_with) and time.monotonic() < deadline:
                time.sleep(0.02)
            begun = self._descendants()
            os.kill(self.pid, self._stop_with)
            signalled = time.monotonic()
            while not (ended := self.ended) and time.monotonic() < deadline:
                time.sleep(0.02)
                if time.monotonic() > signalled + 1:
                    for worker in workers():
                        send(worker, self._stop_with)
                    signalled = time.monotonic()
            self._kill(begun)
            if not ended:
                raise RuntimeError(self._with_log(f"did not stop in {PATIENCE} s"))

    def kill(self) -> None:
        """Kill the process, its group and its descendants with SIGKILL; do nothing if it has been stopped."""
        if self._note.exists():
            self._kill(self._descendants())

    def _descendants(self) -> dict[int, int | None]:
        """Return the ids of the descendants, with their start times."""
        return {pid: start_time(pid) for pid in descendants(self.pid)}

    def _kill(self, begun: Mapping[int, int | None]) -> None:
        """Kill the process and these descendants; return once they have ended, so that their ports are free."""
        os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        for pid, began in begun.items():
            if began is not None and start_time(pid) == began:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            while start_time(pid) in (began, None) and _has_threads(pid):
                time.sleep(0.01)
        for pid in (self.pid, *begun):
            # A killed process leaves files of libfaketime behind, which stop another user's process with the same id.
            for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
                Path("/dev/shm", name).unlink(missing_ok=True)
        self._note.unlink()

    def wait_until(self, ready: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait until ``ready()``; if the process ends or is too slow, kill it and raise RuntimeError with its log."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self.ended  # read first, so that the last actions of a process count
            if ready():
                return
            if ended or time.monotonic() > deadline:
                problem = "ended" if ended else f"was not ready in {seconds} s"
                self.kill()
                raise RuntimeError(self._with_log(problem))
            time.sleep(0.02)

    def _with_log(self, problem: str) -> str:
        return f"{self._process.args!r} {problem}:\n{self.log.read_text(errors='replace')[-4000:]}"


def start_time(pid: int) -> int | None:
    """Return the start of the process in ticks since boot, which with its id identifies it; None if it has ended."""
    with contextlib.suppress(OSError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state == "Z" else int(fields[18])
    return None


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    return start_time(pid) is not None


def _has_threads(pid: int) -> bool:
    """Whether a thread of the process still runs; its sockets are open until the last one ends."""
    with contextlib.suppress(OSError):
        stats = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")]
        return any(stat.rpartition(")")[2].split()[0] not in "ZX" for stat in stats)
    return False


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process; none if it has ended."""
    begun = []
    with contextlib.suppress(OSError):
        begun = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return begun + [process for child in begun for process in descendants(child)]


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped all threads of the process, which is not immediate; an ended process counts."""
    states = []
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.append(task.read_text().rpartition(")")[2].split()[0])
    return all(state in "TtZX" for state in states)


def ignores(pid: int, number: int) -> bool:
    """Whether the process ignores the signal."""
    with contextlib.suppress(OSError):
        [ignored] = re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
        return bool(int(ignored, 16) >> (number - 1) & 1)
    return False


def send(pid: int, number: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _running(directory: Path) -> dict[int, int]:
    """Return the ids of the recorded children that still run, and the signals that end them."""
    notes = [note.name.split(".") for note in (directory / "children").iterdir()]
    return {int(pid): int(stop_with) for pid, stop_with, began in notes if str(start_time(int(pid))) == began}


def watch(directory: Path, run: int) -> None:
    """Wait for the run to end, then end its children and remove its directory."""
    while os.getppid() == run and not select.select([sys.stdin], [], [], 0.5)[0]:
        pass
    signalled: dict[int, float] = {}
    while running := _running(directory):
        for pid, stop_with in running.items():
            with contextlib.suppress(ProcessLookupError):
                if pid not in signalled:
                    signalled[pid] = time.monotonic()
                    os.kill(pid, stop_with)
                elif time.monotonic() > signalled[pid] + _GRACE:
                    os.killpg(pid, signal.SIGKILL)
        time.sleep(0.02)
    for pid in signalled:  # the rest of a process group without its leader
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
