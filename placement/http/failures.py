"""Failures that only HTTP knows, the status of every failure, and the reply that reports one."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from wsgiref.types import StartResponse, WSGIEnvironment

from placement import errors
from placement.http.environ import API, FAILURE


class NoSuchRoute(errors.NotFound):
    """No such path, or not in this version."""

    template = ""


class MethodNotAllowed(errors.Failure):
    """The path has no such method.

    Args:
        allow: The methods that it has, for the Allow header; empty to leave the header out.
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
    template = "The request line or a header holds a control character, or the method is none."


class ForeignHost(errors.Forbidden):
    template = (
        "The service knows no client by a token, and answers only for the names of this machine: not for %(host)s."
    )


class LengthNotInteger(errors.BadRequest):
    template = "content-length header must be an integer"


class Unauthenticated(errors.Failure):
    """The request has no valid credentials.

    Args:
        challenge: The WWW-Authenticate header; empty to leave it out.
    """

    template = "The request has no credentials, or they are not accepted."

    def __init__(self, challenge: str = "") -> None:
        super().__init__()
        self.headers = (("www-authenticate", challenge),) if challenge else ()


class TooManyGuesses(errors.Failure):
    """An address sent too many wrong passwords.

    Args:
        seconds: When the next attempt is checked.
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
    """Refuses a dry run that would change something."""

    template = "This request has no dry run. Nothing was changed."


class InternalError(errors.Failure):
    """An exception that is no failure.  Its text goes to the log, not to the client."""

    template = "The service met an error that it did not expect. Its log has more under the id of this request."


_STATUS: dict[type[BaseException], HTTPStatus] = {
    errors.BadRequest: HTTPStatus.BAD_REQUEST,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.Forbidden: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    MethodNotAllowed: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Gone: HTTPStatus.GONE,
    errors.TooLarge: HTTPStatus(413),  # Python gave it, and the next one, another name in 3.13
    errors.TooLong: HTTPStatus(414),
    UnsupportedMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyGuesses: HTTPStatus.TOO_MANY_REQUESTS,
    errors.Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.Failure: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def status_of(failure: BaseException) -> HTTPStatus:
    """Return the status of a failure: that of its nearest kind."""
    return next(_STATUS[kind] for kind in type(failure).__mro__ if kind in _STATUS)


def respond(
    failure: errors.Failure,
    environ: WSGIEnvironment,
    start_response: StartResponse,
    more_headers: Iterable[tuple[str, str]] = (),
) -> Iterable[bytes]:
    """Send a reply that reports the failure, in the error document of the API that the path belongs to."""
    environ[FAILURE] = type(failure)
    status, headers, content = rendered(failure, environ)
    start_response(f"{status.value} {status.phrase}", [*headers, *more_headers])
    return [content]


def rendered(failure: errors.Failure, environ: WSGIEnvironment) -> tuple[HTTPStatus, list[tuple[str, str]], bytes]:
    """Return the status, the headers and the content of the reply that reports the failure."""
    status = status_of(failure)
    content_type, content = environ[API].error_documents.render(failure, status, environ)
    if environ["REQUEST_METHOD"] == "HEAD":
        content = b""
    headers = [("content-length", str(len(content)))]
    if content:
        headers.append(("content-type", content_type))
    headers.extend(failure.headers)
    return status, headers, content
