"""What can go wrong, as exceptions.

PlacementError
    NoReply             no reply came, in spite of repeated attempts
    NoToken             the Identity service gives no token
    LeaseLost           what a lease held may be another's by now
    ErrorReply          the service refuses
        BadRequest, Unauthenticated, Forbidden, TooManyRequests, Unavailable
        NotFound
            NothingHeld     the consumer holds nothing, or not any more
        Gone
            PositionLost    the history does not go on from this position
        Conflict
            Refused         a consumer of a claim has no place: the result in ``Client.claims``
                NoRoom, Undecided, HeldOtherwise, NothingPlaced
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from placement_client.steps import Reply

if TYPE_CHECKING:
    from placement_client.records import Explanation

#: The code of a conflict with a concurrent request: the same request may succeed the next time.
CONCURRENT_UPDATE = "placement.concurrent_update"
#: The most characters that are shown of a reply that is not of the service.
_MOST = 200


class PlacementError(Exception):
    """Any failure that this package reports."""


class NoReply(PlacementError):
    """No reply came: whether a request that writes was done is not known."""


class NoToken(PlacementError):
    """The Identity service gives no token; the cause says why.

    Attributes:
        may_pass: Whether it may give one soon: it was not reached, or has failed.
    """

    def __init__(self, reason: str, may_pass: bool = False) -> None:
        super().__init__(reason, may_pass)
        self.may_pass = may_pass

    def __str__(self) -> str:
        return str(self.args[0])


class LeaseLost(PlacementError):
    """A lease is over, or may be: what was held may be another's by now."""


class ErrorReply(PlacementError):
    """The service refuses a request.

    Attributes:
        status: The HTTP status.
        code: What a program can act on, such as ``placement.v1.no_room``; None if there is none.
        title: The name of the HTTP status.
        detail: What is wrong, for people.
        request_id: The id under which the log of the service has the request.
        field: What of the request is wrong, such as ``requests[0].consumer``; None if it is about no field.
        expected: What is valid there.
    """

    def __init__(self, status: int, error: Mapping[str, Any], request_id: str | None = None) -> None:
        super().__init__(status, error, request_id)
        self.status = status
        self.code: str | None = error.get("code")
        self.title: str = error.get("title") or _phrase(status)
        # In Placement's own API a sentence that is the same for each error of the status comes before the error's own.
        general, _, own = str(error.get("detail", "")).partition("\n\n")
        self.detail = own.strip() or general.strip()
        self.request_id: str | None = error.get("request_id") or request_id
        self.field: str | None = error.get("field")
        self.expected: str | None = error.get("expected")

    def __str__(self) -> str:
        ids = ", ".join(filter(None, (self.code, self.request_id)))
        return f"{self.status} {self.title}: {self.detail}" + (f" ({ids})" if ids else "")


class BadRequest(ErrorReply):
    """The request is malformed, or names what does not exist."""


class Unauthenticated(ErrorReply):
    """The credentials are missing or not accepted."""


class Forbidden(ErrorReply):
    """The caller may not do this."""


class NotFound(ErrorReply):
    """What the path names does not exist."""


class Conflict(ErrorReply):
    """The present state does not allow the request."""


class Gone(ErrorReply):
    """What was asked for is no longer there."""


class TooManyRequests(ErrorReply):
    """Too many wrong passwords came from this address."""


class Unavailable(ErrorReply):
    """The service cannot answer now: whether a request that writes was done may not be known."""


class NothingHeld(NotFound):
    """The consumer holds nothing, or the time of its lease is over."""


class PositionLost(Gone):
    """The history does not go on from this position: events after it were removed, or the database was restored.

    A program that keeps a state by events begins anew: with ``Client.position``, and the present state.
    """


class Refused(Conflict):
    """A consumer of a claim has no place.

    Attributes:
        consumer: Its uuid.
        explanation: Why nothing fits; None if another result of the call explains the same query, or if there is none.
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
    """Nothing fits."""


class Undecided(Refused):
    """The search was cut short: there may be a place, and there may be none."""


class HeldOtherwise(Refused):
    """The consumer already holds something, by a different request."""


class NothingPlaced(Refused):
    """Another request of an ``all_or_nothing`` call was refused."""


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


def of_reply(reply: Reply) -> ErrorReply:
    """Return the exception for a reply that is an error, or does not have the expected form."""
    request_id = reply.headers.get("x-openstack-request-id")
    try:
        error = dict(reply.document["errors"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        text = reply.content[:_MOST].decode(errors="replace")
        return kind_of(reply.status)(reply.status, {"detail": f"not a reply of this service: {text}"}, request_id)
    return kind_of(reply.status, error.get("code"))(reply.status, error, request_id)


def document_of(reply: Reply) -> Any:
    """Return the document of a reply, None if it has none; raises ErrorReply if the request was not done."""
    document = reply.document
    if not 200 <= reply.status < 300 or (reply.content and document is None):
        raise of_reply(reply)
    return document


def kind_of(status: int, code: str | None = None) -> type[ErrorReply]:
    """Return the class of an error with this status and code."""
    return _BY_CODE.get(code) or (Unavailable if status >= 500 else _BY_STATUS.get(status, ErrorReply))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
