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
    """Show the capacity and usage of each class over time: in total and, on request, by project or aggregate."""
    parameters = req.parameters
    since, until, present = schema.period(parameters, req.now())
    resource_class = parameters.get("class")
    limit = int(parameters.get("limit", schema.DEFAULT_SAMPLES))
    samples = usage_history.samples_over_time(req, since, until, limit, resource_class=resource_class, present=present)
    if not samples:
        # A deleted class may still have samples, so an unknown class is an error only if it has none.
        lookup.require_class(req.index.current(), resource_class)
    by, shares = parameters.get("by"), None
    if by is not None:
        shares = usage_history.shares_over_time(
            req, Dimension(by), since, until, limit, classes=len(samples), resource_class=resource_class
        )
    return ok(schema.document(samples, shares), modified=NOW)
