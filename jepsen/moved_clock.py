"""Corrections for Python under libfaketime (tests/faketime.py), which moves some clocks wrongly or not at all."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

from tests.faketime import FILE, INTERVALS

_monotonic = time.monotonic


def follow() -> None:
    """Make this process follow its moved clock, if it has one; call it before the service starts."""
    if FILE in os.environ:
        # libfaketime 0.9.10 makes sleeps of some microseconds fail with EINVAL.
        time.sleep = _sleep
    if INTERVALS in os.environ:
        time.monotonic = _moved_monotonic


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


def _moved_monotonic() -> float:
    return _monotonic() + float(Path(os.environ[FILE]).read_text())
