"""What Prometheus is shown: a WSGI application with one page, ``/metrics``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placement.metrics.directory import Directory


class Page:
    """Shows the numbers of a directory to whoever asks: they name no user, no consumer and no provider."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """200 with the numbers, 404 for another page, 405 for another method."""
        if environ["PATH_INFO"] != "/metrics":
            return _say(start_response, "404 Not Found", "The page is /metrics.\n")
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _say(start_response, "405 Method Not Allowed", "It can be read.\n", ("Allow", "GET, HEAD"))
        text, content_type = self._directory.text(environ.get("HTTP_ACCEPT", ""))
        start_response("200 OK", [("Content-Type", content_type), ("Content-Length", str(len(text)))])
        return [text if environ["REQUEST_METHOD"] == "GET" else b""]


def _say(start_response: Any, status: str, words: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(words))), *headers])
    return [words.encode()]
