"""/allocation_candidates"""

from __future__ import annotations

from oslo_config import cfg

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.schemas import allocation_candidate as schema
from placement.schemas.candidates_reply import present
from placement.search.find import Settings, find
from placement.search.query import existence, parse

#: The header of a reply that may lack candidates, because the search ran out of its budget.  Its value is what ran out,
#: "operations" or "memory".
INCOMPLETE = "x-placement-incomplete"


@endpoint(since=mv.ALLOCATION_CANDIDATES, policy="placement:allocation_candidates:list", query=schema.LIST)
def list_candidates(req: Request) -> Reply:
    """List allocation candidates: providers on which the request fits."""
    query = parse.search_query(req.parameters, req.version)
    most = req.conf.placement.max_request_groups
    if query.demand_count > most:
        raise errors.TooManyGroups(count=query.demand_count, most=most)
    snapshot = req.index.current()
    existence.check(query, snapshot, req.database)
    shown = present(find(query, snapshot, _settings(req.conf)), req.version)
    reply = ok(shown.document, modified=NOW)
    if shown.shortage is not None:
        reply.headers[INCOMPLETE] = shown.shortage
    return reply


def _settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the settings of every search."""
    options = conf.placement
    return Settings(
        max_candidates=None if options.max_allocation_candidates < 0 else options.max_allocation_candidates,
        strategy=options.allocation_candidates_generation_strategy,
        randomize=options.randomize_allocation_candidates,
        operations=options.max_search_operations,
        memory=options.max_search_memory * 2**20,
    )
