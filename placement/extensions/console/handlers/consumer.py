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
_ROWS = 50
#: The filters of the form: parameter, label, hint.
_FILTERS = (
    ("project", "Project", ""),
    ("user", "User", ""),
    ("type", "Type", "INSTANCE"),
    ("provider", "On provider", "name or uuid"),
    ("class", "Of class", "resource class"),
    ("older_than", "Older than", "30d or 12h"),
    ("newer_than", "Newer than", "1h"),
    ("ends_within", "Lease ends within", "1h"),
)


@endpoint(negotiates=False)
def list_consumers(req: Request) -> Reply:
    """List the consumers that meet every condition, with all that they hold.

    Where the policy lets readers see the consumers of their own project, one who names no project sees these.
    """
    given = dict(without_blanks(req.pairs()))
    _authorize(req, given)
    shown: dict[str, Any] = {
        "page": "consumers",
        "filters": [(name, label, hint, given.get(name, "")) for name, label, hint in _FILTERS],
        "classes": class_names(req.index.current()),
    }
    try:
        wanted = schema.consumer_filter(req, _valid(given))
    except errors.BadRequest as refused:
        return pages.show(req, "consumers.html", 400, sentence=refused.line, found=[], next="", **shown)
    found = req.read(lambda db: consumer_pages.page(db, wanted, _ROWS, int(given.get("after", 0))))
    following = "" if found.next is None else urlencode({**given, "after": found.next})
    shown |= {"found": found.holders, "names": _names(req, found.holders), "next": following}
    return pages.show(req, "consumers.html", sentence="", **shown)


@endpoint(policy="placement:v1:claims:show", query=timeline.QUERY, negotiates=False)
def show(req: Request, consumer: str) -> Reply:
    """Show a consumer: what it holds on which providers, until when, and its history; also one that is gone."""
    named = canonical(consumer)
    if named is None:
        raise NothingKnown(object=consumer)
    held = req.read(lambda db: held_claim(db, consumer))
    told = timeline.of(req, EventFilter(uuids=spellings(consumer), kinds=(CONSUMER,)))
    if held is not None:
        names = _names(req, [held])
        return pages.show(req, "consumer.html", page="consumers", held=held, names=names, timeline=told)
    if told is None or told.is_empty:
        raise NothingKnown(object=consumer)
    return pages.show(req, "gone.html", page="consumers", what="consumer", uuid=named, name=named, timeline=told)


def _names(req: Request, holders: Iterable[Holding]) -> dict[str, str]:
    """Return the names of the providers on which consumers hold something, by uuid; that of its node for a node."""
    named = {held.provider: held.name for holder in holders for held in holder.held.values()}
    known = nodes.names_of_providers(req.database, named.items())
    if known:
        known = nodes.unambiguous(known, req.index.current())
    return {uuid: name or uuid for uuid, name in {**named, **known}.items()}


def _authorize(req: Request, given: dict[str, str]) -> None:
    """Check whether the caller may see the consumers of the project; without one, of all, or else of the caller's own.

    Raises:
        errors.Forbidden: The policy says no.
    """
    try:
        req.authorize(_RULE, {"project_id": given.get("project")})
    except errors.Forbidden:
        own = req.environ[CONTEXT].project_id
        if own is None or "project" in given:
            raise
        req.authorize(_RULE, {"project_id": own})
        given["project"] = own


def _valid(given: dict[str, str]) -> Parameters:
    """Return the filters as the API has them; raises errors.InvalidQuery."""
    return schema.LIST.validate(given.items(), OLDEST)
