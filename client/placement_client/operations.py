"""What a client does, step by step, without I/O (``steps``)."""

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

#: The microversion of Placement's own API that this package is written for.
MICROVERSION = "1.39"
#: Consumers that one request releases: web servers refuse longer queries, some of them those above 8 KiB.
_RELEASED_AT_ONCE = 150
#: Seconds of the longest wait for events.
_WAIT = 60
#: Seconds within which the reply to a request that waits has to come.
_WAITED = _WAIT + 15.0
#: Seconds before the next request if the last one found events, but none that met the conditions.
_LOOKED_ON = 0.1

Consumers = Iterable["str | uuid.UUID"]


class Operations:
    """The operations of a client.

    All operations but ``request`` are sent again while there is no reply, or one with 5xx or 429, or while the Identity
    service cannot be reached: sent twice, they have the same effect.  The pauses grow, and are at least as long as
    ``Retry-After`` says.

    Args:
        patience: Seconds after which a request is not sent again, and its failure is raised.
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
        """Send any request to the service, once, and return the JSON document of the reply; None if it has none.

        Whether a request that writes may be repeated is for the caller to know: after ``NoReply`` and ``Unavailable``
        it may have been done.

        Args:
            path: Below the URL of the service, such as ``/resource_providers`` or ``/v1/overview``.
            query: The parameters of the query.
            version: The microversion of Placement's own API.

        Raises:
            ErrorReply: The HTTP status of the reply is not 2xx.
            NoReply: There is none.
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
        """Have the service find a place for one consumer, and take it.

        The consumer is the key: the same claim again, by this process or another one, returns what the first one took.
        ``claims`` describes the arguments.

        Raises:
            NoRoom: Nothing fits.
            Undecided: The search was cut short.
            HeldOtherwise: The consumer holds something, and not for an equal request.
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
        """Have the service find places for many consumers, and take them; return what came of each, in their order.

        A consumer that collided with others is asked for again, and so are those that the searches of the call left
        undecided, in a call of their own.

        Args:
            requests: Each is for another consumer.
            strategy: Which of the places that fit is taken: ``"spread"``, ``"pack"``, ``"random"``, or
                ``{"spread_over": ...}``.
            all_or_nothing: Whether nothing is claimed if one of the requests is refused.
            expires_in: After how many seconds what is claimed is released.
            apart_from: Consumers: places are in other trees than what these hold.
            together_with: Consumers: places are in trees where these hold something.
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
        asked: Sequence[int] = range(len(requests))
        while asked:
            body = {"requests": [requests[place].document() for place in asked], **options}
            results.update(zip(asked, (yield from self._placed(body)), strict=True))
            collided = [place for place in asked if _has_collided(requests[place], results[place])]
            undecided = [place for place in asked if isinstance(results[place], Undecided)]
            if len(undecided) == len(asked) or all_or_nothing:
                undecided = []
            again = asked if collided and all_or_nothing else sorted([*collided, *undecided])
            if collided and not (yield from _pause(next(pauses), deadline)):
                break
            asked = again
        return [results[place] for place in range(len(requests))]

    def take(
        self, candidate: Candidate, consumer: str | uuid.UUID, *, project_id: str, user_id: str, consumer_type: str
    ) -> Steps[None]:
        """Claim a candidate that the caller has chosen, for a consumer that holds nothing.

        The same again, with the same candidate, changes nothing.

        Raises:
            Conflict: Another client has taken it, or the consumer holds something else.
        """
        allocations = {provider: {"resources": resources} for provider, resources in candidate.allocations.items()}
        body = {
            "allocations": allocations,
            "project_id": project_id,
            "user_id": user_id,
            "consumer_type": consumer_type,
            "consumer_generation": None,
        }
        path = f"/allocations/{uuid.UUID(str(consumer))}"  # GET takes no other spelling
        try:
            document_of((yield from self._answered(Call("PUT", path, body, MICROVERSION))))
        except Conflict:
            # It may be this request that is in the way: it was done, and the reply was lost.
            held = document_of((yield from self._answered(Call("GET", path, version=MICROVERSION))))["allocations"]
            if {provider: each["resources"] for provider, each in held.items()} != candidate.allocations:
                raise

    def show(self, consumer: str | uuid.UUID) -> Steps[Claim]:
        """Return what a consumer holds; raises NothingHeld."""
        return Claim.of(document_of((yield from self._answered(Call("GET", _path(consumer))))))

    def extend(self, consumer: str | uuid.UUID, expires_in: int | None) -> Steps[Claim]:
        """Set the end of a claim to ``expires_in`` seconds from now; None removes its end.

        Raises:
            NothingHeld: The consumer holds nothing, or its time is over.
        """
        return Claim.of(document_of((yield from self._answered(extension(consumer, expires_in)))))

    def release(self, consumers: Consumers) -> Steps[Released]:
        """Release all that these consumers hold.  One that holds nothing is no error."""
        named = [*dict.fromkeys(_uuids(consumers))]
        released: list[str] = []
        missing: list[str] = []
        for start in range(0, len(named), _RELEASED_AT_ONCE):
            part = yield from releasing(named[start : start + _RELEASED_AT_ONCE], self.patience)
            released += part.released
            missing += part.missing
        return Released(released, missing)

    def candidates(self, query: str | Query, *, limit: int | None = None) -> Steps[list[Candidate]]:
        """Return the places where a request fits, ``limit`` at most."""
        path = f"/allocation_candidates?{queries.text(query, [('limit', limit)])}"
        document = document_of((yield from self._answered(Call("GET", path, version=MICROVERSION))))
        return [Candidate.of(each) for each in document["allocation_requests"]]

    def capacity(self, query: str | Query, *, count: int | None = None, until: int | None = None) -> Steps[Capacity]:
        """Return how often a request fits.

        Args:
            count: The copies of a job, each in another tree.
            until: Stop counting at this number.
        """
        path = f"/v1/capacity?{queries.text(query, [('count', count), ('until', until)])}"
        return Capacity.of(document_of((yield from self._answered(Call("GET", path)))))

    def explain(self, query: str | Query, *, limit: int | None = None) -> Steps[Explanation]:
        """Return why a request has the candidates that it has, or none; ``limit`` is the most that are counted."""
        path = f"/v1/explain?{queries.text(query, [('limit', limit)])}"
        return Explanation.of(document_of((yield from self._answered(Call("GET", path)))))

    def consumers(self, /, **conditions: str) -> Steps[list[Consumer]]:
        """Return the consumers that hold something and meet these conditions: parameters of ``GET /v1/consumers``."""
        query: str | None = urllib.parse.urlencode({"limit": 1000, **conditions})
        found = []
        while query is not None:
            document = document_of((yield from self._answered(Call("GET", f"/v1/consumers?{query}"))))
            found += [Consumer.of(each) for each in document["consumers"]]
            # The URL of the next page is what the service believes its address to be.
            query = urllib.parse.urlsplit(document["next"]).query if document["next"] else None
        return found

    def follow(self, /, after: str | None = None, **conditions: str) -> Following:
        """Return the events after a position, and go on with those that come: ``for event in client.follow(position)``.

        Each event comes once, in the order in which the changes were made.  ``position`` of the iterator, and of each
        event, is where a later ``follow`` goes on.

        Args:
            after: The position; None for the oldest event that is there.
            conditions: Which events: parameters of ``GET /v1/events`` such as ``project`` and ``kind``.

        Raises:
            PositionLost: The history does not go on from there.
            NoReply: The service has been away for longer than the patience of the client.
        """
        return Following(self, after, conditions)

    def position(self) -> Steps[str]:
        """Return the newest position of the history: what happens later is followed from here on."""
        document = document_of((yield from self._answered(Call("GET", "/v1/events?after=now"))))
        return str(document["position"])

    def _placed(self, body: Mapping[str, Any]) -> Steps[list[Claim | Refused]]:
        """Return the results of one call."""
        reply = yield from self._answered(Call("POST", "/v1/claims", body))
        document = reply.document
        if not isinstance(document, dict) or "results" not in document:
            raise errors.of_reply(reply)
        return [_result(each, reply) for each in document["results"]]

    def _answered(self, call: Call) -> Steps[Reply]:
        return answered(call, self.patience)


