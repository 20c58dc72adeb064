"""Two services and their database, each with a clock that a test moves by hours."""

from __future__ import annotations

import contextlib
import secrets

from jepsen.clusters.cluster import Cluster
from jepsen.clusters.services import service
from tests import children, faketime, servers

SERVICES = 2


class SimulatedCluster(Cluster):
    """A cluster whose time moves only on demand; not in the catalogue.

    SQLite has no separate clock: it uses the clock of each service.

    Attributes:
        hours: Simulated hours since the start.
    """

    name = "simulated"

    def __init__(self, kind: str) -> None:
        # Otherwise workers would verify their indices after some hours, and so repair them.
        super().__init__({"placement": {"index_verify_interval": 0}})
        self.kind = kind  # type: ignore[misc]  # a class attribute in all other clusters
        self.hours = 0.0
        directory = children.run_directory()
        self._clocks = [faketime.Clock(directory / f"clock-{secrets.token_hex(4)}") for _ in range(SERVICES + 1)]

    def pass_hours(self, hours: float, suspended: int | None = None) -> None:
        """Move all clocks, except the clock of the service whose host is suspended, if any."""
        self.hours += hours
        for number, clock in enumerate(self._clocks):
            if number != suspended:
                clock.set(round(self.hours * 3600))

    def _start(self, running: contextlib.ExitStack) -> None:
        *clocks, clock_of_database = self._clocks
        if self.kind == "sqlite":
            self._url = f"sqlite:///{children.run_directory() / f'simulated-{secrets.token_hex(4)}.sqlite'}"
        else:
            server = running.enter_context(servers.private(self.kind, environment=clock_of_database.environment()))
            self.servers.append(server)
            self._url = server.create_database()
        for clock in clocks:
            self.environment = clock.environment(intervals=True)
            self.services.append(running.enter_context(service(self, self._url)))

    @property
    def database_url(self) -> str:
        """URL of the database itself."""
        return self._url
