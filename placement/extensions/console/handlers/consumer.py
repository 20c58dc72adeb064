"""/console/consumers"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from placement import errors
from placement.db.writes.notes import CONSUMER
from placement.extensions.console import pages, timeline
from placement.extensions.console.views.cloud import class_names
from placement.extensions.console.views.query_form import without_blanks
from placement.extensions.v1 import nodes
from placement.extensions.v1.claims.claim_record import held_claim
from placement.extensions.v1.failures import NothingKnown
from placement.extensions.v1.history.event import EventFilter
from placement.extensions.v1.schemas import consumer as schema
from placement.http.endpoint import endpoint
from placement.http.environ import CONTEXT
from placement.http.request import Request
from placement.http.response import Reply
from placement.objects.claims import consumer_pages
from placement.objects.claims.holding import Holding
from placement.schemas.document import Parameters
from placement.uuids import canonical, spellings
from placement.version_history import OLDEST

_RULE = "placement:v1:consumers:list"
#: Consumers on a page.
_ROWS = 50
#: Filters of the form: parameter, label, hint.
_FILTERS = (
    ("project", "Project", ""),
    ("user", "User", ""),
    ("type", "Type", "INSTANCE"),
    ("provider", "On provider", "name or uuid"),
    ("class", "Resource class", ""),
    ("older_than", "Older than", "30d or 12h"),
    ("newer_than", "Newer than", "1h"),
    ("ends_within", "Lease expires within", "1h"),
)


@endpoint(negotiates=False)
def list_consumers(req: Request) -> Reply:
    """List the consumers that match every filter, with their allocations.

    A query without a project lists only the consumers of the caller's project if the caller may not see all consumers.
    """
    query = dict(without_blanks(req.pairs()))
    _authorize(req, query)
    variables: dict[str, Any] = {
        "page": "consumers",
        "filters": [(name, label, hint, query.get(name, "")) for name, label, hint in _FILTERS],
        "classes": class_names(req.index.current()),
    }
    try:
        consumer_filter = schema.consumer_filter(req, _validate(query))
    except errors.BadRequest as failure:
        return pages.show(req, "consumers.html", 400, sentence=failure.line, consumers=[], next="", **variables)
    page = req.read(lambda db: consumer_pages.page(db, consumer_filter, _ROWS, int(query.get("after", 0))))
    next_query = "" if page.next is None else urlencode({**query, "after": page.next})
    variables |= {"consumers": page.holders, "names": _names(req, page.holders), "next": next_query}
    return pages.show(req, "consumers.html", sentence="", **variables)


@endpoint(policy="placement:v1:claims:show", query=timeline.QUERY, negotiates=False)
def show(req: Request, consumer: str) -> Reply:
    """Show a consumer with its allocations, expiry and history; only the history of a deleted consumer."""
    uuid = canonical(consumer)
    if uuid is None:
        raise NothingKnown(object=consumer)
    holding = req.read(lambda db: held_claim(db, consumer))
    events = timeline.requested_page(req, EventFilter(uuids=spellings(consumer), kinds=(CONSUMER,)))
    if holding is not None:
        names = _names(req, [holding])
        return pages.show(req, "consumer.html", page="consumers", held=holding, names=names, timeline=events)
    if events is None or events.is_empty:
        raise NothingKnown(object=consumer)
    return pages.show(req, "gone.html", page="consumers", kind="consumer", uuid=uuid, name=uuid, timeline=events)


def _names(req: Request, holders: Iterable[Holding]) -> dict[str, str]:
    """Return the display names of the providers on which these consumers hold resources, by uuid."""
    names = {amounts.provider: amounts.name for holder in holders for amounts in holder.held.values()}
    node_names = nodes.names_of_providers(req.database, names.items())
    if node_names:
        node_names = nodes.unambiguous_names(node_names, req.index.current())
    return {uuid: name or uuid for uuid, name in {**names, **node_names}.items()}


def _authorize(req: Request, query: dict[str, str]) -> None:
    """Check that the caller may see the consumers of the project in the query.

    Without one, a caller who may not see all consumers is limited to their own project.

    Raises:
        errors.Forbidden: The policy does not allow it.
    """
    try:
        req.authorize(_RULE, {"project_id": query.get("project")})
    except errors.Forbidden:
        project = req.environ[CONTEXT].project_id
        if project is None or "project" in query:
            raise
        req.authorize(_RULE, {"project_id": project})
        query["project"] = project


def _validate(query: dict[str, str]) -> Parameters:
    """Return the filters, validated by the schema of the API, or raise errors.InvalidQuery."""
    return schema.LIST.validate(query.items(), OLDEST)
