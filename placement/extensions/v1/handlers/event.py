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
    """Return the target of the policy rule: the project of the query, so that operators can admit its members."""
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
    """List the events that meet every condition, in order; wait for them, or stream them."""
    parameters = req.parameters
    event_reader = EventReader(
        req.database,
        req.index,
        schema.event_filter(req, parameters),
        int(parameters.get("limit", schema.DEFAULT_EVENTS)),
    )
    after = event_reader.start(_last_event(req) or parameters.get("after"))
    if preferred_type(req.environ.get("HTTP_ACCEPT"), (EVENT_STREAM,)) == EVENT_STREAM:
        reply = stream(EventStream(event_reader, after), EVENT_STREAM)
        # Disable the buffering of nginx, which would delay events.
        reply.headers["x-accel-buffering"] = "no"
    else:
        seconds = int(parameters.get("wait", 0))
        page = event_reader.wait(after, seconds) if seconds else event_reader.page(after)
        reply = ok({"events": [schema.document(event, page.names) for event in page.events], "position": page.mark})
    reply.modified = NOW
    return reply


def _last_event(req: Request) -> str | None:
    """Return the position at which a client resumes a stream."""
    position: str | None = req.environ.get("HTTP_LAST_EVENT_ID")
    if position and not re.fullmatch(MARK, position):
        raise InvalidField(Violation("Last-Event-ID", f"is {position}", "the position of an event"))
    return position or None