class Following:
    """The events after a position, one after the other.

    Attributes:
        position: What to go on from: all events before it were handed out, or are not asked for.
    """

    def __init__(self, operations: Operations, after: str | None, conditions: Mapping[str, str]) -> None:
        self.position = after
        self._operations, self._conditions = operations, conditions
        self._events: list[Event] = []
        self._reached = after

    def next(self) -> Steps[Event]:
        """Return the next event, however long it takes."""
        pauses = steps.pauses()
        while not self._events:
            reply = yield from answered(self._call(), self._operations.patience)
            document = document_of(reply)
            self._events = [Event.of(each) for each in reversed(document["events"])]
            moved, self._reached = self._reached != document["position"], document["position"]
            if not self._events:
                self.position = self._reached
                # Answered at once: the limit of waiting requests is reached, or no event so far meets the conditions.
                if time.monotonic() - reply.sent < 1:
                    yield Pause(_LOOKED_ON if moved else next(pauses))
        event = self._events.pop()
        self.position = event.position if self._events else self._reached
        return event

    def _call(self) -> Call:
        after = {} if self._reached is None else {"after": self._reached}
        query = urllib.parse.urlencode({**self._conditions, **after, "wait": _WAIT})
        return Call("GET", f"/v1/events?{query}", timeout=_WAITED)


