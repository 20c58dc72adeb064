"""The providers at a point in time in the past (docs: console)."""

from __future__ import annotations

import datetime

from placement.extensions.console.machine_names import with_machine_names
from placement.extensions.v1.overview.past import PastState, state_at
from placement.extensions.v1.schemas.date import DATE, timestamp
from placement.http.request import Request
from placement.schemas.declarations import Field
from placement.version_history import OLDEST

#: Query parameter for a point in time in the past: a date or an age.
AT = Field("at", DATE, since=OLDEST)


def requested_time(req: Request) -> datetime.datetime | None:
    """Return the time (naive, UTC) in the query; None without a time, or for a time that is not in the past.

    Raises:
        InvalidField: The date is invalid.
    """
    if "at" not in req.parameters:
        return None
    now = req.now()
    at = timestamp("at", req.parameters.get("at"), lambda: now)
    return at if at < now else None


def state_of(req: Request, at: datetime.datetime) -> PastState:
    """Return the providers at a time, with the names of machines; failures as for ``state_at``."""
    state = state_at(req.database, at)
    return state._replace(snapshot=with_machine_names(req, state.snapshot))
