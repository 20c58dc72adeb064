"""/console/events"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from placement import errors
from placement.extensions.console import pages
from placement.extensions.console.machine_names import trees_of
from placement.extensions.console.views.query_form import without_blanks
from placement.extensions.console.views.request_summary import summaries, whole_requests
from placement.extensions.v1.event_reader import EventReader
from placement.extensions.v1.history.event import KINDS, MARK, EventFilter
from placement.extensions.v1.schemas import event as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.schemas.declarations import IDENTIFIER, UUID, Field, Object, string
from placement.schemas.document import Query
from placement.schemas.validator import LENIENT
from placement.version_history import OLDEST

#: Events on a page.
ROWS = 50
#: Seconds for which a request waits for an event; a page that follows events then sends another request.
_WAIT = 25
#: Text filters: parameter, label, hint.
_FILTERS = (
    ("provider", "Provider", "name or uuid"),
    ("consumer", "Consumer", "uuid"),
    ("project", "Project of the consumer", ""),
)
_MARK = string(pattern=f"^{MARK}$")
_LIST = Query(
    Object(
        Field("kind", string(enum=[*KINDS]), since=OLDEST),
        Field("provider", IDENTIFIER, since=OLDEST),
        Field("consumer", UUID, since=OLDEST),
        Field("project", IDENTIFIER, since=OLDEST),
        Field("after", _MARK, since=OLDEST),
        Field("position", _MARK, since=OLDEST),
    ),
    formats=LENIENT,
)


def _project(req: Request) -> dict[str, Any]:
    """Return the target of the policy rule: the project whose events are listed."""
    try:
        return {"project_id": _query(req).get("project")}
    except errors.InvalidQuery:
        return {}


def _query(req: Request) -> dict[str, str]:
    """Return the parameters of the query that are not empty, or raise InvalidQuery."""
    return dict(without_blanks(req.pairs()))


@endpoint(policy=schema.RULE, target=_project, negotiates=False)
def list_events(req: Request) -> Reply:
    """List the events that match every filter, newest first."""
    query = _query(req)
    variables: dict[str, Any] = {
        "page": "events",
        "kinds": KINDS,
        "kind": query.get("kind", ""),
        "filters": [(name, label, hint, query.get(name, "")) for name, label, hint in _FILTERS],
    }
    try:
        event_filter = _filter(req, query)
    except errors.BadRequest as failure:
        return pages.show(req, "events.html", 400, sentence=failure.line, **variables)
    return pages.show(req, "events.html", sentence="", **_rows(req, event_filter, query), **variables)


@endpoint(policy=schema.RULE, target=_project, negotiates=False)
def follow(req: Request) -> Reply:
    """Show the newest events after waiting for an event later than a position, unless too many requests are waiting."""
    query = _query(req)
    event_filter = _filter(req, query)
    EventReader(req.database, req.index, event_filter, 1).wait(query.pop("position", None), _WAIT)
    return pages.show(req, "event_rows.html", **_rows(req, event_filter, query))


def _filter(req: Request, query: dict[str, str]) -> EventFilter:
    """Return the filter in a query.

    Raises:
        InvalidQuery, InvalidField, UnknownProvider: The query is invalid.
    """
    return schema.event_filter(req, _LIST.validate(query.items(), OLDEST))


def _rows(req: Request, event_filter: EventFilter, query: dict[str, str]) -> dict[str, Any]:
    """Return the template variables of the list of events: events before the mark in the query, or the newest."""
    reader = EventReader(req.database, req.index, event_filter, ROWS)
    # Read before the events: an event in between causes a redundant refresh but is not missed.
    position = reader.start(schema.NOW)
    after = query.get("after")
    page = reader.page(after, newest_first=True)
    events, mark = whole_requests(page)
    filters = {name: value for name, value in query.items() if name not in ("after", "position")}
    return {
        "summaries": summaries(events, page.names, trees_of(req), req.now()),
        "position": position,
        "next": urlencode({**filters, "after": mark}) if page.more else "",
        "newest": urlencode(filters),
        "is_newest": after is None,
    }
