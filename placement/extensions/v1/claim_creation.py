"""Creation of claims: POST /v1/claims from the request document to the results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placement import errors
from placement.errors import Violation
from placement.extensions.v1 import lookup, request_query
from placement.extensions.v1.claims.engine import Claiming
from placement.extensions.v1.claims.optimistic import claim_optimistically
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

_GENERATION = "the generation of the consumer if keep is false; otherwise null, or omit it"


def create_claims(req: Request) -> list[ClaimResult]:
    """Create the claims of a request: optimistically from a recent snapshot if possible, or else from the current one.

    Raises:
        BadRequest: A query is invalid, or requests contradict each other.
        OutcomeUnknown, Unavailable: As for ``Claiming.run``.
    """
    shared = req.service.shared(Shared)
    if len(req.document["requests"]) == 1 and shared.backoff.is_due():
        # Classes, traits and providers in a query may be newer than the snapshot.
        with contextlib.suppress(errors.BadRequest):
            call = _call(req, shared.recent_snapshot())
            if call.may_be_optimistic and (result := claim_optimistically(call, shared)):
                return [result]
    snapshot = req.index.current()
    return Claiming(_call(req, snapshot), shared, req.writes_to, snapshot).run()


def _call(req: Request, snapshot: Snapshot) -> ClaimCall:
    """Return the claim set of a request.

    Raises:
        InvalidField: A request contradicts itself or another request.
        BadRequest: A query is invalid, or names something that does not exist.
    """
    document = req.document
    nodes = lookup.nodes_named(snapshot, req.database, _in_tree_values(document["requests"]))
    queries: dict[str, SearchQuery] = {}
    requests = [_request(req, snapshot, nodes, number, queries) for number in range(len(document["requests"]))]
    consumers = set()
    for number, request in enumerate(requests):
        if request.consumer in consumers:
            field = f"requests[{number}].consumer"
            raise InvalidField(
                Violation(field, "is also the consumer of another entry", "a different consumer in each")
            )
        consumers.add(request.consumer)
    return ClaimCall(
        requests=requests,
        strategy=_strategy(document.get("strategy", "spread")),
        all_or_nothing=document.get("all_or_nothing", False),
        expires_in=document.get("expires_in"),
        sets_expiry="expires_in" in document,
        apart_from=frozenset(map(canonical_uuid, document.get("apart_from", ()))),
        together_with=frozenset(map(canonical_uuid, document.get("together_with", ()))),
        dry_run=req.dry_run is not None,
    )


def _in_tree_values(requests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the values of ``in_tree`` in the queries of requests, except in invalid queries."""
    for text in {request["query"] for request in requests if isinstance(request["query"], str)}:
        with contextlib.suppress(errors.BadRequest):
            yield from request_query.in_tree_values(schema.query_pairs(text))
    for request in requests:
        if not isinstance(request["query"], str):
            yield from request_query.in_tree_values_of_document(request["query"])


def _request(
    req: Request, snapshot: Snapshot, nodes: Mapping[str, str], number: int, queries: dict[str, SearchQuery]
) -> ClaimRequest:
    """Return the request at a position of the claim set; ``queries`` caches parsed queries by text."""
    document = req.document["requests"][number]
    keep, generation = document.get("keep", True), document.get("consumer_generation")
    if not keep and "consumer_generation" not in document:
        raise InvalidField(Violation(f"requests[{number}].consumer_generation", "is missing", _GENERATION))
    if keep and generation is not None:
        raise InvalidField(Violation(f"requests[{number}].consumer_generation", f"is {generation}", _GENERATION))
    consumer, text = canonical_uuid(document["consumer"]), json.dumps(document["query"])
    if text not in queries:
        with errors.attribute_to_field(f"requests[{number}].query"):
            queries[text] = _query(req, snapshot, nodes, document["query"])
    return ClaimRequest(
        consumer=consumer,
        owner=Owner(document["project_id"], document["user_id"], document["consumer_type"]),
        query=queries[text],
        count=document.get("count", 1),
        keep=keep,
        generation=generation,
        dry_run=document.get("dry_run", False),
    )


def _query(req: Request, snapshot: Snapshot, nodes: Mapping[str, str], value: Any) -> SearchQuery:
    """Return the query in a query string or a query object, with the traits that the service avoids."""
    if isinstance(value, str):
        query = request_query.from_parameters(schema.query_parameters(value), snapshot, nodes, req.conf)
    else:
        query = request_query.from_document(value, snapshot, nodes, req.conf)
    existence.check(query, snapshot, req.database)
    return request_query.with_avoided_traits(query, req.conf)


def _strategy(value: Any) -> Strategy:
    if isinstance(value, str):
        return Strategy(Preference(value))
    return Strategy(spread_over=value["spread_over"])
