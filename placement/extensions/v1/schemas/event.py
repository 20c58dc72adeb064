"""/v1/events and /v1/history/{object}"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement.db.writes.notes import PROVIDER
from placement.errors import Violation
from placement.extensions.v1.failures import InvalidField, UnknownProvider
from placement.extensions.v1.history import names, subject
from placement.extensions.v1.history.event import KINDS, MARK, NODE, Event, EventFilter
from placement.extensions.v1.schemas import numeral, paging
from placement.extensions.v1.schemas.date import DATE, timestamp
from placement.extensions.v1.schemas.scope import ONLY, check_only, scope
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.schemas.dates import precise
from placement.schemas.declarations import (
    ANYTHING,
    IDENTIFIER,
    UUID,
    Array,
    Field,
    Object,
    OrNull,
    boolean,
    integer,
    nullable,
    string,
)
from placement.schemas.document import Parameters, Query
from placement.schemas.reply_types import by_uuid
from placement.schemas.success import ok
from placement.schemas.validator import LENIENT
from placement.uuids import spellings

#: The policy rule of events; its target is the project of the query.
RULE = "placement:v1:events:list"
#: Events in a page: the maximum, and the default.
MAX_EVENTS, DEFAULT_EVENTS = 1000, 100
#: Maximum number of seconds to wait for an event.
MAX_WAIT = 60
#: The value of ``after`` for the newest position.
NOW = "now"

_WAIT = string(pattern="^([0-9]|[1-5][0-9]|60)$", description=f"a whole number from 0 to {MAX_WAIT}")
_LIMIT = Field("limit", numeral.up_to(MAX_EVENTS), text="The maximum number of events in a page.")
LIST = Query(
    Object(
        Field(
            "after",
            string(pattern=f"^({NOW}|{MARK})$", description=f"{NOW}, or the position in a response or an event"),
            text="The position to begin after; now for the newest. By default, the first event is the oldest.",
        ),
        Field("provider", IDENTIFIER, text="Events of this provider, its descendants and its node, by uuid or name."),
        ONLY,
        Field("consumer", UUID, text="Events of this consumer."),
        Field("project", IDENTIFIER, text="Events of consumers that this project owns."),
        Field("kind", string(enum=[*KINDS]), text="Events of objects of this kind."),
        Field("since", DATE, text="Events at or after this date (UTC), or within this age, for example 90m."),
        _LIMIT,
        Field("wait", _WAIT, text="Seconds to wait for an event."),
    ),
    formats=LENIENT,
)
HISTORY = Query(
    Object(
        ONLY,
        Field("order", string(enum=["oldest", "newest"]), text="Whether the oldest or the newest events come first."),
        _LIMIT,
        Field("after", string(pattern=f"^{MARK}$", description=paging.MARK), text=paging.AFTER),
    )
)

_GENERATION = nullable(integer(minimum=0))
_TEXT = nullable(string())
EVENT = Object(
    Field("position", string(), required=True),
    Field("at", string(format="date-time"), required=True),
    Field("kind", string(enum=[*KINDS]), required=True),
    Field("uuid", _TEXT, required=True),
    Field("name", _TEXT, required=True),
    Field("generation", Array(_GENERATION), required=True),
    Field("changes", Object(additional=ANYTHING), required=True),
    Field("project", _TEXT, required=True),
    Field("request", OrNull(Object(additional=string())), required=True),
    Field("names", by_uuid(string()), required=True),
)
LIST_REPLIES = ok(
    Object(Field("events", Array(EVENT), required=True), Field("position", string(), required=True)),
)
HISTORY_REPLIES = ok(
    Object(
        Field("uuid", string(), required=True),
        Field("present", boolean(), required=True),
        Field("events", Array(EVENT), required=True),
        Field("next", _TEXT, required=True),
    )
)


def event_filter(req: Request, parameters: Parameters) -> EventFilter:
    """Return the filter of a query for events.

    For a caller that the policy admits only to the project of the query, values of other projects are left out.

    Args:
        req: The request.
        parameters: The query of the request.

    Raises:
        UnknownProvider: The provider is not a uuid, and no provider or node has or had the name.
        InvalidField: The date does not exist, or the conditions exclude each other.
    """
    check_only(parameters)
    named, consumer = parameters.get("provider"), parameters.get("consumer")
    provider = None if named is None else subject.find(req.database, req.index.current(), named)
    if provider is None and named is not None:
        raise UnknownProvider(parameter="provider", provider=named)
    kind, since = parameters.get("kind"), parameters.get("since")
    if provider is not None and consumer is not None:
        raise InvalidField(Violation("consumer", "is given together with provider", "only one of the two"))
    kinds: tuple[str, ...] = () if kind is None else (kind,)
    if provider is not None:
        kinds = tuple(name for name in (PROVIDER, NODE) if kind in (None, name))
        if not kinds:
            raise InvalidField(Violation("kind", f'is "{kind}"', f"{PROVIDER} or {NODE} if a provider is given"))
    uuids = () if consumer is None else spellings(consumer)
    if provider is not None:
        uuids = uuids_in_scope(req.index.current(), provider, parameters)
    return EventFilter(
        uuids=uuids,
        kinds=kinds,
        project=parameters.get("project"),
        only_owned=not req.may(RULE, {}),
        since=since and timestamp("since", since, req.now),
    )


def uuids_in_scope(snapshot: Snapshot, uuid: str, parameters: Parameters) -> tuple[str, ...]:
    """Return the uuids of an object and, for a provider, of all providers in the scope of the query."""
    slot = snapshot.by_uuid.get(uuid)
    if slot is None:
        return (uuid,)
    return tuple(snapshot.provider(member).uuid for member in scope(snapshot, slot, parameters))


def document(event: Event, names_by_uuid: Mapping[str, str]) -> dict[str, Any]:
    """Return the document of an event.

    Args:
        names_by_uuid: The known names of providers and nodes, by uuid.
    """
    return {
        "position": event.mark,
        "at": precise(event.at),
        "kind": event.kind,
        "uuid": event.uuid,
        "name": event.name,
        "generation": [*event.generations],
        "changes": event.changes,
        "project": event.project,
        "request": event.request,
        "names": {uuid: names_by_uuid[uuid] for uuid in names.mentioned_uuids(event) if uuid in names_by_uuid},
    }
