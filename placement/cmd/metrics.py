"""placement-metrics: export the metrics of all service processes on this machine to Prometheus.

The processes keep their metrics in the directory [metrics]directory; this command serves the sums at
http://HOST:PORT/metrics.  Run it beside the service, as the same user; with uWSGI, for example by
"attach-daemon = /.../placement-metrics DIRECTORY" in its configuration.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import waitress

from placement import package
from placement.cmd import program

if TYPE_CHECKING:
    from placement.metrics.directory import Directory


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal; return the exit code."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from placement.metrics.directory import Directory
    except ImportError:
        print(
            f"placement-metrics: prometheus_client is not installed: {package.install_command('metrics')}",
            file=sys.stderr,
        )
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


class Page:
    """The page of a directory's metrics, without authentication: they name no user, consumer or provider."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Respond with the metrics (200), or with 404 for another path and 405 for another method."""
        if environ["PATH_INFO"] != "/metrics":
            return _reply(start_response, "404 Not Found", "The page is /metrics.\n")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _reply(
                start_response, "405 Method Not Allowed", "The methods are GET and HEAD.\n", ("Allow", "GET, HEAD")
            )
        text, content_type = self._directory.text(environ.get("HTTP_ACCEPT", ""))
        start_response("200 OK", [("Content-Type", content_type), ("Content-Length", str(len(text)))])
        return [text if environ["REQUEST_METHOD"] == "GET" else b""]


def _reply(start_response: Any, status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(text))), *headers])
    return [text.encode()]


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
