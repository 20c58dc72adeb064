"""Code shared by the commands: configuration, database, argument types, and reporting of failures."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence

from oslo_config import cfg
from oslo_log import log as oslo_log
from sqlalchemy import exc

from placement import conf as options
from placement import errors, extension, log, package
from placement.db.connect import connect
from placement.db.database import Database
from placement.db.engine import driver_errors
from placement.db.writes import author
from placement.db.writes.author import Author

#: Exit codes of processes that SIGINT and SIGPIPE end.
INTERRUPTED, UNREAD = 130, 141

Commands = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None]


def read_configuration(prog: str, argv: Sequence[str], add_commands: Commands) -> cfg.ConfigOpts:
    """Read the configuration from files and a command line; its option ``command`` is the parsed command."""
    conf = cfg.ConfigOpts()
    options.register(conf)
    oslo_log.register_options(conf)
    conf.register_cli_opt(cfg.SubCommandOpt("command", title="commands", dest="command", handler=add_commands))
    # The caller of a command sees its failure and can repeat it; the service has to retry by itself.
    conf.set_default("max_retries", 0, group="placement_database")
    # Scripts parse a command's stdout, so the log goes to stderr.
    conf.set_default("use_stderr", True)
    options.read(conf, argv, prog=prog, version=package.version())
    options.check(conf)
    log.set_up(conf, options.PROJECT)
    return conf


def port(text: str) -> int:
    """Parse a TCP port for argparse; 0 means any free port."""
    return number(text, 0, 65535)


def number(text: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Parse an integer from ``minimum`` to ``maximum`` for argparse."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer") from None
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"from {minimum} to {maximum}" if maximum is not None else f"at least {minimum}"
        raise argparse.ArgumentTypeError(f"{value} is out of range: {bounds}")
    return value


def exit_code(prog: str, work: Callable[[], int], failed: int) -> int:
    """Return the exit code of ``work()``; on a failure print the reason on one line to stderr and return ``failed``.

    After SIGINT, or if the reader of stdout has exited, return the exit code of a process that the signal killed.
    """
    try:
        code = work()
        sys.stdout.flush()
        return code
    except SystemExit as ended:
        # argparse has printed help, version or usage.
        return int(ended.code or 0)
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Python would try to flush stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (cfg.Error, errors.SchemaError) as error:
        sentence = str(error)
    except errors.Failure as failure:
        reason = driver_errors.cause_of(failure)
        sentence = f"{failure} ({reason})" if reason else str(failure)
        if isinstance(failure, (errors.DatabaseRefuses, errors.DatabaseUnavailable)):
            sentence += options.WHICH_DATABASE
    except exc.DBAPIError as error:
        sentence = driver_errors.message(error)
    except (exc.ArgumentError, ModuleNotFoundError) as error:
        sentence = options.connection_finding(error)
    print(f"{prog}: {' '.join(sentence.split())}", file=sys.stderr)
    return failed


@contextlib.contextmanager
def connected(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """Provide the configured database, as soon as it responds."""
    database = connect(conf, unbounded=True)
    group = conf.placement_database
    try:
        extension.attach(database, conf)
        database.wait_until_reachable(group.max_retries, group.retry_interval)
        with author.acting_as(_operator(conf)):
            yield database
    finally:
        database.dispose()


def _operator(conf: cfg.ConfigOpts) -> Author:
    """Return the author of a command's writes: the operating-system user that runs it."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    # placement-serve --demo defines no commands.
    route = conf.command.name if "command" in conf else None
    return Author(user=user, client=socket.gethostname(), api=conf.prog, route=route)
