"""/console/usage"""

from __future__ import annotations

import datetime

from placement.extensions.console import pages
from placement.extensions.console.views.usage_chart import UsageChart
from placement.extensions.v1.overview import usage
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: The periods that can be chosen, with their lengths in days.
_PERIODS = {"day": 1, "week": 7, "month": 30}
#: Samples of a picture; those of a day are all that there are.
_SAMPLES = 150

_SHOW = Query(
    Object(
        Field("period", string(enum=[*_PERIODS]), since=OLDEST),
        Field("class", string(maxLength=255), since=OLDEST),
    )
)


@endpoint(policy="placement:v1:usage:show", query=_SHOW, negotiates=False)
def show(req: Request) -> Reply:
    """Show what was used of each class, or of one, over a day, a week or a month."""
    period, chosen = req.parameters.get("period", "day"), req.parameters.get("class")
    until = req.now()
    since = until - datetime.timedelta(days=_PERIODS[period])
    found = usage.over_time(req, since, until, _SAMPLES, resource_class=chosen)
    return pages.show(
        req,
        "usage.html",
        page="usage",
        periods=[*_PERIODS],
        period=period,
        chosen=chosen or "",
        charts=[UsageChart(name, samples, since, until) for name, samples in found.items()],
        since=since,
        until=until,
        records=req.conf.history.enabled,
    )
