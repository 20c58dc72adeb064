"""Private database servers for the tests: MariaDB, PostgreSQL, and SQLite with the same interface.

A server has its data in the run's directory, and listens on a free port of 127.0.0.1 and a socket there.  It writes
every COMMIT to its log, so that it survives SIGKILL, but flushes nothing to the disk, because no test cuts the power;
only a server for measurements is durable.  Under root it runs as another user, because the servers refuse root.
`shared` returns the server of this run, started on first use; `private` provides one that a test may kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from tests import children


class Missing(Exception):
    """A program is not installed; the text describes how to install it."""


class Server:
    """A database server for the tests only."""

    kind: ClassVar[str]
    _numbers = itertools.count(1)

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = sa.URL.create(self.kind)

    @classmethod
    def check_installed(cls) -> None:
        """Raise Missing if the server cannot be started here."""

    def start(self) -> None:
        """Start the server; return once it responds."""

    def stop(self) -> None:
        """Shut the server down cleanly."""

    def create_database(self) -> str:
        """Create an empty database, and return its URL."""
        raise NotImplementedError

    def drop_database(self, url: str) -> None:
        """Remove the database, even if there are connections."""
        raise NotImplementedError

    def _name(self) -> str:
        return f"placement_{os.getpid()}_{next(self._numbers)}"


class SQLite(Server):
    """Files in a directory."""

    kind = "sqlite"

    def create_database(self) -> str:
        return f"sqlite:///{self.directory / self._name()}.sqlite"

    def drop_database(self, url: str) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(url.removeprefix("sqlite:///") + suffix).unlink(missing_ok=True)


class ServerProcess(Server):
    """The common part of MariaDB and PostgreSQL."""

    user: ClassVar[str]
    driver: ClassVar[str]
    package: ClassVar[str]
    programs: ClassVar[tuple[str, ...]]
    stop_with: ClassVar[signal.Signals]
    query: ClassVar[dict[str, str]] = {}
    child: children.Child

    def __init__(
        self, directory: Path, port: int | None = None, password: str | None = None, *, durable: bool = False
    ) -> None:
        super().__init__(directory)
        self.durable = durable
        #: Additional variables of its processes, from the next start on.
        self.environment: dict[str, str] = {}
        self.port = port or children.free_port()
        self.password = password or secrets.token_hex(16)
        self.url = sa.URL.create(
            self.driver, "placement", self.password, "127.0.0.1", self.port, self.administered, self.query
        )

    administered: ClassVar[str]

    @classmethod
    def check_installed(cls) -> None:
        for program in cls.programs:
            if _program(program) is None:
                raise Missing(f"{program} is not installed: `make servers` installs {cls.package}")

    def start(self) -> None:
        if not self.directory.exists():
            self.directory.mkdir(mode=0o700)
            if self._identity:
                os.chown(self.directory, self._identity["user"], self._identity["group"])
            self._initialise()
        log = self.directory.parent / f"{self.directory.name}.log"
        argv, more = self._start_as()
        self.child = children.Child(argv, log, self.stop_with, cwd="/", env=self._environment, **more)
        self.child.wait_until(self._answers)

    def stop(self) -> None:
        """Shut the server down cleanly."""
        self.child.stop()

    def kill(self) -> None:
        """Kill all its processes at once, with SIGKILL."""
        self.child.kill()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop all its processes (SIGSTOP) during a block; the kernel still acknowledges packets."""
        stopped = [self.child.pid, *children.descendants(self.child.pid)]
        try:
            for pid in stopped:
                children.send(pid, signal.SIGSTOP)
            while not all(children.is_stopped(pid) for pid in stopped):
                time.sleep(0.01)
            yield
        finally:
            for pid in stopped:
                children.send(pid, signal.SIGCONT)

    def restart(self) -> None:
        """Shut the server down cleanly if it runs, and start it again, on the same port."""
        self.stop()
        self.start()

    def create_database(self) -> str:
        name = self._name()
        self._administer(f"CREATE DATABASE {name}")
        return self.url.set(database=name).render_as_string(hide_password=False)

    def drop_database(self, url: str) -> None:
        name = sa.make_url(url).database
        self._disconnect(str(name))
        self._administer(f"DROP DATABASE IF EXISTS {name}")

    def _initialise(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _start_as(self) -> tuple[list[str], dict[str, Any]]:
        """Return the command that starts it, and Popen's arguments."""
        return self._command(), self._identity

    def _disconnect(self, name: str) -> None:
        raise NotImplementedError

    def _administer(self, *statements: str) -> list[Any]:
        """Run statements as the administrator, and return the rows of the last one."""
        engine = sa.create_engine(self._operators_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            for statement in statements:
                result = connection.execute(sa.text(statement))
            return list(result) if result.returns_rows else []

    @property
    def _operators_url(self) -> sa.URL:
        """Return the URL for the administrator's connections."""
        return self.url

    def _answers(self) -> bool:
        with contextlib.suppress(sa.exc.OperationalError):
            return bool(self._administer("SELECT 1"))
        return False

    def _run(self, argv: list[str]) -> None:
        completed = subprocess.run(
            argv, capture_output=True, text=True, cwd="/", env=self._environment, **self._identity
        )
        if completed.returncode:
            raise RuntimeError(f"{argv!r} failed:\n{completed.stdout}{completed.stderr}")

    @property
    def _environment(self) -> dict[str, str]:
        """Return the environment without the directory of temporary files, which its user may be unable to write to."""
        return {**os.environ, "TMPDIR": str(self.directory), **self.environment}

    @property
    def _identity(self) -> dict[str, Any]:
        """Return Popen's arguments that drop root, if this is root."""
        if os.geteuid() != 0:
            return {}
        for name in (self.user, "nobody"):
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        raise Missing(f"there is no user {self.user} to run as: {self.kind} refuses to run as root")


_NOT_FLUSHING = ("--loose-innodb-flush-method=nosync", "--loose-debug-no-sync")


class MariaDB(ServerProcess):
    kind = "mariadb"
    driver = "mysql+pymysql"
    user = "mysql"
    package = "mariadb-server"
    programs = ("mariadbd", "mariadb-install-db")
    stop_with = signal.SIGTERM
    # No TLS: otherwise a client reads all certificates of authorities first, 40 ms for every connection.
    query: ClassVar[dict[str, str]] = {"charset": "utf8mb4", "ssl_disabled": "true"}
    administered = "mysql"

    def _initialise(self) -> None:
        self._run([
            *(str(_program("mariadb-install-db")), "--no-defaults", f"--datadir={self.directory / 'data'}"),
            *("--skip-test-db", "--skip-name-resolve", "--innodb-log-file-size=48M"),
        ])  # fmt: skip
        init_file = self.directory / "start.sql"
        init_file.write_text(
            f"CREATE OR REPLACE USER placement@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            "GRANT ALL ON *.* TO placement@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        init_file.chmod(0o644)

    def _command(self) -> list[str]:
        return [
            *(str(_program("mariadbd")), "--no-defaults", f"--datadir={self.directory / 'data'}"),
            *(f"--socket={self.directory / 'socket'}", f"--pid-file={self.directory / 'pid'}"),
            *("--bind-address=127.0.0.1", f"--port={self.port}", f"--init-file={self.directory / 'start.sql'}"),
            *("--skip-name-resolve", "--max-connections=500", "--character-set-server=utf8mb4"),
            *(f"--innodb-buffer-pool-size={'1G' if self.durable else '64M'}", "--innodb-log-file-size=48M"),
            *("--innodb-flush-log-at-trx-commit=1", *(() if self.durable else _NOT_FLUSHING)),
        ]

    def _disconnect(self, name: str) -> None:
        for row in self._administer(f"SELECT id FROM information_schema.processlist WHERE db = '{name}'"):
            with contextlib.suppress(sa.exc.OperationalError):  # the session may have ended by itself
                self._administer(f"KILL {row.id}")


class PostgreSQL(ServerProcess):
    kind = "postgresql"
    driver = "postgresql+psycopg"
    user = "postgres"
    package = "postgresql"
    programs = ("initdb", "postgres")
    stop_with = signal.SIGINT  # "fast": it does not wait for clients
    administered = "postgres"

    def _initialise(self) -> None:
        secret = self.directory / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self._run([
            *(str(_program("initdb")), "-D", str(self.directory / "data"), "--no-sync"),
            *("-U", "placement", "-A", "password", f"--pwfile={secret}", "-E", "UTF8", "--no-locale"),
        ])  # fmt: skip

    def _command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.directory,
            "max_connections": 300,
            "shared_buffers": "1GB" if self.durable else "64MB",
            "fsync": "on" if self.durable else "off",
            "synchronous_commit": "on",
        }
        flags = [flag for name, value in settings.items() for flag in ("-c", f"{name}={value}")]
        return [str(_program("postgres")), "-D", str(self.directory / "data"), *flags]

    def _disconnect(self, name: str) -> None:
        # A session ends some time after it was terminated, and DROP DATABASE waits five seconds for it.
        while self._administer(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"):
            time.sleep(0.01)


KINDS: dict[str, type[Server]] = {server.kind: server for server in (SQLite, MariaDB, PostgreSQL)}


def shared(kind: str) -> Server:
    """Return the run's server, started by the first process that needs it; raise Missing if it is not installed."""
    cls = KINDS[kind]
    cls.check_installed()
    directory = children.run_directory() / kind
    if not issubclass(cls, ServerProcess):
        directory.mkdir(exist_ok=True)
        return cls(directory)
    with (children.run_directory() / f"{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = children.run_directory() / f"{kind}.json"
        if address.exists():
            return cls(directory, **json.loads(address.read_text()))
        server = cls(directory)
        server.start()
        server.child.disown()
        address.write_text(json.dumps({"port": server.port, "password": server.password}))
        return server


@contextlib.contextmanager
def private(
    kind: str, *, durable: bool = False, environment: Mapping[str, str] = {}, place: Path | None = None
) -> Iterator[ServerProcess]:
    """Provide a server that the caller may kill and restart; raise Missing if it is not installed.

    Args:
        durable: Whether a COMMIT returns after its log is on the disk, the server's default; the buffers then fit the
            data of a large cloud, like an operator's.
        environment: Additional variables of its processes.
        place: The parent of its directory; by default the directory of the run, whose files may be in memory.
    """
    cls = KINDS[kind]
    assert issubclass(cls, ServerProcess), f"{kind} has no server"
    cls.check_installed()
    server = cls((place or children.run_directory()) / f"{kind}-{secrets.token_hex(4)}", durable=durable)
    server.environment.update(environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.directory, ignore_errors=True)


def _program(name: str) -> str | None:
    """Return the path of a program; Debian installs PostgreSQL's programs outside of PATH, by version."""
    places = [os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]
    places += map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name)))
    return shutil.which(name, path=":".join(places))
