"""/allocation_candidates"""

from __future__ import annotations

import random

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.schemas import allocation_candidate as schema
from placement.search.budget import Budget
from placement.search.find import search
from placement.search.present import Form, present
from placement.search.query import names, parse

#: The header of a reply that may lack candidates, because the search ran out of its budget.  Its value is what ran out,
#: "operations" or "memory".
INCOMPLETE = "x-placement-incomplete"


@endpoint(since=mv.ALLOCATION_CANDIDATES, policy="placement:allocation_candidates:list", query=schema.LIST)
def list_candidates(req: Request) -> Reply:
    """List allocation candidates: providers on which the request fits."""
    conf = req.conf.placement
    budget = Budget(conf.max_search_operations, conf.max_search_memory * 2**20)
    query = parse.search_query(req.parameters, req.version)
    if query.demand_count > conf.max_request_groups:
        raise errors.TooManyGroups(count=query.demand_count, most=conf.max_request_groups)
    snapshot = req.index.current()
    names.check(query, snapshot, req.database)
    found = search(
        query,
        snapshot,
        most=None if conf.max_allocation_candidates < 0 else conf.max_allocation_candidates,
        strategy=conf.allocation_candidates_generation_strategy,
        order=random.Random() if conf.randomize_allocation_candidates else None,
        budget=budget,
    )
    reply = ok(present(found, Form.of(req.version), query.resource_classes, budget), modified=NOW)
    if budget.shortage is not None:
        reply.headers[INCOMPLETE] = budget.shortage
    return reply
