"""The base class of nemeses."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from jepsen.clusters.cluster import Cluster
from jepsen.history import AFTERMATH


class Nemesis:
    """A kind of harm.

    Attributes:
        name: Name on the command line and in the history, such as "kill-worker".
        kills: Kind of process that it ends or stops, which determines the limit on the recovery time: "worker" (3 s),
            "database" or "node" (10 s), or "" without a limit.
        pauses: Whether the recovery time counts from the end of the harm, as for a stopped process that then continues.
        loses_tail: Whether the last commits may be lost.
        keeps_earlier: Whether writes acknowledged before the harm began survive such a loss.
        shows_past: Whether reads and refusals may be stale meanwhile; the history omits such responses.
        seconds: Duration of the harm; 0: it happens at once.
        aftermath: Seconds after the harm in which requests may still be refused.
        loses: Requests that may be refused or get no response: "all" until the end of ``aftermath``; those "in flight",
            which began before the harm was complete; or "none".
    """

    name: ClassVar[str]
    kills: ClassVar[str] = ""
    pauses: ClassVar[bool] = False
    loses_tail: ClassVar[bool] = False
    keeps_earlier: ClassVar[bool] = False
    shows_past: ClassVar[bool] = False
    seconds: ClassVar[float] = 1.0
    aftermath: ClassVar[float] = AFTERMATH
    loses: ClassVar[Literal["all", "in flight", "none"]] = "all"

    def applies_to(self, cluster: Cluster) -> bool:
        """Whether the cluster has the part that this nemesis harms."""
        raise NotImplementedError

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, rng: random.Random) -> Iterator[dict[str, Any]]:
        """Do the harm, yield its details for the history, and undo it at the end of the block.

        The runner stays in the block for ``seconds``.  After the block the cluster is able to recover.
        """
        raise NotImplementedError
        yield {}
