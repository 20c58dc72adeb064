"""The form of all clusters: what clients call, and what nemeses take hold of."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.running import Service
from tests.servers import ServerProcess


class Cluster:
    """Services on one database; a context manager that starts and stops all of it, and raises servers.Missing.

    Attributes:
        name: As it is named on the command line.
        kind: Of the database: "sqlite", "mariadb" or "postgresql".
        shows_state: Whether it is this service, and its module shows the index of each worker at the end of a run.
        services: The running services.
        servers: The processes of the database, of which the first one is written to; none for SQLite.
        proxies: What is between services and database, by name; none where they are connected directly.
        options: Options of the services, by section, beside those of the cluster.
        module: What uWSGI imports; its ``application`` is the service.
        environment: Variables of the services, beside those of this process.
        tree: The directory with the packages of the services; None for this one.
        lost_tail: Whether a run on it may have lost commits.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    shows_state: ClassVar[bool] = True

    def __init__(
        self,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        module: str = "jepsen.application",
        environment: Mapping[str, str] = {},
        tree: Path | None = None,
    ) -> None:
        self.options = options or {}
        self.module, self.environment, self.tree = module, environment, tree
        self.lost_tail = False
        self.services: list[Service] = []
        self.servers: list[ServerProcess] = []
        self.proxies: dict[str, Any] = {}
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        with contextlib.ExitStack() as starting:
            self._start(starting)
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _start(self, running: contextlib.ExitStack) -> None:
        """Start everything, and push onto the stack what stops it."""
        raise NotImplementedError

    def wait_until_complete(self) -> None:
        """Return once nothing is left of an earlier failure, so that one thing fails at a time."""

    @property
    def urls(self) -> Sequence[str]:
        """Where clients send their calls, one for each service or for the load balancer before them."""
        return [service.url for service in self.services]

    @property
    def database_url(self) -> str:
        """The URL of the database for the checks after the run, not through a proxy."""
        raise NotImplementedError
