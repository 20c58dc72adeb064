"""Database servers that can replicate from each other: MariaDB by GTID, PostgreSQL by streaming."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from placement.db.engine import driver_errors
from placement.db.engine.driver_errors import ErrorClass
from tests import servers

#: Seconds within which a replica must catch up, or a server change its role.
_LIMIT = 60.0
#: Database user of the services, who cannot write to a read-only server.
SERVICE = "service"
_SLOT = "replica"
#: MariaDB's error if the primary's log lacks the replica's last transaction (strict mode).
_NO_SUCH_GTID = 1236


class ReplicatedServer(Protocol):
    """A database server that is a primary or a replica, with an operator's commands."""

    directory: Path
    port: int
    url: sa.URL

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def create_database(self) -> str:
        """Create a database; return its URL on this server, for an unprivileged user."""

    def takes_writes(self) -> bool:
        """Whether this server is the primary; raise OperationalError if it does not respond."""

    def demote(self) -> None:
        """Refuse further writes, even in open sessions, and wait until those in progress have ended."""

    def promote(self) -> None:
        """Apply all commits received, and take writes."""

    def wait_for(self, primary: Any) -> None:
        """Wait until this server has applied all commits of the primary, which is demoted."""

    def begin_as_copy(self, primary: Any, through: int) -> None:
        """Start as a replica of the primary, in a new directory, through the port ``through``."""

    def follow(self, primary: Any, through: int) -> None:
        """Become a replica of the primary, and discard any commits that the primary lacks.

        This server is demoted or killed.
        """


