"""TLS to the database: verified where the URL asks for it, with each driver (docs: tls-to-the-database)."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from typing import ClassVar

import pytest
import sqlalchemy as sa

from placement import errors
from placement.cmd import status
from tests import children, preloaded, running, servers
from tests.certificates import Authority
from tests.conftest import chosen
from tests.docs.run_by import blocks_of
from tests.made import opened

HOST = "127.0.0.1"
#: The URL parameters with which each driver verifies the certificate and the name of the server.
VERIFIED = {
    url.get_driver_name(): {name: value.replace("/etc/placement/ca.pem", "{ca}") for name, value in url.query.items()}
    for block in blocks_of(__file__, "docs/deployment.rst")
    for url in map(sa.make_url, re.findall(r"^connection = (.*)", block.text, re.MULTILINE))
}
#: The URL parameters that the documentation of each driver uses for the same.
AS_DOCUMENTED = {
    "pymysql": {"ssl_ca": "{ca}", "ssl_verify_cert": "true", "ssl_verify_identity": "true"},
    "mysqldb": {"ssl_ca": "{ca}", "ssl_mode": "VERIFY_IDENTITY"},
}
CLIENT = {
    "pymysql": {"ssl_cert": "{certificate}", "ssl_key": "{key}"},
    "mysqldb": {"ssl_cert": "{certificate}", "ssl_key": "{key}"},
    "psycopg": {"sslcert": "{certificate}", "sslkey": "{key}"},
}
ENCRYPTED = {
    "mysql": "SELECT variable_value <> '' FROM information_schema.session_status WHERE variable_name = 'ssl_cipher'",
    "postgresql": "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
}
UNVERIFIED = "certificate verify failed|unable to get local issuer certificate|self-signed certificate"
OTHER_NAME = "IP address mismatch|does not match host name|Validation of SSL server certificate failed"
EXPIRED = "certificate has expired|certificate verify failed"
NO_TLS = "SSL (is|was) required"
NO_FILE = "No such file or directory .*absent.pem|absent.pem. does not exist|TLS/SSL error"


class Secured(servers.ServerProcess):
    """A server with a certificate signed by an authority."""

    drivers: ClassVar[tuple[str, ...]]
    #: The name in the certificate, and whether it has expired.
    presented = (HOST, False)

    def present(self, name=HOST, *, expired=False):
        """Restart the server with a certificate for this name."""
        if (name, expired) != self.presented:
            self.presented = (name, expired)
            self.restart()

    def issue_certificate(self):
        """Create the certificate; return the files of the authority, the certificate and its key."""
        name, expired = self.presented
        certificate, key = self.authority.issue(name, expired=expired)
        if self._identity:
            shutil.chown(key, self._identity["user"])
        return self.authority.certificate, certificate, key


class MariaDB(Secured, servers.MariaDB):
    drivers = ("pymysql", "mysqldb")

    def _command(self):
        authority, certificate, key = self.issue_certificate()
        return [*super()._command(), f"--ssl-ca={authority}", f"--ssl-cert={certificate}", f"--ssl-key={key}"]

    def create_certified(self, user):
        """Create a user who needs a certificate, with the server's password."""
        identified = f"IDENTIFIED BY '{self.password}' REQUIRE X509"
        self._administer(f"CREATE USER {user}@'{HOST}' {identified}", f"GRANT ALL ON *.* TO {user}@'{HOST}'")


class PostgreSQL(Secured, servers.PostgreSQL):
    drivers = ("psycopg",)

    def _command(self):
        authority, certificate, key = self.issue_certificate()
        files = {"ssl_ca_file": authority, "ssl_cert_file": certificate, "ssl_key_file": key}
        flags = [flag for name, path in files.items() for flag in ("-c", f"{name}={path}")]
        return [*super()._command(), "-c", "ssl=on", *flags]

    def create_certified(self, user):
        self._administer(f"CREATE ROLE {user} SUPERUSER LOGIN")
        rules = self.directory / "data" / "pg_hba.conf"
        rules.write_text(f"hostssl all {user} {HOST}/32 cert\n{rules.read_text()}")
        self._administer("SELECT pg_reload_conf()")


@pytest.fixture(scope="module", params=[MariaDB, PostgreSQL], ids=lambda cls: cls.kind)
def server(request):
    cls = request.param
    if cls.kind not in chosen(request.config):
        pytest.skip(f"{cls.kind} is not among --databases")
    cls.check_installed()
    directory = children.run_directory() / f"tls-{secrets.token_hex(4)}"
    directory.mkdir(mode=0o711)
    server = cls(directory / "server")
    server.authority, server.other_authority = Authority(directory), Authority(directory, "other")
    server.start()
    yield server
    server.stop()
    shutil.rmtree(directory)


