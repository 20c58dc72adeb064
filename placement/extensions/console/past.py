"""The state of a past time that a page shows: the providers as they were (docs: console)."""

from __future__ import annotations

import datetime

from placement.extensions.console.machine_names import with_machine_names
from placement.extensions.v1.overview.past import PastState, state_at
from placement.extensions.v1.schemas.date import DATE, timestamp
from placement.http.request import Request
from placement.schemas.declarations import Field
from placement.version_history import OLDEST

#: The parameter of a page that can show the past: a date, or an age.
AT = Field("at", DATE, since=OLDEST)


def moment_of(req: Request) -> datetime.datetime | None:
    """Return the moment (naive, UTC) that the query names; None if it names none, or one that is not past.

    Raises:
        InvalidField: There is no such date.
    """
    if "at" not in req.parameters:
        return None
    now = req.now()
    at = timestamp("at", req.parameters.get("at"), lambda: now)
    return at if at < now else None


def state_of(req: Request, at: datetime.datetime) -> PastState:
    """Return the providers as they were at a moment, with the names of machines; raises like ``state_at``."""
    state = state_at(req.database, at)
    return state._replace(snapshot=with_machine_names(req, state.snapshot))
