"""Instrumentation events of the Bare Metal API (``placement/signals.py``)."""

from __future__ import annotations

from typing import Literal

from placement.signals import Signal

#: Outcome of a request for a node: allocated; no node fitted, with the reason; the uuid is in use; 409 after too many
#: races; or recorded for a node in use.
NodeOutcome = Literal["active", "no_nodes", "no_traits", "uuid_in_use", "contended", "backfilled"]
#: A request for a node has ended: the outcome, and the number of nodes that others took while it was served.
node_requested: Signal[[NodeOutcome, int]] = Signal()
