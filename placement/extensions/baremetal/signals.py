"""Instrumentation events of the Bare Metal API (``placement/signals.py``)."""

from __future__ import annotations

from typing import Literal

from placement.signals import Signal

#: How a request for a bare metal node ended: with one, with none for this reason, with 409 after too many races,
#: or with a record of one in use.
NodeOutcome = Literal["active", "no_nodes", "no_traits", "uuid_in_use", "contended", "backfilled"]
#: A request for a bare metal node has ended: the outcome, and how many nodes others took while it was served.
node_requested: Signal[[NodeOutcome, int]] = Signal()
