"""Exceptions.

PlacementError
    NoReply             no response, despite retries
    NoToken             the Identity service returned no token
    LeaseLost           the lease has expired; another consumer may hold its resources
    ErrorReply          the service refused the request
        BadRequest, Unauthenticated, Forbidden, TooManyRequests, Unavailable
        NotFound
            NothingHeld     the consumer holds nothing
        Gone
            PositionLost    the history does not continue from this position
        Conflict
            Refused         a request of a claim was refused; also a result in ``Client.claims``
                NoRoom, Undecided, HeldOtherwise, NothingPlaced
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from placement_client.steps import Reply

if TYPE_CHECKING:
    from placement_client.records import Explanation

#: The code of a conflict with a concurrent request; a retry may succeed.
CONCURRENT_UPDATE = "placement.concurrent_update"
#: Maximum number of bytes shown of a response that is not from the service.
_MAX_SHOWN = 200


class PlacementError(Exception):
    """The base class of the exceptions of this package."""


class NoReply(PlacementError):
    """The service did not respond: a request that writes may or may not have taken effect."""


class NoToken(PlacementError):
    """The Identity service returned no token; ``__cause__`` is the reason.

    Attributes:
        may_pass: Whether a retry may succeed: the Identity service was not reached, or failed.
    """

    def __init__(self, reason: str, may_pass: bool = False) -> None:
        super().__init__(reason, may_pass)
        self.may_pass = may_pass

    def __str__(self) -> str:
        return str(self.args[0])


class LeaseLost(PlacementError):
    """A lease has expired or may have: another consumer may hold its resources."""


class ErrorReply(PlacementError):
    """The service refused a request.

    Attributes:
        status: The HTTP status.
        code: The machine-readable code, such as ``placement.v1.no_room``; None without one.
        title: The name of the HTTP status.
        detail: The reason, for people.
        request_id: The id of the request in the log of the service.
        field: The invalid field of the request, such as ``requests[0].consumer``; None without one.
        expected: Valid values of the field.
    """

    def __init__(self, status: int, error: Mapping[str, Any], request_id: str | None = None) -> None:
        super().__init__(status, error, request_id)
        self.status = status
        self.code: str | None = error.get("code")
        self.title: str = error.get("title") or _phrase(status)
        # In the Placement API, the first paragraph is the same for all errors with the status.
        general, _, specific = str(error.get("detail", "")).partition("\n\n")
        self.detail = specific.strip() or general.strip()
        self.request_id: str | None = error.get("request_id") or request_id
        self.field: str | None = error.get("field")
        self.expected: str | None = error.get("expected")

    def __str__(self) -> str:
        ids = ", ".join(filter(None, (self.code, self.request_id)))
        return f"{self.status} {self.title}: {self.detail}" + (f" ({ids})" if ids else "")


class BadRequest(ErrorReply):
    """The request is malformed, or refers to an object that does not exist."""


class Unauthenticated(ErrorReply):
    """The credentials are missing or invalid."""


class Forbidden(ErrorReply):
    """The caller is not permitted to do this."""


class NotFound(ErrorReply):
    """The object at the path does not exist."""


class Conflict(ErrorReply):
    """The request conflicts with the present state of the service."""


class Gone(ErrorReply):
    """The requested data no longer exists."""


class TooManyRequests(ErrorReply):
    """Too many wrong passwords came from this address."""


class Unavailable(ErrorReply):
    """The service is unavailable: a request that writes may or may not have taken effect."""


class NothingHeld(NotFound):
    """The consumer holds nothing, or its lease has expired."""


class PositionLost(Gone):
    """The history does not continue from this position: events after it were deleted, or the database was restored.

    An application that derives state from events must start over: take ``Client.position``, then read the state.
    """


class Refused(Conflict):
    """The request for a consumer was refused.

    Attributes:
        consumer: The uuid of the consumer.
        explanation: The reason why nothing fits; None without one, or if another result explains the same query.
    """

    def __init__(
        self,
        status: int,
        error: Mapping[str, Any],
        request_id: str | None = None,
        consumer: str = "",
        explanation: Explanation | None = None,
    ) -> None:
        super().__init__(status, error, request_id)
        self.args = (status, error, request_id, consumer, explanation)
        self.consumer, self.explanation = consumer, explanation


class NoRoom(Refused):
    """No place has enough free capacity."""


class Undecided(Refused):
    """The search reached its limit before it found a place or excluded one."""


class HeldOtherwise(Refused):
    """The consumer already holds resources from a different request."""


class NothingPlaced(Refused):
    """Another request of the same ``all_or_nothing`` operation was refused."""


_BY_CODE: dict[str | None, type[ErrorReply]] = {
    "placement.v1.no_room": NoRoom,
    "placement.v1.undecided": Undecided,
    "placement.v1.held_otherwise": HeldOtherwise,
    "placement.v1.nothing_placed": NothingPlaced,
    "placement.v1.nothing_held": NothingHeld,
    "placement.v1.position_lost": PositionLost,
}
_BY_STATUS: dict[int, type[ErrorReply]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def from_reply(reply: Reply) -> ErrorReply:
    """Return the exception for an error response or a malformed response."""
    request_id = reply.headers.get("x-openstack-request-id")
    try:
        error = dict(reply.document["errors"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        text = reply.content[:_MAX_SHOWN].decode(errors="replace")
        return class_for(reply.status)(reply.status, {"detail": f"not a response of this service: {text}"}, request_id)
    return class_for(reply.status, error.get("code"))(reply.status, error, request_id)


def document_of(reply: Reply) -> Any:
    """Return the JSON document of a response; None without content.

    Raises:
        ErrorReply: The status is not 2xx, or the content is not JSON.
    """
    document = reply.document
    if not 200 <= reply.status < 300 or (reply.content and document is None):
        raise from_reply(reply)
    return document


def class_for(status: int, code: str | None = None) -> type[ErrorReply]:
    """Return the class of an error with this status and code."""
    return _BY_CODE.get(code) or (Unavailable if status >= 500 else _BY_STATUS.get(status, ErrorReply))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
