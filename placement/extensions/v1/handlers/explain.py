"""/v1/explain"""

from __future__ import annotations

from placement.extensions.v1 import nodes, request_query
from placement.extensions.v1.explain.explain import explain
from placement.extensions.v1.schemas import explanation as schema
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.search.find import Settings
from placement.search.query.existence import unknown_traits


@endpoint(policy="placement:v1:explain", query=schema.SHOW, replies=schema.REPLIES)
def show(req: Request) -> Reply:
    """Explain the candidates of a query, or the lack of candidates and the changes that would be enough."""
    snapshot = req.index.current()
    query = request_query.from_request(req, snapshot)
    unknown = unknown_traits(query.trait_names, snapshot, req.database)
    explanation = explain(query, snapshot, Settings.from_conf(req.conf), unknown)
    req.log_search(explanation.found, explanation.obstacle[0] if explanation.obstacle else "")
    document = schema.document(explanation)
    nodes.add_names(req.database, nodes.providers_in(document))
    nodes.name_in_texts(req.database, snapshot, document)
    return ok(document, modified=NOW)
