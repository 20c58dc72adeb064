"""/v1/consumers"""

from __future__ import annotations

from typing import Any

from placement.extensions.v1 import lookup
from placement.extensions.v1.schemas import paging
from placement.extensions.v1.schemas.date import DATE, SPAN, span, timestamp
from placement.extensions.v1.schemas.scope import ONLY, check_only, scope
from placement.http.request import Request
from placement.index.snapshot import Snapshot
from placement.objects.claims.consumer_pages import ConsumerFilter
from placement.objects.claims.holding import Holding
from placement.schemas.dates import date, precise
from placement.schemas.declarations import IDENTIFIER, Field, Object, string
from placement.schemas.document import Parameters, Query

#: Providers that one statement lists.
_MAX_LISTED = 1000

#: Parameters that filter consumers.
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
        text="Consumers of this type; unknown for consumers without a type.",
    ),
    Field("older_than", DATE, text="Consumers created before this date (UTC), or longer ago than this age: 30d."),
    Field("newer_than", DATE, text="Consumers created since this date (UTC), or within this age, for example 90m."),
    Field("ends_within", SPAN, text="Consumers with a lease that expires within this time from now, such as 1h."),
    Field(
        "provider",
        IDENTIFIER,
        text="Consumers that hold resources on this provider or its descendants, by uuid or name.",
    ),
    ONLY,
    Field("class", IDENTIFIER, text="Consumers that hold resources of this class."),
)

LIST = Query(Object(*CONDITIONS, *paging.CONSUMER_PAGE))


def consumer_filter(req: Request, parameters: Parameters) -> ConsumerFilter:
    """Return the filter of a query for consumers.

    Args:
        req: The request.  Its index is read only if the query names a provider or a class.
        parameters: The query of the request.

    Raises:
        UnknownProvider, UnknownClassInQuery, InvalidField: The query names a provider, class or date that does not
            exist.
    """
    check_only(parameters)
    providers: list[int] | None = None
    resource_class = None
    if "provider" in parameters or "class" in parameters:
        snapshot = req.index.current()
        if (ident := parameters.get("provider")) is not None:
            slot = lookup.provider_in_parameter(snapshot, req.database, "provider", ident)
            providers = [snapshot.provider(member).id for member in scope(snapshot, slot, parameters)]
        if (name := lookup.require_class(snapshot, parameters.get("class"))) is not None:
            resource_class = snapshot.class_ids[name]
            providers = providers or _providers_in_use(snapshot, name)
    older, newer, ending = map(parameters.get, ("older_than", "newer_than", "ends_within"))
    return ConsumerFilter(
        project=parameters.get("project"),
        user=parameters.get("user"),
        consumer_type=parameters.get("type"),
        created_before=older and timestamp("older_than", older, req.now),
        created_after=newer and timestamp("newer_than", newer, req.now),
        expires_by=ending and req.now() + span(ending),
        providers=providers,
        resource_class=resource_class,
    )


def _providers_in_use(snapshot: Snapshot, resource_class: str) -> list[int] | None:
    """Return the ids of providers with usage of the class; None for more than ``_MAX_LISTED`` providers.

    With a list of providers, the database finds the holders of a rare class in its index by provider and class.
    """
    column = snapshot.column(resource_class)
    if column is None:
        return []
    slots, used = column.usage()
    slots = slots[used > 0]
    return None if len(slots) > _MAX_LISTED else [snapshot.provider(slot).id for slot in slots.tolist()]


def document(holder: Holding) -> dict[str, Any]:
    """Return the document of a consumer and its holding."""
    return {
        "uuid": holder.uuid,
        "type": holder.consumer_type,
        "project": holder.project,
        "user": holder.user,
        "generation": holder.generation,
        "since": date(holder.created_at),
        "expires_at": precise(holder.expires_at),
        "allocations": {
            uuid: {"name": allocation.name, "resources": allocation.resources}
            for uuid, allocation in holder.held.items()
        },
    }
