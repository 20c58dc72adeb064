"""/v1/claims, /v1/claims/{consumer}, /v1/claims/{consumer}/extend"""

from __future__ import annotations

import contextlib
import json
import weakref
from typing import Any

from placement import errors
from placement.db.database import Database
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.v1 import searching
from placement.extensions.v1.claims.claim_record import held_claim, held_claims
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.guessing import GuessingCalls
from placement.extensions.v1.claims.reasons import RecentReasons
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult
from placement.extensions.v1.failures import InvalidClaim, NothingHeld
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.extensions.v1.schemas import claim as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.index.live import LiveIndex
from placement.index.snapshot import Snapshot
from placement.objects.claims import leases
from placement.objects.claims.holding import Holding, stored_uuids
from placement.objects.consumer import Owner, canonical_uuid
from placement.search.find import Settings
from placement.search.query import existence
from placement.search.query.query import SearchQuery

#: Seconds: how old the snapshot of a guess may be.
GUESS_AGE = 0.5


class _Shared:
    """What the calls of all threads share."""

    def __init__(self, database: Database) -> None:
        self.guessing = GuessingCalls(database)
        self.reasons = RecentReasons()


#: By index.
_SHARED: weakref.WeakKeyDictionary[LiveIndex, _Shared] = weakref.WeakKeyDictionary()


@endpoint(
    policy="placement:v1:claims:create",
    body=schema.CREATE,
    limits={"claims": schema.size},
    dry_run=lambda _req: (),
    replies=schema.CREATE_REPLIES,
    conflict=schema.RESULTS,
)
def create(req: Request) -> Reply:
    """Find places for consumers and claim them."""
    results = _results(req)
    document = schema.results(results)
    req.log_claims(document["claimed"], len(results) - document["claimed"])
    if document["claimed"]:
        return ok(document)
    if req.dry_run is not None and req.dry_run.seen is None:
        req.write(lambda _db: None)  # that nothing fits was found without a write, and is the answer
    failure = results[0].failure
    assert failure is not None
    failure.members = document
    raise failure


def _results(req: Request) -> list[ClaimResult]:
    """Carry out the call of a request."""
    shared = _SHARED.get(req.index) or _SHARED.setdefault(req.index, _Shared(req.database))

    def prepare(call: ClaimCall, snapshot: Snapshot | None = None) -> Claiming:
        return Claiming(
            *(call, req.writes_to, req.index, Settings.of(req.conf)),
            attempts=req.conf.placement.allocation_conflict_retry_count,
            snapshot=snapshot,
            reasons=shared.reasons,
        )

    def prepare_alone() -> Claiming:
        snapshot = req.index.current()
        return prepare(_call(req, snapshot), snapshot)

    call = _guessing_call(req)
    if call is None:
        return prepare_alone().run()
    return shared.guessing.carry_out(call, prepare, lambda: req.index.recent(GUESS_AGE), prepare_alone)


def _guessing_call(req: Request) -> ClaimCall | None:
    """Return what a request asks for if its place may be guessed, and its names were known a moment ago."""
    if len(req.document["requests"]) == 1:
        # What a query names may have been created since.
        with contextlib.suppress(errors.BadRequest):
            call = _call(req, req.index.recent(GUESS_AGE))
            return call if call.may_guess else None
    return None


def _check_uuid(_req: Request, consumer: str) -> None:
    """Refuse a path that names no consumer."""
    canonical_uuid(consumer)


@endpoint(policy="placement:v1:claims:show", check_path=_check_uuid, replies=schema.SHOW_REPLIES)
def show(req: Request, consumer: str) -> Reply:
    """Show what a consumer holds, and when that ends."""
    return _present(req.read(lambda db: held_claim(db, consumer)), consumer)


