"""placement-api: the configured service in one process, without a web server.

Intended for a trial; web servers load this script as a WSGI application instead.  The configuration is read from
$OS_PLACEMENT_CONFIG_DIR or /etc/placement, unless --config-file or --config-dir names another one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from oslo_config import cfg

from placement import conf as options
from placement import log
from placement.cmd import serve

#: The default port of OpenStack Placement's script of this name.
PORT = 8000


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code."""
    return serve.run(_parser(), _configuration, argv)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placement-api", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    serve.add_arguments(parser, PORT)
    return parser


def _configuration(arguments: argparse.Namespace) -> cfg.ConfigOpts:
    conf = options.load(serve.file_arguments(arguments))
    log.set_up(conf, options.PROJECT)
    return conf


if __name__ == "__main__":
    sys.exit(main())
