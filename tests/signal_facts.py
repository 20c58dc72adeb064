"""The facts of an instrumentation event, collected while a test listens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from placement.signals import Signal


@contextlib.contextmanager
def collect(signal: Signal[Any]) -> Iterator[list[Any]]:
    """Collect the facts of an event with a single fact."""
    collected: list[Any] = []
    signal.connect(collected.append)
    try:
        yield collected
    finally:
        signal.disconnect(collected.append)
