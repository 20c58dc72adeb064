"""The timeline of a provider, a node or a consumer, page by page, for those who may see the history."""

from __future__ import annotations

from dataclasses import dataclass

from placement.extensions.console.machine_names import trees_of
from placement.extensions.console.views.request_summary import RequestSummary, summaries, whole_requests
from placement.extensions.v1.following import Following
from placement.extensions.v1.history.event import MARK, EventFilter
from placement.http.request import Request
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

_RULE = "placement:v1:history:show"
ROWS = 20

#: The parameter of a page with a timeline: the mark of the page before.
AFTER = Field("after", string(pattern=f"^{MARK}$"), since=OLDEST)
QUERY = Query(Object(AFTER))


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events, the newest first."""

    summaries: list[RequestSummary]
    #: The mark of the older ones; None if there are none.
    next: str | None
    #: Whether these are the newest.
    is_first: bool

    @property
    def is_empty(self) -> bool:
        """Whether the history knows nothing."""
        return self.is_first and not self.summaries and self.next is None


def of(req: Request, wanted: EventFilter) -> Timeline | None:
    """Return a page of what has happened; None if the policy does not let the caller see it.

    Raises:
        PositionLost: The query names a mark of events that were removed.
    """
    if not req.may(_RULE):
        return None
    after = req.parameters.get("after")
    page = Following(req.database, req.index, wanted, ROWS).page(after, newest_first=True)
    events, mark = whole_requests(page)
    told = summaries(events, page.names, trees_of(req), req.now())
    return Timeline(told, mark if page.more else None, after is None)
