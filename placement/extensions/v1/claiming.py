"""A call of POST /v1/claims, from its document to its results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement import errors
from placement.errors import Violation
from placement.extensions.v1 import lookup, searching
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.guessing import guess
from placement.extensions.v1.claims.request import ClaimCall, ClaimRequest
from placement.extensions.v1.claims.result import ClaimResult
from placement.extensions.v1.claims.shared import Shared
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.extensions.v1.schemas import claim as schema
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.objects.consumer import Owner, canonical_uuid
from placement.search.query import existence
from placement.search.query.query import SearchQuery

_GENERATION = "the consumer's generation with keep: false; otherwise nothing, or null"


def carry_out(req: Request) -> list[ClaimResult]:
    """Carry out the call of a request: by a guess, or in the index as it is now.

    Raises:
        BadRequest: As ``_call``.
        Unavailable: As ``Claiming.run``.
    """
    shared = req.service.shared(Shared)
    if len(req.document["requests"]) == 1 and shared.guesses.is_due():
        # What a query names may have been created since.
        with contextlib.suppress(errors.BadRequest):
            call = _call(req, shared.recent())
            if call.may_guess and (result := guess(call, shared)):
                return [result]
    snapshot = req.index.current()
    return Claiming(_call(req, snapshot), shared, req.writes_to, snapshot).run()


def _call(req: Request, snapshot: Snapshot) -> ClaimCall:
    """Return what a request asks for.

    Raises:
        InvalidField: Its requests contradict each other, or themselves.
        BadRequest: A query is wrong, or names what does not exist.
    """
    document = req.document
    nodes = lookup.nodes_named(snapshot, req.database, _trees(document["requests"]))
    queries: dict[str, SearchQuery] = {}
    requests = [_request(req, snapshot, nodes, number, queries) for number in range(len(document["requests"]))]
    named = set()
    for number, request in enumerate(requests):
        if request.consumer in named:
            field = f"requests[{number}].consumer"
            raise InvalidField(Violation(field, "is that of another request, too", "another one in each"))
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


def _trees(requests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the values of ``in_tree`` in the queries of requests; queries that cannot be read are skipped."""
    for text in {request["query"] for request in requests if isinstance(request["query"], str)}:
        with contextlib.suppress(errors.BadRequest):
            yield from searching.trees(schema.query_pairs(text))
    for request in requests:
        if not isinstance(request["query"], str):
            yield from searching.trees_of_document(request["query"])


def _request(
    req: Request, snapshot: Snapshot, nodes: Mapping[str, str], number: int, queries: dict[str, SearchQuery]
) -> ClaimRequest:
    """Return the request of a number; each query is read once, and kept by its text."""
    given = req.document["requests"][number]
    keep, generation = given.get("keep", True), given.get("consumer_generation")
    if not keep and "consumer_generation" not in given:
        raise InvalidField(Violation(f"requests[{number}].consumer_generation", "is missing", _GENERATION))
    if keep and generation is not None:
        raise InvalidField(Violation(f"requests[{number}].consumer_generation", f"is {generation}", _GENERATION))
    consumer, text = canonical_uuid(given["consumer"]), json.dumps(given["query"])
    if text not in queries:
        with errors.inside(f"requests[{number}].query"):
            queries[text] = _query(req, snapshot, nodes, given["query"])
    return ClaimRequest(
        consumer=consumer,
        owner=Owner(given["project_id"], given["user_id"], given["consumer_type"]),
        query=queries[text],
        count=given.get("count", 1),
        keep=keep,
        generation=generation,
        dry_run=given.get("dry_run", False),
    )


def _query(req: Request, snapshot: Snapshot, nodes: Mapping[str, str], given: Any) -> SearchQuery:
    if isinstance(given, str):
        query = searching.parsed(schema.query_parameters(given), snapshot, nodes, req.conf)
    else:
        query = searching.of_document(given, snapshot, nodes, req.conf)
    existence.check(query, snapshot, req.database)
    return searching.avoiding(query, req.conf)


def _strategy(given: Any) -> Strategy:
    if isinstance(given, str):
        return Strategy(Preference(given))
    return Strategy(spread_over=given["spread_over"])
