"""/v1/capacity"""

from __future__ import annotations

from placement.extensions.v1 import nodes, request_query
from placement.extensions.v1.count.count import count
from placement.extensions.v1.schemas import capacity as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.search.find import Settings
from placement.search.query import existence, parse


@endpoint(policy="placement:v1:capacity:show", query=schema.SHOW, replies=schema.REPLIES)
def show(req: Request) -> Reply:
    """Show the number of times that a request could be placed in succession."""
    snapshot = req.index.current()
    query = request_query.from_request(req, snapshot)
    existence.check(query, snapshot, req.database)
    until = req.parameters.get("until")
    result = count(
        query,
        snapshot,
        Settings.from_conf(req.conf),
        until=None if until is None else parse.limit(until),
        copies=int(req.parameters.get("count", "1")),
    )
    req.log_search(result.count, result.obstacle)
    limit = schema.DEFAULT_LIMIT if query.limit is None else query.limit
    document = schema.document(result, limit)
    nodes.add_names(req.database, nodes.providers_in(document["roots"]))
    return ok(document, modified=NOW)
