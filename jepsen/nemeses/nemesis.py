"""The form of all nemeses."""

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
        name: As in "kill-worker"; on the command line and in the history.
        kills: What it ends or stops, and so which limit holds for the time until writes are answered again:
            "worker" (3 s), "database" or "node" (10 s), or "" where writes are never all refused.
        pauses: Whether what it stops goes on when the harm is undone: the limit then holds from that moment on.
        loses_tail: Whether the last commits may be lost.
        keeps_earlier: Whether what was acknowledged before the harm began is kept then.
        shows_past: Whether reads and refusals meanwhile may be of the past; such replies are left out of the history.
        seconds: How long the harm lasts; 0: it is done at once.
        aftermath: Seconds after it is undone in which requests may still be refused.
        loses: Which requests may be refused or have no reply: "all", until the end of ``aftermath``; those "in flight",
            which began before the harm was done; or "none".
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
        """Whether the cluster has what it breaks."""
        raise NotImplementedError

    @contextlib.contextmanager
    def harm(self, cluster: Cluster, chance: random.Random) -> Iterator[dict[str, Any]]:
        """Do the harm, yield what the history says about it, and undo it at the end of the block.

        The runner stays in the block for ``seconds``.  After the block the cluster has all that it needs to recover.
        """
        raise NotImplementedError
        yield {}