def answered(call: Call, patience: float) -> Steps[Reply]:
    """Send a call until its reply is neither 5xx nor 429; after ``patience``, raise the last failure."""
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
            failure, pause = errors.of_reply(reply), max(pause, reply.retry_after)
        if not (yield from _pause(pause, deadline)):
            raise failure
    raise AssertionError  # there is no last pause


def extension(consumer: str | uuid.UUID, expires_in: int | None, timeout: float | None = None) -> Call:
    """Return the call that extends a claim."""
    return Call("POST", _path(consumer) + "/extend", {"expires_in": expires_in}, timeout=timeout)


def releasing(consumers: Iterable[str], patience: float, timeout: float | None = None) -> Steps[Released]:
    """Release these consumers, as many as one query can name."""
    path = "/v1/claims?" + urllib.parse.urlencode([("consumer", each) for each in consumers])
    released: dict[str, None] = {}
    deadline = time.monotonic() + patience
    for pause in steps.pauses():
        call = Call("DELETE", path, timeout=timeout)
        document = document_of((yield from answered(call, deadline - time.monotonic())))
        released |= dict.fromkeys(document["released"])
        if document["complete"]:
            return Released([*released], [each for each in document["missing"] if each not in released])
        if not (yield from _pause(pause, deadline)):
            raise NoReply("The service has not released all of these consumers in time.")
    raise AssertionError  # there is no last pause


def _path(consumer: str | uuid.UUID) -> str:
    """Return the path of a claim; raises ValueError for what is no uuid, and might be a path to anything else."""
    uuid.UUID(str(consumer))
    return f"/v1/claims/{consumer}"  # as it is spelled, which may be how the service has it


def _uuids(consumers: Consumers) -> list[str]:
    if isinstance(consumers, str):  # whose characters would be taken for consumers
        raise TypeError(f"an iterable of uuids is expected, not one: {consumers!r}")
    return [*map(str, consumers)]


def _pause(seconds: float, deadline: float) -> Steps[bool]:
    """Wait, and return True; if that were longer than until the deadline, return False at once."""
    if time.monotonic() + seconds > deadline:
        return False
    yield Pause(seconds)
    return True


def _result(document: Mapping[str, Any], reply: Reply) -> Claim | Refused:
    if document["status"] == 200:
        return Claim.of(document)
    error, explanation = document["error"], document.get("explanation")
    kind = errors.kind_of(document["status"], error["code"])
    return (kind if issubclass(kind, Refused) else Refused)(
        document["status"],
        error,
        reply.headers.get("x-openstack-request-id"),
        document["consumer"],
        Explanation.of(explanation) if explanation else None,
    )


def _has_collided(request: Request, result: Claim | Refused) -> bool:
    """Whether the request lost to concurrent ones; a move has the same code if its generation is outdated."""
    return isinstance(result, Refused) and result.code == CONCURRENT_UPDATE and request.keep
