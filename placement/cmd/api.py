"""placement-api: the service that the configuration describes, in one process, without a web server.

For a trial; web servers load the script placement-api for its application instead.  The configuration is read where the
service reads it: from $OS_PLACEMENT_CONFIG_DIR, or else from /etc/placement, unless --config-file or --config-dir names
another.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from oslo_config import cfg

from placement import conf as options
from placement import log
from placement.cmd import serve

#: The port of the script of this name that pbr made for OpenStack Placement.
PORT = 8000


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code."""
    return serve.run(_parser(), _configured, argv)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placement-api", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    serve.add_arguments(parser, PORT)
    return parser


def _configured(arguments: argparse.Namespace) -> cfg.ConfigOpts:
    conf = options.load(serve.files(arguments))
    log.set_up(conf, options.PROJECT)
    return conf


if __name__ == "__main__":
    sys.exit(main())
