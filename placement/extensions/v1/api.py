"""The v1 API: its route table, path -> {method: endpoint}, and its ``Api`` value.

The API is unversioned: it grows by new routes, fields and parameters, and release notes announce any change of existing
ones.
"""

from __future__ import annotations

from placement.extensions.v1 import failures, policy
from placement.extensions.v1.error_documents import ErrorLines
from placement.extensions.v1.handlers import (
    capacity,
    claim,
    consumer,
    doctor,
    event,
    explain,
    history,
    openapi,
    overview,
    provider,
    release,
    root,
    usage,
)
from placement.http.api import Api, Table
from placement.routes import PLACEMENT
from placement.version_history import OLDEST, Unversioned

TABLE: Table = {
    "/": {"GET": root.show},
    "/capacity": {"GET": capacity.show},
    "/claims": {"POST": claim.create, "DELETE": release.release},
    "/claims/{consumer}": {"GET": claim.show},
    "/claims/{consumer}/extend": {"POST": claim.extend},
    "/doctor": {"GET": doctor.show},
    "/explain": {"GET": explain.show},
    "/overview": {"GET": overview.show},
    "/providers/{provider}": {"GET": provider.show},
    "/consumers": {"GET": consumer.list_consumers},
    "/events": {"GET": event.list_events},
    "/history/{object}": {"GET": history.show},
    "/usage": {"GET": usage.show},
    "/openapi.json": {"GET": openapi.show},
    "/openapi-placement.json": {"GET": openapi.description_endpoint(PLACEMENT)},
}

#: A uuid or a name; names may contain slashes and line breaks.
PROVIDER = r"[\s\S]+"

V1 = Api(
    name="placement-v1",
    prefix="/v1",
    routes=TABLE,
    patterns={"provider": PROVIDER, "object": PROVIDER},
    versioning=Unversioned(),
    error_documents=ErrorLines(OLDEST, OLDEST, codes_since=OLDEST),
    open_paths=frozenset({"/", "/openapi.json", "/openapi-placement.json"}),
    rules=policy.RULES,
    failures=(
        *(failures.NoSuchProvider, failures.UnknownProvider, failures.InvalidField, failures.NoRoom),
        *(failures.Undecided, failures.HeldOtherwise, failures.NothingPlaced, failures.NothingNamed),
        *(failures.NothingHeld, failures.NothingKnown, failures.PositionLost, failures.TimeUnknown),
        failures.TooManyChanges,
    ),
    anonymous_is_admin=True,
    strict_queries=True,
)
