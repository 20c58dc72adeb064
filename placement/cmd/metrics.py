"""placement-metrics: exports the metrics of all processes of the service on this machine to Prometheus.

The processes keep their metrics in the directory of [metrics]directory; this program serves the sums at
http://HOST:PORT/metrics.  Run it beside the service, as the same user: with uWSGI, by
"attach-daemon = /.../placement-metrics DIRECTORY" in its file.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

import waitress

from placement import package
from placement.cmd import program


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from placement.metrics.directory import Directory
        from placement.metrics.page import Page
    except ImportError:
        print(f"placement-metrics: prometheus_client is missing: {package.install('metrics')}", file=sys.stderr)
        return 1
    try:
        server = waitress.create_server(
            Page(Directory(arguments.directory)), host=arguments.host, port=arguments.port, threads=2
        )
    except (OSError, ValueError) as reason:
        print(f"placement-metrics: {reason}", file=sys.stderr)
        return 1
    print(f"Metrics of {arguments.directory} at http://{arguments.host}:{arguments.port}/metrics", flush=True)
    server.run()  # returns at a signal
    server.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placement-metrics", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=package.version())
    parser.add_argument("directory", help="the directory of the service's option [metrics]directory")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=9178, type=program.port, help="the port to listen on (default: %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
