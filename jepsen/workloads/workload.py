"""The base class of workloads."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, ClassVar

from jepsen.client import Client


class Workload:
    """Base class: the work of the clients of a run, in one object that the threads of all clients share.

    Attributes:
        name: Name on the command line.
        clients: Number of clients.
        own_api: Whether it sends requests to the v1 API or the Bare Metal API, which other implementations lack.
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
        """Read the data for the final checks once the cluster has recovered."""

    def describe(self) -> Mapping[str, Any]:
        """Return the workload's part of the run's description: data for its checks, by its name."""
        return {}
