"""placement-serve, run by a newcomer and by an operator."""

import contextlib
import http.client
import ipaddress
import json
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys

import pytest
import sqlalchemy as sa

from placement import microversion as mv
from placement import package
from placement.cmd import metrics, program, serve
from placement.db.schema import schema
from placement.errors import StartError
from tests import children, closed, made, preloaded, running
from tests.made import opened

SERVE = [sys.executable, "-m", "placement.cmd.serve"]
ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}


@pytest.fixture
def environment():
    """The environment variables, except those that configure the service."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    return {**variables, "PYTHONPATH": os.getcwd()}


@contextlib.contextmanager
def serving(directory, environment, *arguments, end=signal.SIGTERM):
    """Yield the greeting of a service that runs in the directory, and a connection to it."""
    port = children.free_port()
    (directory / "log").unlink(missing_ok=True)
    service = children.Child(
        [*SERVE, "--port", str(port), *arguments],
        directory / "log",
        end,
        preloaded.service().popen,
        cwd=directory,
        env=environment,
    )
    try:
        service.wait_until(lambda: "Ctrl-C" in service.log.read_text())
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=children.PATIENCE)) as connection:
            yield service.log.read_text(), connection
    finally:
        service.stop()


def ask(connection, method, path, body=None):
    connection.request(method, path, json.dumps(body) if body else None, {**ADMIN, "Content-Type": "application/json"})
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read() or "null")


def refusal(environment, *arguments, **variables):
    """Return the one line that a service prints if it does not start."""
    done = preloaded.service().run([*SERVE, *arguments], {**environment, **variables})
    assert done.returncode == 1, done.stderr
    line = done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr, done.stderr
    assert line.startswith("placement-serve: "), done.stderr
    assert "Placement serves" not in done.stdout
    return line.removeprefix("placement-serve: ")


def test_the_suggested_command_works(tmp_path, environment):
    with serving(tmp_path, environment) as (greeting, connection):
        line = re.search("curl .*", greeting).group()
        words = shlex.split(line)
        headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
        assert words[-1] == f"http://127.0.0.1:{connection.port}/resource_providers"
        connection.request("GET", "/resource_providers", headers=headers)
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())) == (200, {"resource_providers": []})
        assert reply.headers["OpenStack-API-Version"] == f"placement {mv.LATEST}"


def test_the_suggested_query_works(tmp_path, environment):
    with serving(tmp_path, environment) as (greeting, _):
        question = re.search("in this directory, try:\n\n  .*placement-ask (.*)", greeting).group(1)
        done = preloaded.service().run(
            [sys.executable, "-m", "placement.extensions.terminal.main", question], environment, tmp_path
        )
        assert (done.returncode, done.stdout) == (0, "No providers.\n"), done.stderr


def test_a_command_is_suggested_in_the_form_that_the_shell_finds(tmp_path, monkeypatch):
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "placement-ask").touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert package.command("placement-ask") == str(programs / "placement-ask")
    assert package.command("placement-nothing") == "placement-nothing"
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert package.command("placement-ask") == "placement-ask"


def test_the_bare_metal_api_is_served_to_clients_without_a_token(tmp_path, environment):
    with serving(tmp_path, environment) as (greeting, connection):
        endpoint = re.search("--os-endpoint (.*?) baremetal", greeting).group(1)
        assert endpoint == f"http://127.0.0.1:{connection.port}/baremetal"
        connection.request("GET", "/baremetal/v1/drivers", headers={"X-OpenStack-Ironic-API-Version": "latest"})
        reply = connection.getresponse()
        assert reply.status == 200
        assert "fake-hardware" in [driver["name"] for driver in json.loads(reply.read())["drivers"]]


def test_the_bare_metal_api_can_be_disabled(tmp_path, environment):
    with serving(tmp_path, {**environment, "OS_BAREMETAL__ENABLED": "false"}) as (greeting, connection):
        assert "/baremetal" not in greeting
        assert ask(connection, "GET", "/baremetal/v1")[0] == 404


def test_the_console_is_at_the_address_in_the_greeting_and_can_be_disabled(tmp_path, environment):
    browser = {"Accept": "text/html,*/*;q=0.8"}
    with serving(tmp_path, environment) as (greeting, connection):
        address = re.search("Open the console in a browser: (.*)", greeting).group(1)
        assert address == f"http://127.0.0.1:{connection.port}/console/"
        connection.request("GET", "/", headers=browser)
        reply = connection.getresponse()
        assert (reply.status, reply.headers["Location"], reply.read()) == (302, address, b"")
        connection.request("GET", "/console/", headers=browser)
        assert b"<h1>Overview</h1>" in connection.getresponse().read()
    with serving(tmp_path, {**environment, "OS_CONSOLE__ENABLED": "false"}) as (greeting, connection):
        assert "The console" not in greeting
        assert ask(connection, "GET", "/console/")[0] == 404
        connection.request("GET", "/", headers=browser)
        assert connection.getresponse().status == 200


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_data_survives_a_restart(tmp_path, environment, end):
    with serving(tmp_path, environment, end=end) as (_, connection):
        assert ask(connection, "POST", "/resource_providers", {"name": "cn1"})[0] == 200
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    with serving(tmp_path, environment) as (_, connection):
        _, body = ask(connection, "GET", "/resource_providers")
    assert [provider["name"] for provider in body["resource_providers"]] == ["cn1"]
    assert (tmp_path / "var" / "placement.sqlite").exists()


def test_a_signal_stops_the_service_cleanly(tmp_path, environment):
    service = subprocess.Popen(
        [*SERVE, "--port", "0"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with service:
        while b"Ctrl-C" not in service.stdout.readline():
            assert service.poll() is None
        service.send_signal(signal.SIGTERM)
        assert service.wait(children.PATIENCE) == 0


def test_a_connection_serves_several_requests(tmp_path, environment):
    with serving(tmp_path, environment) as (_, connection):
        assert ask(connection, "GET", "/resource_providers")[0] == 200
        first = connection.sock
        assert first is not None
        assert ask(connection, "GET", "/traits")[0] == 200
        assert connection.sock is first


def test_a_port_in_use_is_reported(environment):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert (
            refusal(environment, "--port", port) == f"Port {port} of 127.0.0.1 is in use: choose another with --port."
        )


def test_the_database_file_is_readable_by_its_user_only(tmp_path, environment):
    """During writes there are three files: SQLite gives the journals the permissions of the database file."""
    with serving(tmp_path, environment) as (_, connection):
        assert ask(connection, "POST", "/resource_providers", {"name": "cn1"})[0] == 200
        files = list((tmp_path / "var").glob("placement.sqlite*"))
        assert len(files) == 3
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    (tmp_path / "var" / "placement.sqlite").chmod(0o640)
    with serving(tmp_path, environment):
        assert stat.S_IMODE((tmp_path / "var" / "placement.sqlite").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--port", "65536"], "argument --port: 65536 is out of range: from 0 to 65535"),
        (["--port", "-1"], "argument --port: -1 is out of range: from 0 to 65535"),
        (["--port", "http"], "argument --port: 'http' is not an integer"),
        (["--threads", "0"], "argument --threads: 0 is out of range: at least 1"),
    ],
)
def test_numbers_out_of_range_are_refused(capsys, words, sentence):
    with pytest.raises(SystemExit) as end:
        serve.main(words)
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"placement-serve: error: {sentence}"
    if words[0] == "--port":
        with pytest.raises(SystemExit):
            metrics.main(["directory", *words])
        assert capsys.readouterr().err.splitlines()[-1] == f"placement-metrics: error: {sentence}"


def test_noauth2_is_for_loopback_only(tmp_path, environment):
    assert "--insecure-noauth2-on-any-address" in refusal(environment, "--host", "0.0.0.0", "--port", "0")
    with serving(tmp_path, environment, "--host", "0.0.0.0", "--insecure-noauth2-on-any-address") as (_, connection):
        assert ask(connection, "GET", "/resource_providers")[0] == 200


def test_noauth2_is_refused_on_other_addresses():
    hosts = ["0.0.0.0", "0", *addresses(socket.gethostname()), *(["::", "::ffff:0.0.0.0"] if socket.has_ipv6 else [])]
    for host in hosts:
        with pytest.raises(StartError, match="--insecure-noauth2-on-any-address"):
            serve._listening_socket(host, 0, loopback_only=True)
    for host in ("127.0.0.1", "127.8.9.1", "localhost"):
        serve._listening_socket(host, 0, loopback_only=True).close()


def addresses(name):
    """Return the host name and its first address, unless that is a loopback address."""
    with contextlib.suppress(OSError):
        first = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)[0][4][0]
        return [] if ipaddress.ip_address(first).is_loopback else [name, first]
    return []


def test_a_web_page_cannot_reach_it_by_a_name_that_resolves_to_it(tmp_path, environment):
    """The browser of this machine would send the page's requests as same-origin ones (DNS rebinding)."""
    hosts = {
        "rebound.example.org": 403,
        "127.0.0.1.example.org": 403,
        "192.0.2.1": 403,
        "localhost.": 200,
        "[::1]": 200,
    }
    with serving(tmp_path, environment) as (_, connection):
        for host, status in hosts.items():
            connection.request("GET", "/traits", headers={**ADMIN, "Host": f"{host}:{connection.port}"})
            reply = connection.getresponse()
            reply.read()
            assert reply.status == status, host
    with serving(tmp_path, environment, "--insecure-noauth2-on-any-address") as (_, connection):
        connection.request("GET", "/traits", headers={**ADMIN, "Host": "placement.example.org"})
        assert connection.getresponse().status == 200


