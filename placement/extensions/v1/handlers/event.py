"""/v1/events"""

from __future__ import annotations

import re
from typing import Any

from placement.errors import Violation
from placement.extensions.v1.event_reader import EVENT_STREAM, EventReader, EventStream
from placement.extensions.v1.failures import InvalidField
from placement.extensions.v1.history.event import MARK
from placement.extensions.v1.schemas import event as schema
from placement.http.endpoint import endpoint, preferred_type
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok, stream


def _project(req: Request) -> dict[str, Any]:
    """Return what the rule is asked about, the project of the query: an operator may let readers see their own."""
    return {"project_id": req.unchecked_parameter("project")}


@endpoint(
    policy=schema.RULE,
    target=_project,
    query=schema.LIST,
    other_types=(EVENT_STREAM,),
    replies=schema.LIST_REPLIES,
    may_be_gone=True,
)
def list_events(req: Request) -> Reply:
    """List the events that meet every condition, in their order; wait for them, or stream them."""
    parameters = req.parameters
    event_reader = EventReader(
        req.database, req.index, schema.event_filter(req, parameters), int(parameters.get("limit", schema.USUAL))
    )
    after = event_reader.start(_last_event(req) or parameters.get("after"))
    if preferred_type(req.environ.get("HTTP_ACCEPT"), (EVENT_STREAM,)) == EVENT_STREAM:
        reply = stream(EventStream(event_reader, after), EVENT_STREAM)
        # For nginx, which would send nothing before it has much.
        reply.headers["x-accel-buffering"] = "no"
    else:
        seconds = int(parameters.get("wait", 0))
        page = event_reader.wait(after, seconds) if seconds else event_reader.page(after)
        reply = ok({"events": [schema.document(one, page.names) for one in page.events], "position": page.mark})
    reply.modified = NOW
    return reply


def _last_event(req: Request) -> str | None:
    """Return the position that a client of a stream had reached before it came again."""
    given: str | None = req.environ.get("HTTP_LAST_EVENT_ID")
    if given and not re.fullmatch(MARK, given):
        raise InvalidField(Violation("Last-Event-ID", f"is {given}", "the position of an event"))
    return given or None
