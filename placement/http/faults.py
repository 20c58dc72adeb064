"""From a failure to the reply that reports it (docs: api-accept, api-errors, api-error-codes)."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from webob.acceptparse import create_accept_header

from placement import errors
from placement import microversion as mv
from placement.http.environ import FAILURE, REQUEST_ID, VERSION
from placement.http.response import JSON

# --- failures that only HTTP knows -----------------------------------------------------------------------------------


class NoSuchRoute(errors.NotFound):
    """No such path, or not in this version."""

    says = ""


class MethodNotAllowed(errors.Failure):
    """``allow`` lists what is allowed; without it the Allow header is left out."""

    says = ""

    def __init__(self, allow: str = "") -> None:
        super().__init__()
        if allow:
            self.headers = (("allow", allow),)
            self.sentence = "The method specified is not allowed for this resource."


class OnlyJSON(errors.NotAcceptable):
    says = "Only application/json is provided"


class UnsupportedMediaType(errors.Failure):
    says = "The media type %(type)s is not supported, use application/json"


class NotWellFormed(errors.BadRequest):
    says = "The request line or a header holds a control character, or the method is none."


class ForeignHost(errors.Forbidden):
    says = "The service knows no client by a token, and answers only for the names of this machine: not for %(host)s."


class LengthNotInteger(errors.BadRequest):
    says = "content-length header must be an integer"


class Unauthenticated(errors.Failure):
    """The request has no credentials that are good; ``challenge`` is the WWW-Authenticate header, if there is one."""

    says = "The request has no credentials, or they are not accepted."

    def __init__(self, challenge: str = "") -> None:
        super().__init__()
        self.headers = (("www-authenticate", challenge),) if challenge else ()


class TooManyGuesses(errors.Failure):
    """``seconds`` is when the next attempt is looked at."""

    says = "Too many wrong passwords came from this address. Please try again in %(seconds)s seconds."

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.headers = (("retry-after", str(seconds)),)


class ContentTypeMissing(errors.BadRequest):
    says = "content-type header required when content-length > 0"


class InternalError(errors.Failure):
    """Anything that nobody expected.  Its text goes to the log, not to the client."""

    says = "The service met an error that it did not expect. Its log has more under the id of this request."


# --- what they are in HTTP -------------------------------------------------------------------------------------------

_STATUS: dict[type[BaseException], HTTPStatus] = {
    errors.BadRequest: HTTPStatus.BAD_REQUEST,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.TooLarge: HTTPStatus(413),  # Python gave it, and the next one, another name in 3.13
    errors.TooLong: HTTPStatus(414),
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyGuesses: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Failure: HTTPStatus.INTERNAL_SERVER_ERROR,
}

# The sentence for the status and the place of the message, blanks included, are as clients of this API know them.  They
# look for parts of a detail, and for its last line.
_USUAL = "%s\n\n {message}  "
_DETAILS = {
    400: _USUAL % "The server could not comply with the request since it is either malformed or otherwise incorrect.",
    401: _USUAL % "The service does not know who sends this request.",
    403: _USUAL % "Access was denied to this resource.",
    404: _USUAL % "The resource could not be found.",
    405: "The method {method} is not allowed for this resource. \n\n {message}",
    406: (
        "The resource could not be generated that was acceptable to your browser (content of type {accept}. "
        "\n\n {message}"
    ),
    409: _USUAL % "There was a conflict when trying to complete your request.",
    413: _USUAL % "The body of your request was too large for this server.",
    414: _USUAL % "The request URI was too long for this server.",
    415: "The request media type {content_type} is not supported by this server. \n\n {message}",
    429: _USUAL % "The server does not look at this request for now.",
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

#: Characters of a sentence that are told: it may repeat what was sent, which may be megabytes.
_LONGEST = 24_000

_TAG = re.compile(r"<[^<>]*>")  # never looks at a character twice, however many begin and do not end


def status_of(failure: BaseException) -> HTTPStatus:
    """The status of the nearest kind that the failure is of."""
    return next(_STATUS[kind] for kind in type(failure).__mro__ if kind in _STATUS)


def respond(failure: errors.Failure, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with the failure, in the form that the client likes best."""
    environ[FAILURE] = type(failure)
    status = status_of(failure)
    content_type, content = render(failure, status, environ)
    headers = [("content-length", str(len(content)))]
    if content:
        headers.append(("content-type", content_type))
    headers.extend(failure.headers)
    start_response(f"{status.value} {status.phrase}", headers)
    return [content]


def render(failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> tuple[str, bytes]:
    """The content type and the content of the answer; HEAD gets none."""
    form = _form(environ.get("HTTP_ACCEPT"))
    if environ["REQUEST_METHOD"] == "HEAD":
        return form, b""
    if form == JSON:
        return form, json.dumps({"errors": [_problem(failure, status, environ)]}).encode()
    title = f"{status.value} {status.phrase}"
    if form == "text/html":
        explanation, message = _detail(_short(failure.sentence), status, environ).split("\n\n", 1)
        text = _PAGE.format(
            status=title, detail=f"{html.escape(explanation)}<br /><br />\n{html.escape(message.strip())}"
        )
    else:
        text = f"{title}\n\n{_detail(_line(failure.sentence), status, environ)}"
    return f"{form}; charset=UTF-8", text.encode(errors="backslashreplace")


def _problem(failure: errors.Failure, status: HTTPStatus, environ: WSGIEnvironment) -> dict[str, Any]:
    problem: dict[str, Any] = {
        "status": status.value,
        "title": status.phrase,
        "detail": _detail(_line(failure.sentence), status, environ),
    }
    if isinstance(failure, errors.UnacceptableVersion):
        problem["max_version"] = str(mv.LATEST)
        problem["min_version"] = str(mv.MINIMUM)
    elif environ.get(VERSION, mv.MINIMUM) >= mv.ERROR_CODES:
        problem["code"] = failure.code
    problem["request_id"] = environ.get(REQUEST_ID)
    return problem


def _detail(message: str, status: HTTPStatus, environ: WSGIEnvironment) -> str:
    return _DETAILS[status].format(
        message=message,
        method=environ["REQUEST_METHOD"],
        accept=environ.get("HTTP_ACCEPT") or JSON,
        content_type=environ.get("CONTENT_TYPE") or None,
    )


def _line(sentence: str) -> str:
    """The sentence in one line and without tags, for a client may show it in a page."""
    return _TAG.sub("", _short(sentence).replace("\n", " "))


def _short(sentence: str) -> str:
    """The sentence without its middle, if it is long: what clients look for is at the beginning or at the end."""
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:_LONGEST]} ... {sentence[-_LONGEST // 8 :]}"


def _form(accept: str | None) -> str:
    """The best of what an error can be written in; JSON unless the client has a wish."""
    if not accept or accept in ("*/*", JSON):
        return JSON
    offers = create_accept_header(accept).acceptable_offers(["text/html", JSON])
    return offers[0][0] if offers else "text/plain"
