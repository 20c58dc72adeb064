"""/console/events"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from placement import errors
from placement.extensions.console import pages
from placement.extensions.console.machine_names import trees_of
from placement.extensions.console.views.query_form import without_blanks
from placement.extensions.console.views.request_summary import summaries, whole_requests
from placement.extensions.v1.following import Following
from placement.extensions.v1.history.event import KINDS, MARK, EventFilter
from placement.extensions.v1.schemas import event as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.schemas.declarations import IDENTIFIER, UUID, Field, Object, string
from placement.schemas.document import Query
from placement.schemas.validator import LENIENT
from placement.version_history import OLDEST

ROWS = 50
#: Seconds that a page which follows waits for an event; then it asks again.
_WAIT = 25
#: The filters of the form besides the kind: parameter, label, hint.
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
    """Return what the rule is asked about: the project whose events are listed."""
    try:
        return {"project_id": _given(req).get("project")}
    except errors.InvalidQuery:
        return {}


def _given(req: Request) -> dict[str, str]:
    """Return the conditions; raises InvalidQuery."""
    return dict(without_blanks(req.pairs()))


@endpoint(policy=schema.RULE, target=_project, negotiates=False)
def list_events(req: Request) -> Reply:
    """List the events that meet every condition, the newest first."""
    given = _given(req)
    shown: dict[str, Any] = {
        "page": "events",
        "kinds": KINDS,
        "kind": given.get("kind", ""),
        "filters": [(name, label, hint, given.get(name, "")) for name, label, hint in _FILTERS],
    }
    try:
        wanted = _wanted(req, given)
    except errors.BadRequest as refused:
        return pages.show(req, "events.html", 400, sentence=refused.line, **shown)
    return pages.show(req, "events.html", sentence="", **_newest(req, wanted, given), **shown)


@endpoint(policy=schema.RULE, target=_project, negotiates=False)
def follow(req: Request) -> Reply:
    """Wait for an event after a position, if there is a place among those that wait; show the newest events."""
    given = _given(req)
    wanted = _wanted(req, given)
    Following(req.database, req.index, wanted, 1).wait(given.pop("position", None), _WAIT)
    return pages.show(req, "event_rows.html", **_newest(req, wanted, given))


def _wanted(req: Request, given: dict[str, str]) -> EventFilter:
    """Return which events a query asks for.

    Raises:
        InvalidQuery, InvalidField, UnknownProvider: It makes no sense.
    """
    return schema.event_filter(req, _LIST.validate(given.items(), OLDEST))


def _newest(req: Request, wanted: EventFilter, given: dict[str, str]) -> dict[str, Any]:
    """Return what the rows of events show: those before a mark, or the newest."""
    following = Following(req.database, req.index, wanted, ROWS)
    # First the position, so that what happens meanwhile is waited for in vain at most.
    position = following.start(schema.NOW)
    after = given.get("after")
    page = following.page(after, newest_first=True)
    events, mark = whole_requests(page)
    filters = {name: value for name, value in given.items() if name not in ("after", "position")}
    return {
        "summaries": summaries(events, page.names, trees_of(req), req.now()),
        "position": position,
        "next": urlencode({**filters, "after": mark}) if page.more else "",
        "newest": urlencode(filters),
        "is_newest": after is None,
    }
