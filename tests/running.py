"""The real service in separate processes, for tests that send HTTP requests and load to it, or kill it."""

from __future__ import annotations

import configparser
import contextlib
import http.client
import os
import re
import secrets
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import children, preloaded
from tests.servers import Missing

Options = Mapping[str, Mapping[str, Any]]
#: The directory with the packages of this repository.
ROOT = Path(__file__).parent.parent


class Service:
    """A running service: `url` is its root, "admin" is the token of an administrator."""

    def __init__(
        self,
        argv: list[str],
        port: int,
        directory: Path,
        prefix: str = "",
        environment: Mapping[str, str] = {},
        **more: Any,
    ) -> None:
        self.port, self.directory, self.prefix = port, directory, prefix
        self.url = f"http://127.0.0.1:{port}{prefix}"
        self.log = directory / "log"
        #: Additional variables of its processes, from the next start on.
        self.environment = dict(environment)
        self._argv, self._more = argv, more
        self.start()

    def start(self) -> None:
        """Start the service, or restart it after it was stopped or killed; return once it responds."""
        environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(self.directory), **self.environment}
        self._child = children.Child(self._argv, self.log, signal.SIGTERM, env=environment, **self._more)
        self.pid = self._child.pid
        self._child.wait_until(self._answers)

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Wait until ``ready()`` is true; raise with the end of the log if the service ends before."""
        self._child.wait_until(ready)

    def stop(self) -> None:
        """Stop the service cleanly."""
        # uWSGI's master waits forever for a worker that had just started when it signalled all to stop.
        self._child.stop(lambda: self.workers if "--master" in self._argv else ())

    def kill(self) -> None:
        """Kill all its processes at once, with SIGKILL."""
        self._child.kill()

    def restart(self) -> None:
        """Stop the service cleanly, and start it again."""
        self.stop()
        self.start()

    def reload(self) -> None:
        """Replace the workers, one after another, like uWSGI on an operator's command; return once it is done."""
        self.wait_until_loaded()
        old = {*self.workers}
        (self.directory / "fifo").write_text("c")
        self.wait_until(lambda: not old & {*self.workers} and self._is_loaded())

    def wait_until_loaded(self) -> None:
        """Wait until all workers of uWSGI have loaded the application: a loading worker ignores the signal to stop."""
        self.wait_until(self._is_loaded)

    def _is_loaded(self) -> bool:
        """Whether all workers have loaded the application, according to uWSGI's log."""
        loaded = re.findall(r"WSGI app 0 .* ready in .* pid: (\d+)", self.log.read_text(errors="replace"))
        return {*self.workers} <= {*map(int, loaded)}

    @property
    def workers(self) -> list[int]:
        """Return the ids of the processes that serve requests; a master may have none briefly."""
        pid = self._child.pid
        begun = [int(worker) for worker in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return begun or ([] if "--master" in self._argv else [pid])

    def kill_worker(self) -> int:
        """Kill one of the workers with SIGKILL, and return its id; its master starts another."""
        worker = secrets.choice(self.workers)
        os.kill(worker, signal.SIGKILL)
        return worker

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=children.PATIENCE)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", f"{self.prefix}/")
            return connection.getresponse().status == 200
        return False


@contextlib.contextmanager
def uwsgi(
    database_url: str,
    processes: int = 2,
    options: Options | None = None,
    *,
    module: str = "placement.wsgi.api",
    flags: Sequence[str] = ("--enable-threads",),
    environment: Mapping[str, str] = {},
    tree: Path = ROOT,
) -> Iterator[Service]:
    """The service under uWSGI, like the deployment tools run it: it sends "Connection: close" with each response.

    ``options`` go into placement.conf, by section; ``tree`` contains the package.  The workers are forks of a master
    that has loaded the service; with ``--lazy-apps`` among the flags each loads it itself, and can be reloaded alone.

    Raises:
        Missing: uWSGI is not installed.
    """
    binary = uwsgi_binary()
    port, directory = children.free_port(), write_configuration(database_url, options)
    argv = [
        *(binary, "--http-socket", f"127.0.0.1:{port}", "--module", f"{module}:application"),
        *("--processes", str(processes), "--master", "--need-app", "--thunder-lock", *flags),
        *("--die-on-term", "--no-orphans", "--disable-logging", "--buffer-size", "65535", "--listen", "128"),
        *("--socket-timeout", "300"),  # a client of the tests may have to wait for a processor
        *("--master-fifo", str(directory / "fifo")),
        *("--add-header", "Connection: close", "--pythonpath", str(tree)),
    ]
    yield from run(argv, port, directory, environment=environment)


@contextlib.contextmanager
def embedded(
    database_url: str,
    options: Options | None = None,
    *,
    module: str = "placement.cmd.serve",
    environment: Mapping[str, str] = {},
) -> Iterator[Service]:
    """The service under placement-serve: one process, several threads, connections kept alive."""
    port, directory = children.free_port(), write_configuration(database_url, options)
    argv = [sys.executable, "-m", module, "--port", str(port)]
    yield from run(argv, port, directory, environment=environment, begin=preloaded.service().popen)


def uwsgi_binary() -> str:
    """Return the path of the uWSGI of this environment; raise Missing if it is not installed."""
    binary = Path(sys.executable).with_name("uwsgi")
    if not binary.exists():
        raise Missing("uWSGI is not installed: `pip install pyuwsgi`")
    return str(binary)


def run(argv: list[str], port: int, directory: Path, **more: Any) -> Iterator[Service]:
    """Provide the service started by a command."""
    service = Service(argv, port, directory, **more)
    try:
        yield service
    finally:
        service.stop()


def write_configuration(database_url: str, options: Options | None) -> Path:
    """Create a directory with a placement.conf, and return it."""
    directory = children.run_directory() / f"service-{secrets.token_hex(4)}"
    directory.mkdir()
    configuration = configparser.RawConfigParser()
    configuration.read_dict({
        "api": {"auth_strategy": "noauth2"},
        "placement": {"index_directory": str(directory / "index")},
        "placement_database": {"connection": database_url, "sync_on_startup": True},
    })  # fmt: skip
    for section, values in (options or {}).items():
        configuration.read_dict({section: dict(values)})
    with (directory / "placement.conf").open("w") as file:
        configuration.write(file)
    return directory
