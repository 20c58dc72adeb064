"""The HTTP page for Prometheus: a WSGI application that serves ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement.metrics.directory import Directory


class Page:
    """Serves the metrics of a directory, without authentication: they name no user, consumer or provider."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer 200 with the metrics, 404 for another path, 405 for another method."""
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
