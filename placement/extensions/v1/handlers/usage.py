"""/v1/usage"""

from __future__ import annotations

from placement.extensions.v1 import lookup
from placement.extensions.v1.history.usage_shares import Dimension
from placement.extensions.v1.overview import usage_history
from placement.extensions.v1.schemas import usage_history as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok


@endpoint(policy="placement:v1:usage:show", query=schema.SHOW, replies=schema.REPLIES)
def show(req: Request) -> Reply:
    """Show the capacity and the usage of each class over time, in total and, if asked, by project or aggregate."""
    parameters = req.parameters
    since, until, present = schema.period(parameters, req.now())
    named = parameters.get("class")
    most = int(parameters.get("limit", schema.DEFAULT_SAMPLES))
    found = usage_history.over_time(req, since, until, most, resource_class=named, present=present)
    if not found:
        # A class that is gone may have samples; one that never was has none.
        lookup.resource_class(req.index.current(), named)
    by, shares = parameters.get("by"), None
    if by is not None:
        shares = usage_history.shares_over_time(
            req, Dimension(by), since, until, most, classes=len(found), resource_class=named
        )
    return ok(schema.document(found, shares), modified=NOW)
