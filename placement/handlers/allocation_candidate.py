"""/allocation_candidates"""

from __future__ import annotations

import random

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.index.snapshot import Snapshot
from placement.schemas import allocation_candidate as schema
from placement.search.budget import Budget
from placement.search.find import search
from placement.search.present import Form, present
from placement.search.query import names
from placement.search.query.parse import parse
from placement.search.query.request import UNSUFFIXED, CandidateRequest

#: In the reply of a search that was ended: there may be more candidates than it tells.  The value is what there was too
#: little of, "operations" or "memory".
INCOMPLETE = "x-placement-incomplete"


@endpoint(since=mv.ALLOCATION_CANDIDATES, policy="placement:allocation_candidates:list", query=schema.LIST)
def list(req: Request) -> Reply:
    """Where what is asked for would fit."""
    conf = req.conf.placement
    budget = Budget(conf.max_search_operations, conf.max_search_memory * 2**20)
    asked = parse(req.query, req.version)
    _check_size(asked, req.conf.placement.max_request_groups)
    snapshot = req.index.current()
    _check_names(req, asked, snapshot)
    found = search(
        asked,
        snapshot,
        most=None if conf.max_allocation_candidates < 0 else conf.max_allocation_candidates,
        strategy=conf.allocation_candidates_generation_strategy,
        order=random.Random() if conf.randomize_allocation_candidates else None,
        budget=budget,
    )
    classes = {name for group in asked.groups for name in group.resources}
    reply = ok(present(found, Form.of(req.version), classes, budget), modified=NOW)
    return reply if budget.shortage is None else reply._replace(more=((INCOMPLETE, budget.shortage),))


def _check_size(asked: CandidateRequest, most: int) -> None:
    """Raises TooManyGroups: the search goes one step deeper for each thing that it has to find a place for."""
    count = sum(len(group.resources) if group.suffix == UNSUFFIXED else 1 for group in asked.groups)
    if count > most:
        raise errors.TooManyGroups(count=count, most=most)


def _check_names(req: Request, asked: CandidateRequest, snapshot: Snapshot) -> None:
    """Raises UnknownResourceClass or UnknownTraits for the first mistake."""
    traits = [asked.root_required | asked.root_forbidden]
    traits.extend(group.forbidden.union(*group.required) for group in asked.groups)
    unknown = names.unknown_traits(frozenset().union(*traits), snapshot, req.read)
    names.refuse_traits(traits[0] & unknown)
    for group, mentioned in zip(asked.groups, traits[1:], strict=True):
        with errors.saying("Invalid resource class in resources parameter: "):
            names.check_classes(group.resources, snapshot)
        names.refuse_traits(mentioned & unknown)
