"""/v1/claims, /v1/claims/{consumer}, /v1/claims/{consumer}/extend"""

from __future__ import annotations

import contextlib
from typing import Any

from placement import errors
from placement.db.writes.transaction import Collision, Transaction
from placement.extensions.v1 import claim_creation, nodes
from placement.extensions.v1.claims.claim_record import held_claim, held_claims
from placement.extensions.v1.failures import NothingHeld
from placement.extensions.v1.schemas import claim as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects.claims import leases
from placement.objects.claims.holding import Holding, stored_uuids
from placement.objects.consumer import canonical_uuid

#: Maximum age, in seconds, of the snapshot for names; the search of the request is more recent.
_MAX_SEARCH_AGE = 60


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
    results = claim_creation.create_claims(req)
    document = schema.results(results)
    _add_nodes(req, document["results"])
    with contextlib.suppress(errors.Failure):
        # The search has just refreshed the index; another refresh would add a statement to each claim.
        nodes.name_in_texts(req.database, req.index.recent(_MAX_SEARCH_AGE), document)
    req.log_claims(document["claimed"], len(results) - document["claimed"])
    if document["claimed"]:
        return ok(document)
    if req.dry_run is not None and req.dry_run.observation is None:
        req.write(lambda _db: None)  # nothing fits, so the dry run has not rolled back a write yet
    failure = results[0].failure
    assert failure is not None
    failure.members, failure.line = document, document["results"][0]["error"]["detail"]
    raise failure


def _check_uuid(_req: Request, consumer: str) -> None:
    """Raise a failure unless the path contains a uuid."""
    canonical_uuid(consumer)


@endpoint(policy="placement:v1:claims:show", check_path=_check_uuid, replies=schema.SHOW_REPLIES)
def show(req: Request, consumer: str) -> Reply:
    """Show the resources that a consumer holds, and their expiry."""
    return _present(req, req.read(lambda db: held_claim(db, consumer)), consumer)


@endpoint(
    policy="placement:v1:claims:extend",
    check_path=_check_uuid,
    body=schema.EXTEND,
    dry_run=lambda _req, consumer: (),  # noqa: ARG005
    replies=schema.SHOW_REPLIES,
)
def extend(req: Request, consumer: str) -> Reply:
    """Set the expiry of a consumer's lease to a number of seconds from now, or clear it."""

    def work(db: Transaction) -> Holding:
        stored = stored_uuids(db, [consumer])[consumer]
        try:
            leases.extend(db, stored, req.document["expires_in"])
        except errors.NoAllocations:
            raise NothingHeld(consumer=canonical_uuid(consumer)) from None
        holding = held_claims(db, [stored]).get(stored)
        if holding is None:
            # The database stalled until after the new expiry as well; the next attempt sets a later one.
            raise Collision
        return holding

    return _present(req, req.write(work), consumer)


def _present(req: Request, holding: Holding | None, consumer: str) -> Reply:
    """Return the response that shows the holding of a consumer.

    Raises:
        NothingHeld: The consumer holds nothing.
    """
    if holding is None:
        raise NothingHeld(consumer=canonical_uuid(consumer))
    document = schema.document(holding)
    _add_nodes(req, [document])
    return ok(document, modified=NOW)


def _add_nodes(req: Request, documents: list[dict[str, Any]]) -> None:
    """Add the names of nodes if they can be read: a claim that is already written must not be reported as failed."""
    with contextlib.suppress(errors.Failure):
        nodes.add_names(req.database, nodes.providers_of_allocations(documents))