def test_bodies_above_the_limit_are_not_buffered(tmp_path, environment):
    """This needs no credentials: the server reads a body before it calls the service."""
    with serving(tmp_path, environment) as (_, connection):
        head = b"POST /resource_providers HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", connection.port), timeout=children.PATIENCE) as client:
            client.sendall(head + b"Content-Length: 100000000\r\n\r\n" + b" " * 1000)
            assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_an_unreachable_database_is_reported(environment):
    port = children.free_port()
    for url in (f"mysql+pymysql://u:secret@127.0.0.1:{port}/p", f"postgresql+psycopg://u:secret@127.0.0.1:{port}/p"):
        line = refusal(environment, "--port", "0", "--database", url)
        assert "does not answer" in line or "not reach" in line or "cannot" in line.lower()
        assert "secret" not in line


def test_a_database_that_is_not_a_url_is_refused(environment):
    assert "connection" in refusal(environment, "--port", "0", "--database", "var/placement")


def test_a_database_without_schema_or_with_an_older_one_is_refused(environment, database_url):
    server = not database_url.startswith("sqlite")
    variables = {"OS_PLACEMENT_DATABASE__CONNECTION": database_url, "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "false"}
    assert "placement-manage db sync" in refusal(environment, "--port", "0", **variables)
    if server:
        assert "placement-manage db sync" in refusal(environment, "--port", "0", "--database", database_url)
    with opened(database_url) as database:
        made.sync(database.engine)
        schema.stamp(database.engine, "a082b8bb98d0")
    line = refusal(environment, "--port", "0", **variables)
    assert "a082b8bb98d0" in line
    assert "placement-manage db sync" in line


@pytest.mark.parametrize(
    ("section", "option", "value"),
    [
        ("api", "auth_strategy", "trust"),
        ("placement", "allocation_conflict_retry_count", "many"),
        ("placement_database", "max_retries", "-2"),
    ],
)
def test_an_invalid_option_value_is_reported(tmp_path, environment, section, option, value):
    settings = {"api": {"auth_strategy": "noauth2"}, "placement_database": {"connection": f"sqlite:///{tmp_path}/p"}}
    settings.setdefault(section, {})[option] = value
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {setting}\n" for name, setting in options.items())
        for group, options in settings.items()
    ]
    (tmp_path / "placement.conf").write_text("".join(lines))
    line = refusal(environment, "--port", "0", "--config-file", str(tmp_path / "placement.conf"))
    assert option in line
    assert "placement.conf" in line


