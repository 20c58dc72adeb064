"""Instrumentation signals of the history and of its readers (``placement/signals.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from placement.signals import Signal

#: A transaction with events was committed: number of events by kind (``history.event.KINDS``).
events_recorded: Signal[[Mapping[str, int]]] = Signal()

#: The option in ``[history]`` whose limit was exceeded.
PruneCause = Literal["retention_days", "max_events"]
#: Events were removed from the history: cause, number of events.
events_pruned: Signal[[PruneCause, int]] = Signal()

#: A worker process measured the history: number of events, age of the oldest in seconds; both 0 if it is empty.
history_measured: Signal[[int, float]] = Signal()

#: New number of committed transactions whose events have no position yet.
transactions_unordered: Signal[[int]] = Signal()

#: Events were assigned positions: number of transactions.
transactions_ordered: Signal[[int]] = Signal()

#: New number of requests of this process that wait for events.
waiting_changed: Signal[[int]] = Signal()

#: A request to wait for events was answered at once, because too many were waiting.
wait_refused: Signal[[]] = Signal()

#: A request for events named a position that is lost.
position_lost: Signal[[]] = Signal()
