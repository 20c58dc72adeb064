"""The form of all workloads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from jepsen.client import Client


class Workload:
    """What the clients of a run do; one object for all of them, in threads.

    Attributes:
        name: As on the command line.
        clients: How many there are.
        own_api: Whether it needs /v1 or the Bare Metal API, which other implementations lack.
    """

    name: ClassVar[str]
    clients: ClassVar[int] = 6
    own_api: ClassVar[bool] = False

    def prepare(self, client: Client) -> None:
        """Create what all clients use, before any nemesis begins; raises AssertionError if that fails."""

    def run(self, client: Client, chance: random.Random) -> None:
        """Do the work of one client until ``client.stopped`` is set.

        After a reply without a known outcome a client goes on with other consumers, or reads what became of it.
        """
        raise NotImplementedError

    def finish(self, client: Client) -> None:
        """Read what the checks of the end need (process ``history.FINAL``), once everything is healed."""

    def describe(self) -> Mapping[str, Any]:
        """Return what the run's description says of it, once it is prepared: its name -> what its checks need."""
        return {}