def urls(server, arguments=VERIFIED, **files):
    """Return the server's URL for each of its drivers that takes these arguments."""
    files = {"ca": server.authority.certificate, **files}
    named = {driver: arguments[driver] for driver in server.drivers if driver in arguments}
    return [
        server.url.set(
            drivername=f"{server.driver.partition('+')[0]}+{driver}",
            query={name: value.format(**files) for name, value in query.items()},
        )
        for driver, query in named.items()
    ]


def is_encrypted(connection):
    backend = sa.make_url(str(connection.engine.url)).get_backend_name()
    return bool(connection.scalar(sa.text(ENCRYPTED[backend])))


def assert_refused(url, reason, in_process, tmp_path):
    """Check that the service gets no connection, and that a command and the start report the reason in one line."""
    with opened(url) as database, pytest.raises(errors.Unavailable) as raised:
        database.read(lambda db: db.execute(sa.select(1)))
    assert re.search(reason, str(raised.value.__cause__)), raised.value.__cause__
    configuration = tmp_path / "placement.conf"
    text = url.render_as_string(hide_password=False)
    configuration.write_text(f"[placement_database]\nconnection = {text}\nmax_retries = 0\n")
    ran = in_process(status, "--config-file", str(configuration), "upgrade", "check")
    assert (ran.code, ran.out) == (255, "")
    assert re.search(f"^placement-status: The database .*({reason})", ran.err, re.MULTILINE), ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("arguments", [VERIFIED, AS_DOCUMENTED], ids=["short", "as documented"])
def test_every_connection_to_a_verified_server_is_encrypted(server, arguments):
    server.present()
    for url in urls(server, arguments):
        with opened(url) as database:
            for engine in (database.engine, database.reading_engine, database._probing_engine):
                with engine.connect() as connection:
                    assert is_encrypted(connection), url.drivername


@pytest.mark.parametrize("arguments", [VERIFIED, AS_DOCUMENTED], ids=["short", "as documented"])
def test_a_certificate_of_another_authority_is_refused(server, arguments, in_process, tmp_path):
    server.present()
    for url in urls(server, arguments, ca=server.other_authority.certificate):
        assert_refused(url, UNVERIFIED, in_process, tmp_path)


@pytest.mark.parametrize("arguments", [VERIFIED, AS_DOCUMENTED], ids=["short", "as documented"])
def test_a_certificate_for_another_name_is_refused(server, arguments, in_process, tmp_path):
    server.present("192.0.2.1")
    for url in urls(server, arguments):
        assert_refused(url, OTHER_NAME, in_process, tmp_path)


def test_an_expired_certificate_is_refused(server, in_process, tmp_path):
    server.present(expired=True)
    for url in urls(server):
        assert_refused(url, EXPIRED, in_process, tmp_path)


@pytest.mark.parametrize("arguments", [VERIFIED, AS_DOCUMENTED], ids=["short", "as documented"])
def test_a_server_without_tls_is_refused(server, arguments, in_process, tmp_path):
    plain = servers.shared(server.kind)
    for url in urls(server, arguments):
        address = url.set(port=plain.port, username=plain.url.username, password=plain.url.password)
        assert_refused(address, NO_TLS, in_process, tmp_path)


def test_a_missing_file_of_the_authority_is_reported_without_a_traceback(server, in_process, tmp_path):
    server.present()
    for url in urls(server, ca=tmp_path / "absent.pem"):
        assert_refused(url, NO_FILE, in_process, tmp_path)


def test_a_failed_start_reports_the_reason_in_one_line(server):
    server.present()
    for url in urls(server, ca=server.other_authority.certificate):
        text = url.render_as_string(hide_password=False)
        directory = running.write_configuration(text, {"placement_database": {"connection": text, "max_retries": 0}})
        environment = {**os.environ, "OS_PLACEMENT_CONFIG_DIR": str(directory)}
        result = preloaded.service().run([sys.executable, "-c", "import placement.wsgi.api"], environment)
        assert result.returncode == 22
        assert re.search(f"^placement cannot start: .*({UNVERIFIED})", result.stderr, re.MULTILINE), result.stderr
        assert "Traceback" not in result.stderr


def test_a_client_certificate_is_sent(server):
    """The server requires the certificate; MariaDB requires a password as well."""
    server.present()
    for number, driver in enumerate(server.drivers):
        user = f"certified_{number}"
        server.create_certified(user)
        certificate, key = server.authority.issue(user)
        [url] = urls(server, {driver: VERIFIED[driver] | CLIENT[driver]}, certificate=certificate, key=key)
        with opened(url.set(username=user)) as database, database.engine.connect() as connection:
            assert is_encrypted(connection)
        [url_without_certificate] = urls(server, {driver: VERIFIED[driver]})
        with opened(url_without_certificate.set(username=user)) as database, pytest.raises(errors.DatabaseRefuses):
            database.read(lambda db: db.execute(sa.select(1)))
