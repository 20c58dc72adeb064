"""/v1/overview"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placement.extensions.v1 import nodes
from placement.extensions.v1.overview.past import state_at
from placement.extensions.v1.overview.trees import depth_first, find_trees
from placement.extensions.v1.schemas import date, replies
from placement.extensions.v1.schemas import overview as schema
from placement.extensions.v1.schemas.paging import next_page
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import JSON, NOW, Reply, page, stream
from placement.index.snapshot import Snapshot
from placement.objects import usage
from placement.schemas.dates import precise

#: Maximum number of providers on a page that is sent without streaming; a statement counts its consumers.  The index
#: counts the consumers of streamed pages.
MAX_UNSTREAMED = 1000


@endpoint(policy="placement:v1:overview:show", query=schema.SHOW, replies=replies.OVERVIEW, may_be_gone=True)
def show(req: Request) -> Reply:
    """Show all providers as trees, or a page of them."""
    parameters = req.parameters
    at = date.timestamp("at", parameters.get("at"), req.now) if "at" in parameters else None
    past = None if at is None else state_at(req.database, at)
    snapshot = req.index.current() if past is None else past.snapshot
    tree_filter = schema.tree_filter(parameters, snapshot, req.database)
    limit = int(parameters.get("limit")) if "limit" in parameters else None
    trees = find_trees(snapshot, tree_filter, schema.tree_order(parameters, snapshot), limit, schema.mark(parameters))
    slots = [slot for root in trees.roots for slot in depth_first(snapshot, root)]
    consumers = _consumers(req, snapshot, slots) if past is None else past.consumers
    next_url = next_page(req, "/overview", trees.last and schema.mark_text(trees.last), at=precise(at))
    node_names = nodes.names_of_providers(
        req.database, ((provider.uuid, provider.name) for provider in map(snapshot.provider, slots))
    )
    pieces = schema.pieces(snapshot, slots, consumers, next_url, node_names)
    reply = stream(pieces, JSON) if len(slots) > MAX_UNSTREAMED else page(b"".join(pieces), JSON)
    reply.modified = NOW
    return reply


def _consumers(req: Request, snapshot: Snapshot, slots: Sequence[int]) -> Mapping[int, int]:
    """Return the number of consumers with resources on each of these providers, by its id."""
    if len(slots) <= MAX_UNSTREAMED:
        ids = [snapshot.provider(slot).id for slot in slots]
        return req.read(lambda db: usage.count_by_provider(db, ids))
    counts = req.index.consumers.counts_of(snapshot).tolist()
    return {snapshot.provider(slot).id: counts[slot] for slot in slots}
