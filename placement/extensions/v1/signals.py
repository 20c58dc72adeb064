"""Instrumentation events of the history and of those who follow it (``placement/signals.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from placement.signals import Signal

#: A transaction was committed that recorded events: how many of each kind (``history.event.KINDS``).
events_recorded: Signal[[Mapping[str, int]]] = Signal()

#: The option of ``[history]`` because of which events are removed.
PruneCause = Literal["retention_days", "max_events"]
#: Events were removed from the history: the cause, and how many.
events_pruned: Signal[[PruneCause, int]] = Signal()

#: A worker has measured the history: its events, and the age of the oldest in seconds; both are 0 if it is empty.
history_measured: Signal[[int, float]] = Signal()

#: The number of committed transactions whose events have no position yet has changed to this.
transactions_unordered: Signal[[int]] = Signal()

#: The events of this many transactions were given their positions.
transactions_ordered: Signal[[int]] = Signal()

#: The number of requests of this process that wait for events has changed to this.
waiting_changed: Signal[[int]] = Signal()

#: A request that asked to wait for events was answered at once, because too many wait already.
wait_refused: Signal[[]] = Signal()

#: A reader of events was told that its position is lost.
position_lost: Signal[[]] = Signal()