class MariaDB(servers.MariaDB):
    """A MariaDB server that replicates by global transaction id (GTID), read-only unless it is the primary."""

    programs = (*servers.MariaDB.programs, "mariadb", "mariadb-dump")

    def __init__(self, directory: Path, password: str, waits_for_replica: bool) -> None:
        super().__init__(directory, password=password)
        self.waits_for_replica = waits_for_replica
        self._read_only = True

    def _initialise(self) -> None:
        super()._initialise()
        statements = self.directory / "start.sql"
        statements.write_text("SET sql_log_bin = 0;\n" + statements.read_text())

    def _command(self) -> list[str]:
        flags = [
            *("--log-bin=binlog", "--log-slave-updates", "--gtid-strict-mode=1", f"--server-id={self.port}"),
            *(f"--read-only={int(self._read_only)}", "--relay-log=relay", "--slave-net-timeout=5"),
            *("--report-host=127.0.0.1",),
        ]
        if self.waits_for_replica:
            flags += [
                *("--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-slave-enabled=1"),
                # A COMMIT becomes visible once the replica has it, however long that takes.
                *("--rpl-semi-sync-master-wait-point=AFTER_SYNC", "--rpl-semi-sync-master-timeout=600000"),
                # A primary without a replica continues, as after a failover.
                "--rpl-semi-sync-master-wait-no-slave=0",
            ]
        return [*super()._command(), *flags]

    def create_database(self) -> str:
        url = sa.make_url(super().create_database())
        self._administer(
            f"CREATE USER IF NOT EXISTS {SERVICE}@'127.0.0.1' IDENTIFIED BY '{self.password}'",
            f"GRANT ALL ON {url.database}.* TO {SERVICE}@'127.0.0.1'",
        )
        return url.set(username=SERVICE).render_as_string(hide_password=False)

    def takes_writes(self) -> bool:
        [[read_only]] = self._administer("SELECT @@global.read_only")
        return not read_only

    def demote(self) -> None:
        # While SET GLOBAL read_only waits for running statements, it blocks all others.  If a running one waits for a
        # row of a blocked transaction, both end only by a timeout of the service.  So the statement does not wait, and
        # is retried until nothing runs.
        engine = sa.create_engine(self.url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with engine.connect() as connection:
            connection.exec_driver_sql("SET SESSION lock_wait_timeout = 0")
            _wait_until(lambda: self._is_demoted_by(connection))
        self._read_only = True

    def _is_demoted_by(self, connection: sa.Connection) -> bool:
        try:
            connection.exec_driver_sql("SET GLOBAL read_only = 1")
        except sa.exc.OperationalError as error:
            if driver_errors.classify(error) is ErrorClass.COLLISION:
                return False
            raise
        return True

    def promote(self) -> None:
        self._administer("STOP SLAVE IO_THREAD")
        _wait_until(self._has_applied_relay_log)
        self._administer("STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
        self._read_only = False

    def wait_for(self, primary: MariaDB) -> None:
        [[position]] = primary._administer("SELECT @@global.gtid_binlog_pos")
        [[result]] = self._administer(f"SELECT MASTER_GTID_WAIT('{position}', {_LIMIT})")
        assert result == 0, f"the replica is not at {position}: {self._status()}"

    def begin_as_copy(self, primary: MariaDB, through: int) -> None:
        primary.stop()
        _copy(primary.directory, self.directory)
        primary._read_only = False
        primary.start()
        self.start()
        self._replicate(through)

    def follow(self, primary: MariaDB, through: int) -> None:
        self._read_only = True
        if self.child.ended:
            self.kill()
            self.start()
        if not self._replicate(through, "MASTER_DEMOTE_TO_SLAVE = 1"):
            self._administer("STOP SLAVE", "RESET SLAVE ALL", "RESET MASTER")
            self._load_from(primary)
            assert self._replicate(through), self._status()

    def _replicate(self, through: int, *more: str) -> bool:
        """Start replication; return whether the primary's log continues where this server's ends."""
        source = f"MASTER_HOST = '127.0.0.1', MASTER_PORT = {through}, MASTER_USER = 'placement'"
        settings = ", ".join(
            [
                source,
                f"MASTER_PASSWORD = '{self.password}'",
                "MASTER_USE_GTID = slave_pos",
                "MASTER_CONNECT_RETRY = 1",
                *more,
            ]
        )
        self._administer(f"CHANGE MASTER TO {settings}", "START SLAVE")
        _wait_until(
            lambda: self._status()["Slave_IO_Running"] == "Yes" or self._status()["Last_IO_Errno"] == _NO_SUCH_GTID
        )
        return bool(self._status()["Slave_IO_Running"] == "Yes")

    def _load_from(self, primary: MariaDB) -> None:
        """Replace all databases and the position with a dump of the primary."""
        names = [row[0] for row in primary._administer("SHOW DATABASES LIKE 'placement%'")]
        options = ["--single-transaction", "--gtid", "--master-data=1", "--add-drop-database", "--databases"]
        dump = primary._client("mariadb-dump", *options, *names)
        load = self._client("mariadb", "--init-command=SET sql_log_bin = 0")
        with subprocess.Popen(dump, stdout=subprocess.PIPE, env=self._environment) as reading:
            subprocess.run(load, stdin=reading.stdout, check=True, env=self._environment)
        assert reading.returncode == 0, f"{dump} failed"

    def _client(self, program: str, *arguments: str) -> list[str]:
        address = ["--no-defaults", "--host=127.0.0.1", f"--port={self.port}", "--user=placement"]
        return [program, *address, f"--password={self.password}", *arguments]

    def _status(self) -> dict[str, Any]:
        [row] = self._administer("SHOW SLAVE STATUS")
        return dict(row._mapping)

    def _has_applied_relay_log(self) -> bool:
        status = self._status()
        assert not status["Last_SQL_Errno"], status["Last_SQL_Error"]
        # Positions are no proof: the last transaction may have arrived in part.
        return str(status["Slave_SQL_Running_State"]).startswith("Slave has read all relay log")


class PostgreSQL(servers.PostgreSQL):
    """A PostgreSQL server that replicates by streaming, from a slot of the primary."""

    programs = (*servers.PostgreSQL.programs, "pg_basebackup", "pg_rewind")

    def __init__(self, directory: Path, password: str, waits_for_replica: bool) -> None:
        super().__init__(directory, password=password)
        self.waits_for_replica = waits_for_replica
        self._source = 0  # port of the primary

    def _initialise(self) -> None:
        super()._initialise()
        with (self.directory / "data" / "postgresql.conf").open("a") as file:
            file.write("wal_log_hints = on\nwal_keep_size = 256MB\nwal_receiver_timeout = 5s\n")

    def _command(self) -> list[str]:
        settings = {}
        if self._source:
            settings = {"primary_slot_name": _SLOT, "primary_conninfo": self._address(self._source)}
        return [*super()._command(), *(flag for name, value in settings.items() for flag in ("-c", f"{name}={value}"))]

    def takes_writes(self) -> bool:
        [[read_only]] = self._administer("SHOW transaction_read_only")
        return bool(read_only == "off")

    def demote(self) -> None:
        self._set("default_transaction_read_only", "on")
        _wait_until(lambda: not self.takes_writes())
        # A transaction that has begun to write may still commit.
        _wait_until(lambda: not self._administer("SELECT 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL"))

    def promote(self) -> None:
        self._set("synchronous_standby_names", "")  # it has no standby yet, and commits would wait forever
        self._administer("SELECT pg_promote(true)")
        _wait_until(self.takes_writes)
        self._administer("CHECKPOINT")  # pg_rewind reads the new timeline from the checkpoint
        self._source = 0

    def wait_for(self, primary: PostgreSQL) -> None:
        [[position]] = primary._administer("SELECT pg_current_wal_flush_lsn()")
        _wait_until(lambda: self._administer(f"SELECT pg_last_wal_replay_lsn() >= '{position}'")[0][0])

    def begin_as_copy(self, primary: PostgreSQL, through: int) -> None:
        primary._administer(f"SELECT pg_create_physical_replication_slot('{_SLOT}', true)")
        self.directory.mkdir(mode=0o700)
        if self._identity:
            os.chown(self.directory, self._identity["user"], self._identity["group"])
        backup = ["--pgdata", str(self.directory / "data"), "--checkpoint=fast", "--no-sync", "--wal-method=stream"]
        self._run([str(servers._program("pg_basebackup")), "--dbname", primary._address(primary.port), *backup])
        self._stand_by(primary, through)

    def follow(self, primary: PostgreSQL, through: int) -> None:
        self.kill() if self.child.ended else self.stop()
        if not primary._administer("SELECT 1 FROM pg_replication_slots"):
            primary._administer(f"SELECT pg_create_physical_replication_slot('{_SLOT}', true)")
        source = f"{primary._address(primary.port)} dbname=postgres"
        target = str(self.directory / "data")
        self._run(
            [str(servers._program("pg_rewind")), "--no-sync", "--target-pgdata", target, "--source-server", source]
        )
        self._stand_by(primary, through)

    def _stand_by(self, primary: PostgreSQL, through: int) -> None:
        self._source = through
        (self.directory / "data" / "standby.signal").touch()
        (self.directory / "data" / "postgresql.auto.conf").write_text("")
        self.start()
        _wait_until(lambda: bool(primary._administer("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")))
        if self._administer("SELECT 1 FROM pg_replication_slots"):  # its own slot, from its time as primary
            self._administer(f"SELECT pg_drop_replication_slot('{_SLOT}')")
        if self.waits_for_replica:
            primary._set("synchronous_standby_names", "*")

    def _address(self, port: int) -> str:
        return f"host=127.0.0.1 port={port} user=placement password={self.password}"

    def _set(self, name: str, value: str) -> None:
        self._administer(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")


KINDS: dict[str, type[MariaDB | PostgreSQL]] = {"mariadb": MariaDB, "postgresql": PostgreSQL}


def _copy(source: Path, target: Path) -> None:
    """Copy the directory of a stopped server, with file owners."""
    shutil.copytree(source, target)
    for path in (source, *source.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # a socket
            os.chown(target / path.relative_to(source), path.stat().st_uid, path.stat().st_gid)


def _wait_until(ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + _LIMIT
    while not ready():
        assert time.monotonic() < deadline, f"a server did not change its role within {_LIMIT:.0f} s"
        time.sleep(0.01)
