"""The history of a provider, a node or a consumer, page by page."""

from __future__ import annotations

from dataclasses import dataclass

from placement.extensions.console.machine_names import trees_of
from placement.extensions.console.views.request_summary import RequestSummary, summaries, whole_requests
from placement.extensions.v1.event_reader import EventReader
from placement.extensions.v1.history.event import MARK, EventFilter
from placement.http.request import Request
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

_RULE = "placement:v1:history:show"
#: Events on a page.
ROWS = 20

#: Query parameter for the next page: the mark of this one.
AFTER = Field("after", string(pattern=f"^{MARK}$"), since=OLDEST)
QUERY = Query(Object(AFTER))


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page of events, newest first."""

    summaries: list[RequestSummary]
    #: The mark for older events; None if no older events exist.
    next: str | None
    #: Whether this is the page of the newest events.
    is_first: bool

    @property
    def is_empty(self) -> bool:
        """Whether the history contains no event."""
        return self.is_first and not self.summaries and self.next is None


def requested_page(req: Request, event_filter: EventFilter) -> Timeline | None:
    """Return the page of a timeline selected by the query; None if the caller may not see it.

    Raises:
        PositionLost: The mark in the query refers to events that were removed.
    """
    if not req.may(_RULE):
        return None
    after = req.parameters.get("after")
    page = EventReader(req.database, req.index, event_filter, ROWS).page(after, newest_first=True)
    events, mark = whole_requests(page)
    return Timeline(summaries(events, page.names, trees_of(req), req.now()), mark if page.more else None, after is None)
