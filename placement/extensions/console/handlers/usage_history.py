"""/console/usage"""

from __future__ import annotations

from typing import Any

from placement import errors
from placement.extensions.console import pages
from placement.extensions.console.views.query_form import without_blanks
from placement.extensions.console.views.usage_chart import charts_of
from placement.extensions.console.views.usage_choice import PERIODS, UsageChoice
from placement.extensions.v1.history.usage_shares import Dimension, Shares
from placement.extensions.v1.overview import usage_history
from placement.extensions.v1.schemas.date import DATE
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: Samples in a chart, and points with a link to the state at their time: for a single class (enough for all samples of
#: a day), and for each of several classes.
_SINGLE, _SEVERAL = (150, 24), (72, 12)

_SHOW = Query(
    Object(
        Field("period", string(enum=[*PERIODS]), since=OLDEST),
        Field("class", string(maxLength=255), since=OLDEST),
        Field("by", string(enum=[*Dimension]), since=OLDEST),
        Field("from", DATE, since=OLDEST),
        Field("to", DATE, since=OLDEST),
    )
)


@endpoint(policy="placement:v1:usage:show", negotiates=False)
def show(req: Request) -> Reply:
    """Show the usage history of one class or all classes: in total, by project or by aggregate."""
    fields = dict(without_blanks(req.pairs()))
    choice = UsageChoice.from_query(fields)
    variables: dict[str, Any] = {
        "page": "usage",
        "periods": [*PERIODS],
        "choice": choice,
        "chosen": choice.resource_class,
        "records": req.conf.history.enabled,
    }
    try:
        _SHOW.validate(fields.items(), OLDEST)
        since, until, present = choice.bounds(req.now())
    except errors.BadRequest as failure:
        return pages.show(req, "usage.html", 400, sentence=failure.line, charts=[], **variables)
    resource_class = choice.resource_class or None
    max_samples, points = _SINGLE if resource_class else _SEVERAL
    samples = usage_history.samples_over_time(
        req, since, until, max_samples, resource_class=resource_class, present=present
    )
    shares: Shares = {}
    if choice.by:
        shares = usage_history.shares_over_time(
            req,
            Dimension(choice.by),
            since,
            until,
            max_samples,
            classes=len(samples),
            resource_class=resource_class,
        )
    charts = charts_of(samples, shares, since, until)
    return pages.show(
        req, "usage.html", sentence="", charts=charts, points=points, since=since, until=until, **variables
    )
