"""/v1/consumers"""

from __future__ import annotations

from typing import Any

from placement.extensions.v1 import nodes
from placement.extensions.v1.schemas import consumer as schema
from placement.extensions.v1.schemas import replies
from placement.extensions.v1.schemas.paging import limit_and_mark, next_page
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects.claims import consumer_pages


def _project(req: Request) -> dict[str, Any]:
    """Return the target of the policy rule: the project of the query, so that operators can admit its members."""
    return {"project_id": req.unchecked_parameter("project")}


@endpoint(policy="placement:v1:consumers:list", target=_project, query=schema.LIST, replies=replies.CONSUMERS)
def list_consumers(req: Request) -> Reply:
    """List the consumers that meet every condition, with their resources, page by page."""
    conditions = schema.consumer_filter(req, req.parameters)
    limit, after = limit_and_mark(req)
    page = req.read(lambda db: consumer_pages.page(db, conditions, limit, after))
    documents = [schema.document(holder) for holder in page.holders]
    nodes.add_names(req.database, nodes.providers_of_allocations(documents))
    return ok({"consumers": documents, "next": next_page(req, "/consumers", page.next)}, modified=NOW)
