"""The operations of a client, as steps without I/O (``steps``)."""

from __future__ import annotations

import time
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placement_client import errors, steps
from placement_client import query as queries
from placement_client.errors import (
    CONCURRENT_UPDATE,
    Conflict,
    NoReply,
    NoToken,
    PlacementError,
    Refused,
    Undecided,
    document_of,
)
from placement_client.query import Query
from placement_client.records import Candidate, Capacity, Claim, Consumer, Event, Explanation, Released, Request
from placement_client.steps import Call, Pause, Reply, Steps

#: The microversion of the Placement API that this package uses.
MICROVERSION = "1.39"
#: Maximum number of consumers per request to release: some web servers refuse queries above 8 KiB.
_RELEASE_BATCH = 150
#: Maximum wait of a request for events, in seconds.
_WAIT = 60
#: Timeout of a request that waits for events, in seconds.
_WAIT_TIMEOUT = _WAIT + 15.0
#: Seconds until the next request if none of the examined events met the conditions.
_SCAN_PAUSE = 0.1

Consumers = Iterable["str | uuid.UUID"]


class Operations:
    """The operations of a client.

    All operations except ``request`` are idempotent: they are retried without a response, after 5xx or 429, and
    while the Identity service cannot be reached.  The pauses grow, and respect ``Retry-After``.

    Args:
        patience: Seconds after which the failure of a request is raised instead of a retry.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
        version: str = MICROVERSION,
    ) -> Steps[Any]:
        """Send any request to the service, without retries, and return the JSON document of the response, if any.

        After ``NoReply`` or ``Unavailable``, a request that writes may or may not have taken effect; the caller decides
        whether to repeat it.

        Args:
            path: The path below the URL of the service, such as ``/resource_providers`` or ``/v1/overview``.
            query: The query parameters.
            version: The microversion of the Placement API.

        Raises:
            ErrorReply: The HTTP status is not 2xx.
            NoReply: The service did not respond.
        """
        text = urllib.parse.urlencode(query, doseq=True)
        return document_of((yield Call(method, f"{path}?{text}" if text else path, body, version)))

    def claim(
        self,
        consumer: str | uuid.UUID,
        query: str | Query,
        *,
        project_id: str,
        user_id: str,
        consumer_type: str,
        count: int = 1,
        strategy: str | Mapping[str, str] | None = None,
        expires_in: int | None = None,
        apart_from: Consumers = (),
        together_with: Consumers = (),
    ) -> Steps[Claim]:
        """Have the service find a place for one consumer and claim it.

        The consumer is the idempotency key: repeating the claim, in this or another process, returns the first one.
        ``claims`` describes the arguments.

        Raises:
            NoRoom: No place has enough free capacity.
            Undecided: The search reached its limit.
            HeldOtherwise: The consumer holds resources from a different request.
        """
        request = Request(consumer, query, project_id, user_id, consumer_type, count)
        [result] = yield from self.claims(
            [request], strategy=strategy, expires_in=expires_in, apart_from=apart_from, together_with=together_with
        )
        if isinstance(result, Refused):
            raise result
        return result

    def claims(
        self,
        requests: Iterable[Request],
        *,
        strategy: str | Mapping[str, str] | None = None,
        all_or_nothing: bool = False,
        expires_in: int | None = None,
        apart_from: Consumers = (),
        together_with: Consumers = (),
    ) -> Steps[list[Claim | Refused]]:
        """Have the service find places for many consumers and claim them; return a result for each, in order.

        Requests that collided with concurrent requests are retried.  Requests that the search left undecided are sent
        again as long as it decides other requests, except with ``all_or_nothing``.

        Args:
            requests: The requests, each for a different consumer.
            strategy: The choice among the places: ``"spread"``, ``"pack"``, ``"random"``, or
                ``{"spread_over": ...}``.
            all_or_nothing: Whether to claim nothing if one request is refused.
            expires_in: Seconds until the claims expire; None for never.
            apart_from: Consumers whose trees are excluded.
            together_with: Consumers whose trees are required.
        """
        requests = list(requests)
        options = {
            "strategy": strategy,
            "all_or_nothing": all_or_nothing or None,
            "expires_in": expires_in,
            "apart_from": _uuids(apart_from) or None,
            "together_with": _uuids(together_with) or None,
        }
        options = {name: value for name, value in options.items() if value is not None}
        results: dict[int, Claim | Refused] = {}
        deadline, pauses = time.monotonic() + self.patience, steps.pauses()
        pending: Sequence[int] = range(len(requests))
        while pending:
            body = {"requests": [requests[index].document() for index in pending], **options}
            results.update(zip(pending, (yield from self._send_claims(body)), strict=True))
            collided = [index for index in pending if _has_collided(requests[index], results[index])]
            undecided = [index for index in pending if isinstance(results[index], Undecided)]
            if len(undecided) == len(pending) or all_or_nothing:
                undecided = []
            retried = pending if collided and all_or_nothing else sorted([*collided, *undecided])
            if collided and not (yield from _pause(next(pauses), deadline)):
                break
            pending = retried
        return [results[index] for index in range(len(requests))]

    def take(
        self, candidate: Candidate, consumer: str | uuid.UUID, *, project_id: str, user_id: str, consumer_type: str
    ) -> Steps[None]:
        """Claim a candidate chosen by the caller, for a consumer that holds nothing.

        The operation is idempotent for the same candidate.

        Raises:
            Conflict: Another consumer has claimed the resources, or the consumer holds other resources.
        """
        allocations = {provider: {"resources": resources} for provider, resources in candidate.allocations.items()}
        body = {
            "allocations": allocations,
            "project_id": project_id,
            "user_id": user_id,
            "consumer_type": consumer_type,
            "consumer_generation": None,
        }
        path = f"/allocations/{uuid.UUID(str(consumer))}"  # GET accepts only this spelling
        try:
            document_of((yield from self._retry(Call("PUT", path, body, MICROVERSION))))
        except Conflict:
            # An earlier attempt of this request may have succeeded, with a lost response.
            present = document_of((yield from self._retry(Call("GET", path, version=MICROVERSION))))["allocations"]
            if {provider: allocation["resources"] for provider, allocation in present.items()} != candidate.allocations:
                raise

    def show(self, consumer: str | uuid.UUID) -> Steps[Claim]:
        """Return the claim of a consumer, or raise NothingHeld."""
        return Claim.of(document_of((yield from self._retry(Call("GET", _path(consumer))))))

    def extend(self, consumer: str | uuid.UUID, expires_in: int | None) -> Steps[Claim]:
        """Set the expiry of a claim to ``expires_in`` seconds from now, or remove it with None.

        Raises:
            NothingHeld: The consumer holds nothing, or its lease has expired.
        """
        return Claim.of(document_of((yield from self._retry(extension_call(consumer, expires_in)))))

    def release(self, consumers: Consumers) -> Steps[Released]:
        """Release consumers; it is no error if one of them holds nothing."""
        uuids = [*dict.fromkeys(_uuids(consumers))]
        released: list[str] = []
        missing: list[str] = []
        for start in range(0, len(uuids), _RELEASE_BATCH):
            part = yield from release_consumers(uuids[start : start + _RELEASE_BATCH], self.patience)
            released += part.released
            missing += part.missing
        return Released(released, missing)

    def candidates(self, query: str | Query, *, limit: int | None = None) -> Steps[list[Candidate]]:
        """Return the candidates of a query, at most ``limit``."""
        path = f"/allocation_candidates?{queries.query_string(query, [('limit', limit)])}"
        document = document_of((yield from self._retry(Call("GET", path, version=MICROVERSION))))
        return [Candidate.of(candidate) for candidate in document["allocation_requests"]]

    def capacity(self, query: str | Query, *, count: int | None = None, until: int | None = None) -> Steps[Capacity]:
        """Count the number of times that a query fits.

        Args:
            count: Copies per job, in different trees.
            until: The number at which to stop counting.
        """
        path = f"/v1/capacity?{queries.query_string(query, [('count', count), ('until', until)])}"
        return Capacity.of(document_of((yield from self._retry(Call("GET", path)))))

    def explain(self, query: str | Query, *, limit: int | None = None) -> Steps[Explanation]:
        """Explain why a query has candidates or none; ``limit`` bounds the number of candidates counted."""
        path = f"/v1/explain?{queries.query_string(query, [('limit', limit)])}"
        return Explanation.of(document_of((yield from self._retry(Call("GET", path)))))

    def consumers(self, /, **conditions: str) -> Steps[list[Consumer]]:
        """Return the consumers that hold resources and meet conditions: parameters of ``GET /v1/consumers``."""
        query: str | None = urllib.parse.urlencode({"limit": 1000, **conditions})
        matches = []
        while query is not None:
            document = document_of((yield from self._retry(Call("GET", f"/v1/consumers?{query}"))))
            matches += [Consumer.of(consumer) for consumer in document["consumers"]]
            # Only the query of the next URL is used: the service may not know its own address.
            query = urllib.parse.urlsplit(document["next"]).query if document["next"] else None
        return matches

    def follow(self, /, after: str | None = None, **conditions: str) -> EventCursor:
        """Iterate over past and future events after a position: ``for event in client.follow(position)``.

        Each event is returned once, in the order of the changes.  A later ``follow`` can continue from the ``position``
        of the iterator or of an event.

        Args:
            after: The position; None for the oldest event.
            conditions: Parameters of ``GET /v1/events``, such as ``project`` and ``kind``.

        Raises:
            PositionLost: The history does not continue from the position.
            NoReply: The service did not respond within the patience of the client.
        """
        return EventCursor(self, after, conditions)

    def position(self) -> Steps[str]:
        """Return the newest position of the history, after which to follow future events."""
        document = document_of((yield from self._retry(Call("GET", "/v1/events?after=now"))))
        return str(document["position"])

    def _send_claims(self, body: Mapping[str, Any]) -> Steps[list[Claim | Refused]]:
        """Send one request to ``POST /v1/claims``, and return its results."""
        reply = yield from self._retry(Call("POST", "/v1/claims", body))
        document = reply.document
        if not isinstance(document, dict) or "results" not in document:
            raise errors.from_reply(reply)
        return [_result(result, reply) for result in document["results"]]

    def _retry(self, call: Call) -> Steps[Reply]:
        return retry_call(call, self.patience)


class EventCursor:
    """The events after a position, in order.

    Attributes:
        position: The position to continue from: all matching events before it have been returned.
    """

    def __init__(self, operations: Operations, after: str | None, conditions: Mapping[str, str]) -> None:
        self.position = after
        self._operations, self._conditions = operations, conditions
        self._events: list[Event] = []
        self._reached = after

    def next(self) -> Steps[Event]:
        """Return the next event, waiting for it without limit."""
        pauses = steps.pauses()
        while not self._events:
            reply = yield from retry_call(self._call(), self._operations.patience)
            document = document_of(reply)
            self._events = [Event.of(event) for event in reversed(document["events"])]
            moved, self._reached = self._reached != document["position"], document["position"]
            if not self._events:
                self.position = self._reached
                # A fast response: the limit of waiting requests is reached, or the events did not meet the conditions.
                if time.monotonic() - reply.sent < 1:
                    yield Pause(_SCAN_PAUSE if moved else next(pauses))
        event = self._events.pop()
        self.position = event.position if self._events else self._reached
        return event

    def _call(self) -> Call:
        after = {} if self._reached is None else {"after": self._reached}
        query = urllib.parse.urlencode({**self._conditions, **after, "wait": _WAIT})
        return Call("GET", f"/v1/events?{query}", timeout=_WAIT_TIMEOUT)


def retry_call(call: Call, patience: float) -> Steps[Reply]:
    """Perform a call, and retry it while the status is 5xx or 429 or the service does not respond.

    After ``patience`` seconds, raise the last failure.
    """
    deadline = time.monotonic() + patience
    for pause in steps.pauses():
        failure: PlacementError
        try:
            reply = yield call
        except NoReply as error:
            failure = error
        except NoToken as error:
            if not error.may_pass:
                raise
            failure = error
        else:
            if reply.status < 500 and reply.status != 429:
                return reply
            failure, pause = errors.from_reply(reply), max(pause, reply.retry_after)
        if not (yield from _pause(pause, deadline)):
            raise failure
    raise AssertionError  # pauses() is endless


def extension_call(consumer: str | uuid.UUID, expires_in: int | None, timeout: float | None = None) -> Call:
    """Return the call that extends a claim."""
    return Call("POST", _path(consumer) + "/extend", {"expires_in": expires_in}, timeout=timeout)


def release_consumers(consumers: Iterable[str], patience: float, timeout: float | None = None) -> Steps[Released]:
    """Release the consumers, which must fit in one query string."""
    path = "/v1/claims?" + urllib.parse.urlencode([("consumer", consumer) for consumer in consumers])
    released: dict[str, None] = {}
    deadline = time.monotonic() + patience
    for pause in steps.pauses():
        call = Call("DELETE", path, timeout=timeout)
        document = document_of((yield from retry_call(call, deadline - time.monotonic())))
        released |= dict.fromkeys(document["released"])
        if document["complete"]:
            return Released([*released], [consumer for consumer in document["missing"] if consumer not in released])
        if not (yield from _pause(pause, deadline)):
            raise NoReply("the service did not release all of these consumers in time")
    raise AssertionError  # pauses() is endless


def _path(consumer: str | uuid.UUID) -> str:
    """Return the path of a claim; raise ValueError for anything but a uuid, which could lead to another path."""
    uuid.UUID(str(consumer))
    return f"/v1/claims/{consumer}"  # unchanged: the service may have stored this spelling


def _uuids(consumers: Consumers) -> list[str]:
    if isinstance(consumers, str):  # an iterable of characters
        raise TypeError(f"expected an iterable of uuids, not a string: {consumers!r}")
    return [*map(str, consumers)]


def _pause(seconds: float, deadline: float) -> Steps[bool]:
    """Wait and return True, unless the pause would exceed the deadline."""
    if time.monotonic() + seconds > deadline:
        return False
    yield Pause(seconds)
    return True


def _result(document: Mapping[str, Any], reply: Reply) -> Claim | Refused:
    if document["status"] == 200:
        return Claim.of(document)
    error, explanation = document["error"], document.get("explanation")
    error_class = errors.class_for(document["status"], error["code"])
    return (error_class if issubclass(error_class, Refused) else Refused)(
        document["status"],
        error,
        reply.headers.get("x-openstack-request-id"),
        document["consumer"],
        Explanation.of(explanation) if explanation else None,
    )


def _has_collided(request: Request, result: Claim | Refused) -> bool:
    """Whether the request collided with concurrent requests; False for a move, whose generation may be outdated."""
    return isinstance(result, Refused) and result.code == CONCURRENT_UPDATE and request.keep
