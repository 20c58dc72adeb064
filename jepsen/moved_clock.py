"""A process under libfaketime (tests/faketime.py): what that library does not move, or moves wrongly, in Python."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

from tests.faketime import FILE, INTERVALS

_monotonic = time.monotonic


def follow() -> None:
    """Have this process follow its clock, if it has one; call it before the service begins to work."""
    if FILE in os.environ:
        # In libfaketime 0.9.10, sleeps of some microseconds fail with EINVAL.
        time.sleep = _sleep
    if INTERVALS in os.environ:
        time.monotonic = _moved


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


def _moved() -> float:
    return _monotonic() + float(Path(os.environ[FILE]).read_text())
