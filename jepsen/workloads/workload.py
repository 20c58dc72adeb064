"""The base class of workloads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from jepsen.client import Client


class Workload:
    """The work of the clients of a run; one object shared by the threads of all clients.

    Attributes:
        name: Name on the command line.
        clients: Number of clients.
        own_api: Whether it needs the v1 API or the Bare Metal API, which other implementations lack.
    """

    name: ClassVar[str]
    clients: ClassVar[int] = 6
    own_api: ClassVar[bool] = False

    def prepare(self, client: Client) -> None:
        """Create the shared objects before the first nemesis; raise AssertionError if that fails."""

    def run(self, client: Client, rng: random.Random) -> None:
        """Do the work of one client until ``client.stopped`` is set.

        After an unknown outcome a client continues with other consumers, or reads the result.
        """
        raise NotImplementedError

    def finish(self, client: Client) -> None:
        """Read the data for the final checks (process ``history.FINAL``), once everything is healed."""

    def describe(self) -> Mapping[str, Any]:
        """Return the workload's part of the run's description, once prepared: its name -> data for its checks."""
        return {}
