"""/v1/consumers"""

from __future__ import annotations

from typing import Any

from placement.extensions.v1 import lookup
from placement.extensions.v1.schemas import paging
from placement.extensions.v1.schemas.date import DATE, SPAN, moment, span
from placement.extensions.v1.schemas.scope import ONLY, check_only, scope
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.claims.holding import Holding
from placement.schemas.dates import date, precise
from placement.schemas.declarations import IDENTIFIER, Field, Object, string
from placement.schemas.document import Parameters, Query

#: Providers that a statement names one by one.
_FEW = 1000

#: What consumers can be asked for by.
CONDITIONS = (
    Field("project", IDENTIFIER, text="Consumers that this project owns."),
    Field("user", IDENTIFIER, text="Consumers that this user owns."),
    Field(
        "type",
        string(
            pattern="^([A-Z0-9_]+|unknown)$",
            maxLength=255,
            description="up to 255 capital letters, digits and _, for example INSTANCE; or unknown",
        ),
        text="Consumers of this type; unknown for those without one.",
    ),
    Field("older_than", DATE, text="Created before this date (UTC), or longer ago than this age: 30d."),
    Field("newer_than", DATE, text="Created at or after this date (UTC), or not longer ago than this age: 90m."),
    Field("ends_within", SPAN, text="With a lease that ends within this time from now, such as 1h."),
    Field("provider", IDENTIFIER, text="Consumers that hold something on this provider or below, by uuid or name."),
    ONLY,
    Field("class", IDENTIFIER, text="Consumers that hold something of this resource class."),
)

LIST = Query(Object(*CONDITIONS, *paging.OF_CONSUMERS))


def consumer_filter(req: Request, parameters: Parameters) -> ConsumerFilter:
    """Return which consumers a query asks for.

    Args:
        req: The request.  Its index is read if the query names a provider or a class.
        parameters: Its query.

    Raises:
        UnknownProvider, UnknownClassInQuery, InvalidField: The query names what does not exist.
    """
    check_only(parameters)
    providers: list[int] | None = None
    resource_class = None
    if "provider" in parameters or "class" in parameters:
        snapshot = req.index.current()
        if (ident := parameters.get("provider")) is not None:
            slot = lookup.of_parameter(snapshot, req.database, "provider", ident)
            providers = [snapshot.provider(each).id for each in scope(snapshot, slot, parameters)]
        if (name := lookup.resource_class(snapshot, parameters.get("class"))) is not None:
            resource_class = snapshot.class_ids[name]
            providers = providers or _few_in_use(snapshot, name)
    older, newer, ending = map(parameters.get, ("older_than", "newer_than", "ends_within"))
    return ConsumerFilter(
        project=parameters.get("project"),
        user=parameters.get("user"),
        consumer_type=parameters.get("type"),
        created_before=older and moment("older_than", older, req.now),
        created_after=newer and moment("newer_than", newer, req.now),
        expires_by=ending and req.now() + span(ending),
        providers=providers,
        resource_class=resource_class,
    )


def _few_in_use(snapshot: Snapshot, resource_class: str) -> list[int] | None:
    """Return the ids of the providers on which something of the class is held; None if there are many of them.

    The database has an index of allocations by provider and class, in which it finds the holders of a rare class.
    """
    column = snapshot.column(resource_class)
    if column is None:
        return []
    slots, used = column.usage()
    slots = slots[used > 0]
    return None if len(slots) > _FEW else [snapshot.provider(slot).id for slot in slots.tolist()]


def document(holder: Holding) -> dict[str, Any]:
    """Return a consumer with all that it holds."""
    return {
        "uuid": holder.uuid,
        "type": holder.consumer_type,
        "project": holder.project,
        "user": holder.user,
        "generation": holder.generation,
        "since": date(holder.created_at),
        "expires_at": precise(holder.expires_at),
        "allocations": {uuid: {"name": held.name, "resources": held.resources} for uuid, held in holder.held.items()},
    }
