"""The base class of clusters: the URLs that clients use, and the parts that nemeses harm."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.running import Service
from tests.servers import ServerProcess


class Cluster:
    """Base class: services on a database; a context manager that starts and stops all, and may raise servers.Missing.

    Attributes:
        name: Name on the command line.
        kind: Kind of database: "sqlite", "mariadb" or "postgresql".
        shows_state: Whether it runs this repository's service, whose rows and indices can be checked.
        services: Running services.
        servers: Database servers, for pairs the primary first; empty for SQLite.
        proxies: Proxies between services and database, by name; empty for direct connections.
        options: Options of the services, by section.
        module: Module that uWSGI imports; its ``application`` is the service.
        environment: Environment variables of the services, in addition to the environment of this process.
        tree: Directory with the packages of an older version; None: the services run this version.
        lost_tail: Whether a run on this cluster may have lost commits.
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
        """Start everything, and push the callbacks that stop it onto the stack."""
        raise NotImplementedError

    def wait_until_complete(self) -> None:
        """Wait until the cluster has recovered completely, so that failures do not add up."""

    @property
    def urls(self) -> Sequence[str]:
        """URLs for the requests of clients: one per service, or the load balancer's."""
        return [service.url for service in self.services]

    @property
    def database_url(self) -> str:
        """Direct URL of the database, for the checks after the run."""
        raise NotImplementedError
