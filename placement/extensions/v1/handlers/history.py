"""/v1/history/{object}"""

from __future__ import annotations

from placement.extensions.v1.event_reader import EventReader
from placement.extensions.v1.failures import NothingKnown
from placement.extensions.v1.history import subject
from placement.extensions.v1.history.event import EventFilter
from placement.extensions.v1.schemas import event as schema
from placement.extensions.v1.schemas.paging import next_page
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok


@endpoint(policy="placement:v1:history:show", query=schema.HISTORY, replies=schema.HISTORY_REPLIES, may_be_gone=True)
def show(req: Request, object: str) -> Reply:  # noqa: A002, a name in the route
    """Show the events of a provider, a node or a consumer, in order, even if it no longer exists."""
    uuid = subject.find(req.database, req.index.current(), object)
    if uuid is None:
        raise NothingKnown(object=object)
    after, limit = req.parameters.get("after"), int(req.parameters.get("limit", schema.DEFAULT_EVENTS))
    newest_first = req.parameters.get("order") == "newest"

    is_present = req.read(lambda db: subject.is_present(db, uuid))
    uuids = schema.uuids_in_scope(req.index.current(), uuid, req.parameters)
    page = EventReader(req.database, req.index, EventFilter(uuids=uuids), limit).page(after, newest_first=newest_first)
    if not (is_present or page.events or after or page.more):
        raise NothingKnown(object=object)
    next_url = next_page(req, f"/history/{uuid}", page.mark if page.more else None)
    document = {
        "uuid": uuid,
        "present": is_present,
        "events": [schema.document(event, page.names) for event in page.events],
        "next": next_url,
    }
    return ok(document, modified=NOW)
