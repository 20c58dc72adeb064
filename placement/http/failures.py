"""Failures specific to HTTP, the status of every failure, and the response that reports one."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement.http.environ import API, FAILURE


class NoSuchRoute(errors.NotFound):
    """The path does not exist in this version."""

    template = ""


class MethodNotAllowed(errors.Failure):
    """The path does not support the method.

    Args:
        allow: The supported methods, for the Allow header; empty to omit the header.
    """

    template = ""

    def __init__(self, allow: str = "") -> None:
        super().__init__()
        if allow:
            self.headers = (("allow", allow),)
            self.sentence = "The method specified is not allowed for this resource."


class OnlyJSON(errors.NotAcceptable):
    template = "Only application/json is provided"


class UnsupportedMediaType(errors.Failure):
    template = "The media type %(type)s is not supported, use application/json"


class NotWellFormed(errors.BadRequest):
    template = "The request line or a header contains a control character, or the method is invalid."


class ForeignHost(errors.Forbidden):
    template = (
        "The host %(host)s is not allowed: without authentication, the service accepts only the names of this machine."
    )


class LengthNotInteger(errors.BadRequest):
    template = "content-length header must be an integer"


class Unauthenticated(errors.Failure):
    """The request has no valid credentials.

    Args:
        challenge: The WWW-Authenticate header; empty to omit it.
    """

    template = "The request has no credentials, or they are not accepted."

    def __init__(self, challenge: str = "") -> None:
        super().__init__()
        self.headers = (("www-authenticate", challenge),) if challenge else ()


class TooManyGuesses(errors.Failure):
    """An address sent too many wrong passwords.

    Args:
        seconds: Seconds until the next attempt is checked.
    """

    template = "Too many wrong passwords came from this address. Please try again in %(seconds)s seconds."

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds=seconds)
        self.headers = (("retry-after", str(seconds)),)


class ForeignPage(errors.Forbidden):
    template = "A page of another origin sent this request."


class ContentTypeMissing(errors.BadRequest):
    template = "content-type header required when content-length > 0"


class InvalidDryRun(errors.BadRequest):
    template = "Invalid dry_run: %(value)s is neither true nor false."


class NoDryRun(errors.BadRequest):
    """The endpoint does not support dry runs."""

    template = "This request does not support dry runs. Nothing was changed."


class InternalError(errors.Failure):
    """An exception other than a Failure.  Its text is logged, not sent to the client."""

    template = "The service encountered an unexpected error. Its log has the details under the id of this request."


_STATUS: dict[type[BaseException], HTTPStatus] = {
    errors.BadRequest: HTTPStatus.BAD_REQUEST,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Gone: HTTPStatus.GONE,
    errors.TooLarge: HTTPStatus(413),  # by number: Python 3.13 renamed 413 and 414
    errors.TooLong: HTTPStatus(414),
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyGuesses: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Failure: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def status_of(failure: BaseException) -> HTTPStatus:
    """Return the HTTP status of a failure: the status of the first class in its MRO that has one."""
    return next(_STATUS[kind] for kind in type(failure).__mro__ if kind in _STATUS)


def respond(
    failure: errors.Failure,
    environ: WSGIEnvironment,
    start_response: StartResponse,
    more_headers: Iterable[tuple[str, str]] = (),
) -> Iterable[bytes]:
    """Send a response that reports the failure in the error document of the path's API."""
    environ[FAILURE] = type(failure)
    status, headers, content = render(failure, environ)
    start_response(f"{status.value} {status.phrase}", [*headers, *more_headers])
    return [content]


def render(failure: errors.Failure, environ: WSGIEnvironment) -> tuple[HTTPStatus, list[tuple[str, str]], bytes]:
    """Return the status, the headers and the body of the response that reports the failure."""
    status = status_of(failure)
    content_type, content = environ[API].error_documents.render(failure, status, environ)
    if environ["REQUEST_METHOD"] == "HEAD":
        content = b""
    headers = [("content-length", str(len(content)))]
    if content:
        headers.append(("content-type", content_type))
    headers.extend(failure.headers)
    return status, headers, content
