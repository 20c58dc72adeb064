"""/v1/providers/{provider}"""

from __future__ import annotations

from placement.db.writes.transaction import Reading
from placement.extensions.v1 import lookup, nodes
from placement.extensions.v1.overview.trees import depth_first, shared_by, shares_with
from placement.extensions.v1.schemas import provider as schema
from placement.extensions.v1.schemas import replies
from placement.extensions.v1.schemas.paging import limit_and_mark, next_page
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import NOW, Reply, ok
from placement.objects import usage
from placement.objects.claims import consumer_pages
from placement.objects.claims.consumer_pages import ConsumerFilter, ConsumerPage


@endpoint(policy="placement:v1:providers:show", query=schema.SHOW, replies=replies.SHOW_PROVIDER)
def show(req: Request, provider: str) -> Reply:
    """Show a provider, its tree, and the consumers with resources in the tree."""
    snapshot = req.index.current()
    slot = lookup.provider_in_path(snapshot, req.database, provider)
    root = snapshot.provider(slot).root
    slots = [*depth_first(snapshot, root)]
    members = {snapshot.provider(member).id: snapshot.provider(member).uuid for member in slots}
    limit, after = limit_and_mark(req)

    def work(db: Reading) -> tuple[dict[int, int], int, ConsumerPage]:
        counts, in_tree = usage.count_by_provider(db, [*members]), usage.count_distinct(db, [*members])
        return counts, in_tree, consumer_pages.page(db, ConsumerFilter(providers=members.keys()), limit, after)

    counts, in_tree, page = req.read(work)
    tree = schema.documents(snapshot, slots, counts)
    path = f"/providers/{snapshot.provider(slot).uuid}"
    document = {
        "provider": tree[slots.index(slot)],
        "tree": tree,
        "consumers_in_tree": in_tree,
        "shares_with": schema.count_with_examples(snapshot, shares_with(snapshot, root)),
        "shared_by": schema.count_with_examples(snapshot, shared_by(snapshot, root)),
        "holders": schema.holders(page.holders, frozenset(members.values())),
        "next": next_page(req, path, page.next),
    }
    nodes.add_names(req.database, nodes.providers_in(document))
    return ok(document, modified=NOW)
