"""placement-serve: the service in one process, for one machine, a trial or a test.

Without a configuration it keeps its data in a SQLite file, makes and renews the schema there, and believes its clients
who they are (noauth2), on the loopback interface only.  A configuration is read when it is named, by --config-file,
--config-dir or $OS_PLACEMENT_CONFIG_DIR, and not because it lies in /etc; what it says then holds.
"""

from __future__ import annotations

import argparse
import errno
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa
import waitress
from oslo_config import cfg
from oslo_log import log as oslo_log

from placement import conf as options
from placement import deploy, log
from placement.cmd import program
from placement.errors import StartError
from placement.middleware.allowed_hosts import allowed_hosts
from placement.middleware.http_syntax import HttpSyntax

DATABASE = "sqlite:///var/placement.sqlite"
ANYWHERE = "--insecure-noauth2-on-any-address"

GREETING = """\
Placement serves on {url} and keeps its data in {database}
"""
TRY_IT = """\
The token is "admin".  Try:

  curl -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement latest' {url}/resource_providers

"""
GOODBYE = "Ctrl-C ends it; the data stays."


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code, once the service was told to end."""
    told = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        conf = _configured(told)
        open_door = conf.api.auth_strategy == "noauth2" and not told.anywhere
        with _listening(told.host, told.port, loopback_only=open_door) as listening:
            layers = _for_this_machine(told.host) if open_door else deploy.LAYERS
            _serve(conf, listening, told.threads, layers)
    except (StartError, cfg.Error) as reason:
        print(f"placement-serve: {' '.join(str(reason).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placement-serve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=8778, type=program.port, help="the port to listen on (default: %(default)s)")
    parser.add_argument(
        "--threads", default=8, type=program.number, help="requests served at a time (default: %(default)s)"
    )
    parser.add_argument("--database", metavar="URL", help=f"where the data is (default: {DATABASE})")
    parser.add_argument("--config-file", metavar="PATH", action="append", help="configuration, as in placement.conf")
    parser.add_argument("--config-dir", metavar="DIR", action="append", help="a directory of such files")
    parser.add_argument(ANYWHERE, dest="anywhere", action="store_true", help="let whoever reaches us do anything")
    return parser


def _configured(told: argparse.Namespace) -> cfg.ConfigOpts:
    """The configuration that was named, or that of a service that has none."""
    files = [f"--config-file={path}" for path in told.config_file or ()]
    files += [f"--config-dir={path}" for path in told.config_dir or ()]
    if not files and not os.environ.get(options.CONFIG_DIR_VARIABLE):
        conf = _embedded(told.database)
    elif told.database:
        raise StartError("--database does not go with a configuration: name the database there.")
    else:
        conf = options.load(files)
    log.set_up(conf, options.PROJECT)
    return conf


def _embedded(database: str | None) -> cfg.ConfigOpts:
    """What holds without a configuration: only the environment may say otherwise (OS_<GROUP>__<OPTION>)."""
    conf = cfg.ConfigOpts()
    options.register(conf)
    oslo_log.register_options(conf)
    conf.set_default("default_log_levels", [*oslo_log.get_default_log_levels(), "alembic=WARN"])
    conf.set_default("auth_strategy", "noauth2", group="api")
    conf.set_default("connection", DATABASE, group="placement_database")
    conf.set_default("max_retries", 0, group="placement_database")
    if database:
        conf.set_override("connection", database, group="placement_database")
    conf([], project=options.PROJECT, default_config_files=[], default_config_dirs=[])
    options.check(conf)
    if conf.placement_database.connection.startswith("sqlite:///"):
        # A file of our own: no operator has to be asked before it is changed.
        conf.set_default("sync_on_startup", True, group="placement_database")
        _make_room(Path(conf.placement_database.connection.removeprefix("sqlite:///")).parent)
    return conf


def _make_room(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"No place for the database: {error}") from error


def _listening(host: str, port: int, *, loopback_only: bool) -> socket.socket:
    """A socket that accepts connections: clients that come while we start wait for their answer."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise StartError(f"--host {host}: {error.strerror}") from error
    if loopback_only and not ipaddress.ip_address(address[0]).is_loopback:
        raise StartError(
            f"With noauth2 whoever reaches {host} may do anything. Listen on 127.0.0.1, "
            f"set [api]auth_strategy = keystone, or insist with {ANYWHERE}."
        )
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(f"Port {port} of {host} is in use: choose another with --port.") from error
        raise StartError(f"Cannot listen on port {port} of {host}: {error.strerror}.") from error
    return listening


def _for_this_machine(host: str) -> deploy.Layers:
    """The layers of the service where every client on this machine may do anything."""
    at = deploy.LAYERS.index(HttpSyntax) + 1
    return (*deploy.LAYERS[:at], allowed_hosts(host), *deploy.LAYERS[at:])


def _serve(conf: cfg.ConfigOpts, listening: socket.socket, threads: int, layers: deploy.Layers) -> None:
    """Answer requests until a signal ends it."""
    server = waitress.create_server(
        deploy.loadapp(conf, layers=layers, threads=threads),
        sockets=[listening],
        threads=threads,
        max_request_body_size=conf.api.max_request_body_size,  # it reads a body before it is known who sends it
        clear_untrusted_proxy_headers=False,  # [oslo_middleware]enable_proxy_headers_parsing decides about them
    )
    host, port = listening.getsockname()[:2]
    url = f"http://[{host}]:{port}" if listening.family == socket.AF_INET6 else f"http://{host}:{port}"
    # Without a query, in which there may be a password too.
    database = sa.make_url(conf.placement_database.connection).set(query={}).render_as_string(hide_password=True)
    print(GREETING.format(url=url, database=database), end="")
    if conf.api.auth_strategy == "noauth2":
        print(TRY_IT.format(url=url), end="")
    print(GOODBYE, flush=True)
    server.run()
    server.close()


if __name__ == "__main__":
    sys.exit(main())
