"""/allocation_candidates"""

from __future__ import annotations

from placement import microversion as mv
from placement.conf.searches import check_demands, settings_of
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.schemas import allocation_candidate as schema
from placement.schemas.candidates_reply import present
from placement.search.find import find
from placement.search.query import existence, parse


@endpoint(
    since=mv.ALLOCATION_CANDIDATES,
    policy="placement:allocation_candidates:list",
    query=schema.LIST,
    replies=schema.LIST_REPLIES,
)
def list_candidates(req: Request) -> Reply:
    """List allocation candidates: providers on which the request fits."""
    query = parse.search_query(req.parameters, req.version)
    check_demands(query, req.conf)
    snapshot = req.index.current()
    existence.check(query, snapshot, req.database)
    found = find(query, snapshot, settings_of(req.conf))
    req.log_search(len(found.candidates), found.obstacle)
    shown = present(found, req.version)
    reply = ok(shown.document, modified=NOW)
    if shown.shortage is not None:
        reply.headers[schema.INCOMPLETE] = shown.shortage
    return reply
