"""A directory for data that is of no use after the program, however the program ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "placement-demonstration-"


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    """Provide a new directory during a block, and remove those of programs that were killed.

    The directory is locked as long as its program runs: the kernel releases the lock of a program that is killed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # That of another program that runs, or of another user; or another program removes it, too.
        with contextlib.suppress(OSError), _locked(left, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(left)
    with contextlib.ExitStack() as stack:
        directory = _created(stack)
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        yield directory


def _created(stack: contextlib.ExitStack) -> Path:
    """Return a new directory, locked until the stack ends."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Until it is locked, another program may take it for one that is left.
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as attempt:
            attempt.enter_context(_locked(directory, fcntl.LOCK_EX))
            directory.stat()
            stack.push(attempt.pop_all())
            return directory


@contextlib.contextmanager
def _locked(directory: Path, operation: int) -> Iterator[None]:
    """Hold the lock of a directory during a block; raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