@endpoint(
    policy="placement:v1:claims:extend",
    check_path=_check_uuid,
    body=schema.EXTEND,
    dry_run=lambda _req, consumer: (),  # noqa: ARG005
    replies=schema.SHOW_REPLIES,
)
def extend(req: Request, consumer: str) -> Reply:
    """Give what a consumer holds an end so many seconds from now, or none."""

    def work(db: Transaction) -> Holding:
        named = stored_uuids(db, [consumer])[consumer]
        try:
            leases.extend(db, named, req.document["expires_in"])
        except errors.NoAllocations:
            raise NothingHeld(consumer=canonical_uuid(consumer)) from None
        held = held_claims(db, [named]).get(named)
        if held is None:
            # The database was stalled until the new end was over, too: it counts from the next attempt on.
            raise Collision
        return held

    return _present(req.write(work), consumer)


def _present(held: Holding | None, consumer: str) -> Reply:
    """Return the reply about a consumer; raises NothingHeld if it holds nothing."""
    if held is None:
        raise NothingHeld(consumer=canonical_uuid(consumer))
    return ok(schema.document(held), modified=NOW)


def _call(req: Request, snapshot: Snapshot) -> ClaimCall:
    """Return what a request asks for.

    Raises:
        InvalidClaim: Its requests contradict each other, or themselves.
        BadRequest: A query is wrong, or names what does not exist.
    """
    document = req.document
    queries = _Queries(req, snapshot)
    requests = [_request(each, number, queries) for number, each in enumerate(document["requests"])]
    named = set()
    for number, request in enumerate(requests):
        if request.consumer in named:
            raise InvalidClaim(number=number, reason=f"consumer {request.consumer} is named by another request, too")
        named.add(request.consumer)
    return ClaimCall(
        requests=requests,
        strategy=_strategy(document.get("strategy", "spread")),
        all_or_nothing=document.get("all_or_nothing", False),
        expires_in=document.get("expires_in"),
        sets_end="expires_in" in document,
        apart_from=frozenset(map(canonical_uuid, document.get("apart_from", ()))),
        together_with=frozenset(map(canonical_uuid, document.get("together_with", ()))),
        dry_run=req.dry_run is not None,
    )


def _request(given: dict[str, Any], number: int, queries: _Queries) -> ClaimRequest:
    keep, generation = given.get("keep", True), given.get("consumer_generation")
    if not keep and "consumer_generation" not in given:
        raise InvalidClaim(number=number, reason="keep: false needs the consumer_generation")
    if keep and generation is not None:
        raise InvalidClaim(number=number, reason="a consumer_generation other than null needs keep: false")
    return ClaimRequest(
        consumer=canonical_uuid(given["consumer"]),
        owner=Owner(given["project_id"], given["user_id"], given["consumer_type"]),
        query=queries.of(given["query"], number),
        count=given.get("count", 1),
        keep=keep,
        generation=generation,
        dry_run=given.get("dry_run", False),
    )


class _Queries:
    """The queries of a call: each is read once, however many requests have it."""

    def __init__(self, req: Request, snapshot: Snapshot) -> None:
        self._req = req
        self._snapshot = snapshot
        self._known: dict[str, SearchQuery] = {}

    def of(self, given: Any, number: int) -> SearchQuery:
        """Return a query; ``number`` is that of the request."""
        key = json.dumps(given)
        known = self._known.get(key)
        if known is None:
            with errors.prefixed(f"requests[{number}].query: "):
                known = self._known[key] = self._read(given)
        return known

    def _read(self, given: Any) -> SearchQuery:
        snapshot, conf = self._snapshot, self._req.conf
        if isinstance(given, str):
            query = searching.parsed(schema.query_parameters(given), snapshot, conf)
        else:
            query = searching.of_document(given, snapshot, conf)
        existence.check(query, snapshot, self._req.database)
        return searching.avoiding(query, conf)


def _strategy(given: Any) -> Strategy:
    if isinstance(given, str):
        return Strategy(Preference(given))
    return Strategy(spread_over=given["spread_over"])
