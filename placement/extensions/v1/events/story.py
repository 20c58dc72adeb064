"""What the history is asked about: a provider or a node, by uuid or name, or a consumer; also one that is gone."""

from __future__ import annotations

from placement.db.writes.transaction import Reading
from placement.extensions.v1 import lookup
from placement.extensions.v1.failures import UnknownProvider
from placement.extensions.v1.history import event, recorder
from placement.extensions.v1.history.event import EventFilter
from placement.extensions.v1.schemas import event as schema
from placement.http.request import Request
from placement.schemas.document import Parameters
from placement.uuids import is_uuid, spellings

#: The rule of events, about the project of the query.
EVENTS_RULE = "placement:v1:events:list"


def find(req: Request, ident: str) -> str | None:
    """Return a uuid for a uuid or a name.

    That of a provider which is present goes first, then that of a node, and then that of the provider or node which had
    the name last.

    Returns:
        None if nothing has the name, or had it.  A uuid is returned whether something has it or not, as it is written
        there.
    """
    snapshot = req.index.current()
    slot = lookup.find(snapshot, ident)
    if slot is not None:
        return snapshot.provider(slot).uuid
    recorder.of(req.database).order()

    def work(db: Reading) -> str | None:
        return event.node_named(db, ident) or event.named(db, ident) or _as_written(db, ident)

    return req.read(work)


def event_filter(req: Request, parameters: Parameters) -> EventFilter:
    """Return which events a query asks for.

    A caller that may see them only because of the project sees nothing of other projects in them.

    Args:
        req: The request.
        parameters: Its query.

    Raises:
        UnknownProvider: As ``of_parameter``.
        InvalidDate, InvalidEventFilter: As the schema does.
    """
    named = parameters.get("provider")
    provider = None if named is None else of_parameter(req, named)
    return schema.event_filter(req, parameters, provider, only_owned=not req.may(EVENTS_RULE, {}))


def of_parameter(req: Request, ident: str) -> str:
    """Return the uuid of the provider that a parameter names.

    Raises:
        UnknownProvider: It is no uuid, and no provider or node has the name, or had it (400).
    """
    found = find(req, ident)
    if found is None:
        raise UnknownProvider(parameter="provider", provider=ident)
    return found


def _as_written(db: Reading, ident: str) -> str | None:
    """Return a uuid as it is written in the database, else in the form with dashes; None if it is none."""
    if not is_uuid(ident):
        return None
    forms = spellings(ident)
    return next(filter(None, (event.written(db, form) for form in forms)), forms[-1])