def test_a_missing_configuration_is_reported(tmp_path, environment):
    assert str(tmp_path) in refusal(environment, "--port", "0", "--config-file", str(tmp_path / "placement.conf"))


def test_a_configuration_replaces_the_built_in_one(tmp_path, environment):
    """A configured database is upgraded only on request; --database cannot be combined with a configuration."""
    (tmp_path / "placement.conf").write_text(
        f"[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = sqlite:///{tmp_path}/p\n"
    )
    assert "placement-manage db sync" in refusal(environment, "--port", "0", OS_PLACEMENT_CONFIG_DIR=str(tmp_path))
    line = refusal(environment, "--database", "sqlite:///x", "--config-file", str(tmp_path / "placement.conf"))
    assert "--database" in line
    with serving(
        tmp_path, {**environment, "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true"}, "--config-dir", str(tmp_path)
    ) as (
        greeting,
        connection,
    ):
        assert f"{tmp_path}/p" in greeting
        assert ask(connection, "GET", "/traits")[0] == 200


@pytest.mark.parametrize("backend", ["mariadb", "postgresql"], indirect=True)
def test_the_greeting_does_not_show_the_password(database_url):
    with running.embedded(database_url) as service:
        greeting = service.log.read_text()
    assert sa.make_url(database_url).password not in greeting
    assert "***" in greeting


