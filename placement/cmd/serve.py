"""placement-serve: the service in one process, for one machine, a trial or a test.

Without a configuration it stores its data in a SQLite file, creates and upgrades the schema itself, serves only the
loopback interface, and does not authenticate clients (noauth2).  It reads a configuration only if --config-file,
--config-dir or $OS_PLACEMENT_CONFIG_DIR names one, and never from /etc by default.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import sqlalchemy as sa
import waitress
from oslo_config import cfg
from oslo_log import log as oslo_log

from placement import conf as options
from placement import deploy, extension, log, package
from placement.cmd import program
from placement.db.engine import dialects
from placement.errors import StartError
from placement.index.live import LiveIndex
from placement.middleware.allowed_hosts import allowed_hosts
from placement.middleware.mount import Mount

DATABASE = "sqlite:///var/placement.sqlite"
#: A named database, so that several connections of this process share it.
IN_MEMORY = "sqlite:///file:/demonstration?vfs=memdb&uri=true"
DEMO = "--demo"
ANYWHERE = "--insecure-noauth2-on-any-address"

GREETING = """\
Placement serves on {url} and stores its data in {database}
"""
TRY_IT = """\
The token is "admin".  Try:

  curl -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement latest' {url}/resource_providers

"""
GOODBYE = "Press Ctrl-C to stop; the data is kept."
DEMO_GOODBYE = "This is a demonstration. Press Ctrl-C to stop; the data is discarded."


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code."""
    return run(_parser(), _configuration, argv)


def run(
    parser: argparse.ArgumentParser,
    read_configuration: Callable[[argparse.Namespace], cfg.ConfigOpts],
    argv: Sequence[str] | None,
) -> int:
    """Serve until a signal; return the exit code.

    Args:
        parser: A parser with the arguments of ``add_arguments``.
        read_configuration: A function that returns the configuration for the parsed arguments.
        argv: The command line; None for sys.argv.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        arguments = parser.parse_args(argv)
        conf = read_configuration(arguments)
        unauthenticated = conf.api.auth_strategy == "noauth2" and not arguments.anywhere
        layers = _host_checking_layers(arguments.host) if unauthenticated else deploy.LAYERS
        with _listening_socket(arguments.host, arguments.port, loopback_only=unauthenticated) as listener:
            _serve(conf, listener, arguments, layers)
    except (StartError, cfg.Error) as reason:
        print(f"{parser.prog}: {' '.join(str(reason).split())}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placement-serve", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser, 8778)
    parser.add_argument(
        "--database", metavar="URL", help=f"the database (default: {DATABASE}, that is ./var/placement.sqlite)"
    )
    if any(declaration.demonstration for declaration in extension.installed_extensions().values()):
        parser.add_argument(
            DEMO,
            action="store_true",
            help="serve a small example cloud, with its data in memory",
        )
    return parser


def add_arguments(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the arguments for ``run``: address, port with this default, and configuration."""
    parser.add_argument("--version", action="version", version=package.version())
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=port, type=program.port, help="the port to listen on (default: %(default)s)")
    parser.add_argument(
        "--threads", default=8, type=program.number, help="requests served at a time (default: %(default)s)"
    )
    parser.add_argument("--config-file", metavar="PATH", action="append", help="a configuration file")
    parser.add_argument("--config-dir", metavar="DIR", action="append", help="a directory of configuration files")
    parser.add_argument(
        ANYWHERE, dest="anywhere", action="store_true", help="serve without authentication on any address"
    )
    parser.set_defaults(demo=False)


def file_arguments(arguments: argparse.Namespace) -> list[str]:
    """Return the command-line arguments that name the configuration files."""
    words = [f"--config-file={path}" for path in arguments.config_file or ()]
    return words + [f"--config-dir={path}" for path in arguments.config_dir or ()]


def _configuration(arguments: argparse.Namespace) -> cfg.ConfigOpts:
    """Return the configuration named by the arguments or the environment, or the built-in one."""
    named_files = file_arguments(arguments)
    if arguments.demo and (arguments.database or named_files):
        raise StartError(f"{DEMO} cannot be combined with a database or a configuration.")
    if arguments.demo:
        conf = _built_in_configuration(IN_MEMORY)
    elif not named_files and not os.environ.get(options.CONFIG_DIR_VARIABLE):
        conf = _built_in_configuration(arguments.database)
    elif arguments.database:
        raise StartError("--database cannot be combined with a configuration: set [placement_database]connection.")
    else:
        conf = options.load(named_files)
    log.set_up(conf, options.PROJECT)
    return conf


