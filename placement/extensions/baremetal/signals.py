"""Instrumentation events of the Bare Metal API (``placement/signals.py``)."""

from __future__ import annotations

from typing import Literal

from placement.signals import Signal

#: Outcome of a request for a node: a node was allocated; no node of the class fitted; no such node has the traits; the
#: uuid is in use; too many claims collided (409); or a node in use was recorded.
NodeOutcome = Literal["active", "no_nodes", "no_traits", "uuid_in_use", "contended", "backfilled"]
#: A request for a node has ended.  Facts: the outcome, and the number of nodes that other claims took meanwhile.
node_requested: Signal[[NodeOutcome, int]] = Signal()