def test_the_greeting_shows_the_full_path_of_the_file(tmp_path, environment):
    """The path in sqlite:///var/placement.sqlite is not /var/placement.sqlite."""
    with serving(tmp_path, environment) as (greeting, _):
        assert f" in {tmp_path}/var/placement.sqlite\n" in greeting


def test_the_greeting_shows_an_ipv6_address_as_in_urls_and_no_query(tmp_path, environment):
    """A query may contain a password, too."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with serving(tmp_path, environment, "--host", "::1", "--database", "sqlite:///p?timeout=7") as (greeting, _):
        assert "http://[::1]:" in greeting
        assert "timeout" not in greeting


def test_numbers_at_their_bounds_are_accepted():
    assert [program.port(text) for text in ("0", "65535")] == [0, 65535]
    assert program.number("1") == 1


def test_proxy_headers_are_evaluated_if_configured(tmp_path, environment):
    (tmp_path / "placement.conf").write_text(
        "[api]\nauth_strategy = noauth2\n[oslo_middleware]\nenable_proxy_headers_parsing = true\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/p\nsync_on_startup = true\n"
    )
    with serving(tmp_path, environment, "--config-dir", str(tmp_path)) as (_, connection):
        sent = {"Content-Type": "application/json", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/placement"}
        connection.request("POST", "/resource_providers", '{"name": "n"}', {**ADMIN, **sent})
        location = connection.getresponse().headers["Location"]
        assert location.startswith(f"https://127.0.0.1:{connection.port}/placement/resource_providers/")


def test_no_token_is_suggested_if_tokens_are_validated(tmp_path, environment):
    (tmp_path / "placement.conf").write_text(
        "[api]\nauth_strategy = keystone\n"
        f"[keystone_authtoken]\nauth_type = password\nauth_url = {closed.URL}/\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/p\nsync_on_startup = true\n"
    )
    with serving(tmp_path, environment, "--config-dir", str(tmp_path)) as (greeting, connection):
        assert "Placement serves" in greeting
        assert "curl" not in greeting
        connection.request("GET", "/resource_providers", headers={"X-Auth-Token": "admin"})
        assert connection.getresponse().status in (401, 503)


def test_a_file_contains_the_address_while_the_service_runs(tmp_path, environment):
    address = tmp_path / package.ADDRESS_FILE
    with serving(tmp_path, environment) as (_, first):
        assert address.read_text() == f"http://127.0.0.1:{first.port}\n"
        address.write_text("http://another\n")  # like another service that has started in this directory
    assert address.read_text() == "http://another\n"
    with serving(tmp_path, environment):
        pass
    assert not address.exists()


def test_the_demonstration_cannot_be_combined_with_a_database_or_a_configuration(environment, tmp_path):
    assert "cannot be combined with a database or a configuration" in refusal(
        environment, "--demo", "--database", "sqlite://"
    )
    assert "cannot be combined with a database or a configuration" in refusal(
        environment, "--demo", "--config-dir", str(tmp_path)
    )