def _built_in_configuration(database: str | None) -> cfg.ConfigOpts:
    """Return the built-in configuration; only the environment can change it (OS_<GROUP>__<OPTION>)."""
    conf = cfg.ConfigOpts()
    options.register(conf)
    oslo_log.register_options(conf)
    conf.set_default("default_log_levels", [*oslo_log.get_default_log_levels(), "alembic=WARN"])
    conf.set_default("auth_strategy", "noauth2", group="api")
    for declaration in extension.installed_extensions().values():
        if declaration.is_optional:
            conf.set_default("enabled", True, group=declaration.name)
    conf.set_default("connection", DATABASE, group="placement_database")
    conf.set_default("max_retries", 0, group="placement_database")
    if database:
        conf.set_override("connection", database, group="placement_database")
    options.read(conf, [], **options.NO_FILES)
    options.check(conf)
    url = conf.placement_database.connection
    if url.startswith("sqlite:///"):
        # The file belongs to this command, which may upgrade it without asking an operator.
        conf.set_default("sync_on_startup", True, group="placement_database")
        file = package.ADDRESS_FILE if database == IN_MEMORY else Path(url.removeprefix("sqlite:///"))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(f"The directory of the database cannot be created: {error}") from error
    return conf


def _listening_socket(host: str, port: int, *, loopback_only: bool) -> socket.socket:
    """Return a listening socket; clients that connect during the start wait for their response."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise StartError(f"--host {host}: {error.strerror}") from error
    if loopback_only and not ipaddress.ip_address(address[0]).is_loopback:
        raise StartError(
            f"With noauth2 every client that can reach {host} has all rights. Listen on 127.0.0.1, "
            f"set [api]auth_strategy = keystone, or use {ANYWHERE}."
        )
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(f"Port {port} of {host} is in use: choose another with --port.") from error
        raise StartError(f"Cannot listen on port {port} of {host}: {error.strerror}.") from error
    return listener


def _host_checking_layers(host: str) -> deploy.Layers:
    """Return layers that refuse requests for hosts other than this machine, for a service without authentication."""
    guarded = functools.partial(Mount, check_host=allowed_hosts(host))
    return tuple(guarded if layer is Mount else layer for layer in deploy.LAYERS)


def _serve(conf: cfg.ConfigOpts, listener: socket.socket, arguments: argparse.Namespace, layers: deploy.Layers) -> None:
    """Serve requests until a signal."""
    application = deploy.loadapp(conf, layers=layers, threads=arguments.threads)
    if arguments.demo:
        demonstrations = [
            declaration.demonstration for declaration in extension.enabled(conf) if declaration.demonstration
        ]
        if not demonstrations:
            raise StartError(f"{DEMO} requires the extension loading: add it to [extensions]enabled.")
        with program.connected(conf) as database:
            extension.start(database, conf, LiveIndex(database))  # for the usage samples of the past
            for demonstrate in demonstrations:
                demonstrate(database, application)
    server = waitress.create_server(
        application,
        sockets=[listener],
        threads=arguments.threads,
        max_request_body_size=conf.api.max_request_body_size,  # bodies are read before clients are authenticated
        clear_untrusted_proxy_headers=False,  # left to [oslo_middleware]enable_proxy_headers_parsing
    )
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
    with _address_file(conf, url):
        _greet(conf, url, demonstration=arguments.demo)
        server.run()
    server.close()


def _greet(conf: cfg.ConfigOpts, url: str, *, demonstration: bool) -> None:
    print(GREETING.format(url=url, database=_place(conf.placement_database.connection)), end="")
    if conf.api.auth_strategy == "noauth2":
        print(TRY_IT.format(url=url), end="")
    for declaration in extension.enabled(conf):
        if declaration.greeting:
            print(declaration.greeting(conf, url), end="")
    print(DEMO_GOODBYE if demonstration else GOODBYE, flush=True)


@contextlib.contextmanager
def _address_file(conf: cfg.ConfigOpts, url: str) -> Iterator[None]:
    """Keep the URL in a file during the block, so that placement-ask in the same directory finds it.

    No file is written without noauth2, or if the directory of the built-in database does not exist or is read-only.
    """
    if conf.api.auth_strategy != "noauth2" or not package.ADDRESS_FILE.parent.is_dir():
        yield
        return
    with contextlib.suppress(OSError):
        package.ADDRESS_FILE.write_text(f"{url}\n")
    try:
        yield
    finally:
        # Another service may have started in this directory and replaced the file.
        with contextlib.suppress(OSError):
            if package.ADDRESS_FILE.read_text() == f"{url}\n":
                package.ADDRESS_FILE.unlink()


def _place(connection: str) -> str:
    """Return the location of the data: the full path of a SQLite file, or a URL without secrets."""
    url = sa.make_url(connection)
    if dialects.in_memory(url):
        return "memory"
    if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith("file:"):
        # The path in the URL sqlite:///var/x is relative, although it looks like /var/x.
        return str(Path(url.database).absolute())
    # The query string may also contain a password.
    return url.set(query={}).render_as_string(hide_password=True)


if __name__ == "__main__":
    sys.exit(main())
