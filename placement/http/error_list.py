"""Error documents of the OpenStack API guidelines: a JSON list of errors, an HTML page, or plain text.

docs: api-accept, api-errors, api-error-codes.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from wsgiref.types import WSGIEnvironment

from webob.acceptparse import create_accept_header

from placement import errors
from placement.http.environ import API, REQUEST_ID, VERSION
from placement.http.response import JSON
from placement.version_history import Version

# Clients match parts of the detail and its last line: wording, whitespace and position of the message are fixed.
_USUAL = "%s\n\n {message}  "
_DETAILS = {
    400: _USUAL % "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: _USUAL % "The request was not authenticated.",
    403: _USUAL % "Access was denied to this resource.",
    404: _USUAL % "The resource could not be found.",
    405: "The method {method} is not allowed for this resource. \n\n {message}",
    406: (
        "The resource could not be generated that was acceptable to your browser (content of type {accept}. "
        "\n\n {message}"
    ),
    409: _USUAL % "There was a conflict when trying to complete your request.",
    410: _USUAL % "The requested data is no longer available.",
    413: _USUAL % "The body of your request was too large for this server.",
    414: _USUAL % "The request URI was too long for this server.",
    415: "The request media type {content_type} is not supported by this server. \n\n {message}",
    429: _USUAL % "The server does not accept this request at the moment.",
    500: _USUAL % "The server has either erred or is incapable of performing the requested operation.",
    503: _USUAL % "The server is currently unavailable. Please try again at a later time.",
}

_PAGE = """\
<html>
 <head>
  <title>{status}</title>
 </head>
 <body>
  <h1>{status}</h1>
  {detail}
 </body>
</html>"""

#: Characters of a sentence shown in full; a sentence may quote megabytes of input.
_MAX_SENTENCE = 24_000

_TAG = re.compile(r"<[^<>]*>")  # linear even if many tags are opened and none is closed


@dataclass(frozen=True, slots=True)
class ErrorList:
    """The error documents of an API with microversions.

    Attributes:
        minimum: The oldest version, reported when a version is refused.
        maximum: The newest version, reported when a version is refused.
        codes_since: The first version whose errors have a code.
    """

    minimum: Version
    maximum: Version
    codes_since: Version

    def render(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> tuple[str, bytes]:
        """Return the content type that the client prefers, and the body."""
        content_type = _preferred_type(environ.get("HTTP_ACCEPT"))
        if content_type == JSON:
            document = {**failure.members, "errors": [self._error(failure, status, environ)]}
            return content_type, json.dumps(document).encode()
        title = f"{status.value} {status.phrase}"
        if content_type == "text/html":
            paragraphs = self._detail(failure, _shorten, status, environ).split("\n\n", 1)
            html_detail = "<br /><br />\n".join(html.escape(paragraph.strip()) for paragraph in paragraphs)
            text = _PAGE.format(status=title, detail=html_detail)
        else:
            text = f"{title}\n\n{self._detail(failure, _line, status, environ)}"
        return f"{content_type}; charset=UTF-8", text.encode(errors="backslashreplace")

    def _error(self, failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> dict[str, Any]:
        error: dict[str, Any] = {
            "status": status.value,
            "title": status.phrase,
            "detail": self._detail(failure, _line, status, environ),
        }
        if isinstance(failure, errors.UnacceptableVersion):
            error["max_version"] = str(self.maximum)
            error["min_version"] = str(self.minimum)
        elif self._version(environ) >= self.codes_since:
            error["code"] = failure.code
        error["request_id"] = environ.get(REQUEST_ID)
        return error

    def _detail(
        self, failure: errors.Failure, form: Callable[[str], str], status: HTTPStatus, environ: WSGIEnvironment
    ) -> str:
        """Return the detail: the fixed text of the status with the failure's sentence, formatted by ``form``."""
        return _DETAILS[status].format(
            message=form(failure.sentence),
            method=environ["REQUEST_METHOD"],
            accept=environ.get("HTTP_ACCEPT") or JSON,
            content_type=environ.get("CONTENT_TYPE") or None,
        )

    def _version(self, environ: WSGIEnvironment) -> Version:
        """Return the version of the request, negotiated here if that has not happened yet."""
        version: Version | None = environ.get(VERSION)
        if version is None:
            with contextlib.suppress(errors.Failure):
                version = environ[API].versioning.negotiate(environ)
        return version or self.minimum


def _line(sentence: str) -> str:
    """Return the sentence on one line and without tags, because a client may show it in a page."""
    return _TAG.sub("", _shorten(sentence).replace("\n", " "))


def _shorten(sentence: str) -> str:
    """Return the sentence, with its middle elided if it is long: clients match its beginning and its end."""
    if len(sentence) <= _MAX_SENTENCE:
        return sentence
    return f"{sentence[:_MAX_SENTENCE]} ... {sentence[-_MAX_SENTENCE // 8 :]}"


def _preferred_type(accept: str | None) -> str:
    """Return the preferred media type: JSON without a preference, plain text if neither HTML nor JSON is accepted."""
    if not accept or accept in ("*/*", JSON):
        return JSON
    offers = create_accept_header(accept).acceptable_offers(["text/html", JSON])
    return offers[0][0] if offers else "text/plain"
