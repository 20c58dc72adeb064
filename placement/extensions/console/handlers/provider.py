"""/console/providers"""

from __future__ import annotations

import contextlib
import datetime
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import urlencode

import orjson

from placement.db.writes.notes import PROVIDER
from placement.db.writes.transaction import Reading
from placement.extensions.console import dry_runs, pages, past, timeline
from placement.extensions.console.machine_names import named_snapshot
from placement.extensions.console.views import search, tree
from placement.extensions.console.views.cloud import class_names, of_tree, provider_name
from placement.extensions.console.views.dry_run import DryRunResult
from placement.extensions.v1 import lookup
from placement.extensions.v1.failures import NoSuchProvider
from placement.extensions.v1.history import subject
from placement.extensions.v1.history.event import NODE, EventFilter
from placement.extensions.v1.overview.trees import depth_first, shared_by, shares_with
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.objects import usage
from placement.objects.claims import consumer_pages
from placement.objects.claims.consumer_pages import ConsumerFilter, ConsumerPage
from placement.objects.claims.holding import Holding
from placement.objects.inventory import AMOUNTS, Inventory
from placement.objects.provider import ResourceProvider
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: Providers on a page of the list; traits suggested in the filter.
ROWS, _SUGGESTIONS = 50, 500
#: Sortable columns of the list: label, and default and reverse order.
_COLUMNS = (("Provider", ("name", "-name")), ("Tree", ("tree", "-tree")), ("Used", ("-used", "used")))
#: Consumers and sharing providers on the page of a provider.
_HOLDERS, _SHARING = 50, 20

_TEXT = string(maxLength=255)
_LIST = Query(
    Object(
        Field("name", _TEXT, since=OLDEST),
        Field("class", _TEXT, since=OLDEST),
        Field("trait", _TEXT, since=OLDEST),
        Field("aggregate", _TEXT, since=OLDEST),
        Field("sort", string(enum=[*search.ORDERS]), since=OLDEST),
        Field("page", string(pattern="^[1-9][0-9]{0,5}$"), since=OLDEST),
    )
)


@endpoint(policy="placement:v1:overview:show", query=_LIST, negotiates=False)
def list_providers(req: Request) -> Reply:
    """List the matching providers, sorted and page by page."""
    query = {name: value.strip() for name, value in req.parameters.items() if name != "page"}
    criteria = search.Criteria(*(query.get(name, "") for name in ("name", "class", "trait", "aggregate")))
    number = int(req.parameters.get("page", 1))
    snapshot = named_snapshot(req)
    order = query.pop("sort", search.ORDERS[0])
    slots = search.sort_slots(search.find_slots(criteria, snapshot), snapshot, order, criteria.resource_class)
    last_page = max(1, -(-len(slots) // ROWS))
    first = (number - 1) * ROWS
    page_slots = slots[first : first + ROWS]
    return pages.show(
        req,
        "providers.html",
        page="providers",
        criteria=criteria,
        classes=class_names(snapshot),
        traits=sorted(snapshot.traits)[:_SUGGESTIONS],
        count=len(slots),
        first=first + 1,
        last=first + len(page_slots),
        rows=[search.row(snapshot, slot) for slot in page_slots],
        order=order,
        columns=[(label, *_header(query, order, orders)) for label, orders in _COLUMNS],
        previous=_address(query, sort=order, page=min(number - 1, last_page)) if number > 1 else "",
        next=_address(query, sort=order, page=number + 1) if number < last_page else "",
    )


@endpoint(policy="placement:v1:providers:show", query=Query(Object(timeline.AFTER, past.AT)), negotiates=False)
def show(req: Request, ident: str) -> Reply:
    """Show a provider: tree, traits, aggregates, sharing, consumers in the tree, and history.

    For a deleted provider, only the history is shown, if the caller may see it.  For a time in the past, tree, traits
    and aggregates are shown, if the caller may see the overview.
    """
    at = past.requested_time(req)
    if at is not None:
        return _page_of_past(req, ident, at)
    if lookup.find(named_snapshot(req), ident) is None:
        return _page_of_history(req, ident)
    return _page_of(req, ident)


@endpoint(policy="placement:v1:providers:show", negotiates=False)
def try_inventory(req: Request, ident: str) -> Reply:
    """Show a provider, and the result of the dry run of a change of one of its inventories."""
    snapshot = named_snapshot(req)
    uuid = snapshot.provider(lookup.provider_in_path(snapshot, req.database, ident)).uuid
    form = dry_runs.form_of(req)
    amounts = {name: _number(form.get(name, "")) for name in (*AMOUNTS, "resource_provider_generation")}
    return _page_of(req, uuid, dry_runs.inventory(req, uuid, form.get("resource_class", ""), amounts))


def _number(text: str) -> int | float | str:
    """Return the number in a text, or the text itself, which the schema then refuses."""
    with contextlib.suppress(orjson.JSONDecodeError):
        value = orjson.loads(text)
        if type(value) in (int, float):
            return value  # type: ignore[no-any-return]
    return text


def _page_of(req: Request, ident: str, dry_run_result: DryRunResult | None = None) -> Reply:
    snapshot = named_snapshot(req)
    slot = lookup.provider_in_path(snapshot, req.database, ident)
    uuid, root = snapshot.provider(slot).uuid, snapshot.provider(slot).root
    subtree = tuple(snapshot.provider(descendant).uuid for descendant in depth_first(snapshot, slot))
    drawn_tree = tree.draw(snapshot, slot)
    members = {snapshot.provider(member).id: snapshot.provider(member).uuid for member in snapshot.forest.tree(root)}

    def work(db: Reading) -> tuple[dict[int, int], int, ConsumerPage]:
        counts, total = usage.count_by_provider(db, [*members]), usage.count_distinct(db, [*members])
        return counts, total, consumer_pages.page(db, ConsumerFilter(providers=members.keys()), _HOLDERS)

    counts, consumers_in_tree, page = req.read(work)
    may_try = req.may("placement:resource_providers:inventories:update")
    sharing_slots, supplied_roots = shared_by(snapshot, root), shares_with(snapshot, root)
    return pages.show(
        req,
        "provider.html",
        page="providers",
        provider=next(drawn_provider for drawn_provider in drawn_tree.providers if drawn_provider.uuid == uuid),
        generation=snapshot.generations.item(slot),
        ancestors=[provider_name(snapshot, ancestor) for ancestor in reversed(snapshot.ancestry(slot)[1:])],
        drawn=drawn_tree,
        in_tree=of_tree(snapshot, root),
        consumers={members[provider_id]: count for provider_id, count in counts.items()},
        held=_by_provider(page.holders),
        serving=[provider_name(snapshot, sharing) for sharing in sharing_slots[:_SHARING]],
        served=[provider_name(snapshot, root) for root in supplied_roots[:_SHARING]],
        inventories=_inventories(req, uuid) if may_try else [],
        dry_run_result=dry_run_result,
        timeline=timeline.requested_page(req, _events_of(subtree)),
        consumers_in_tree=consumers_in_tree,
        root=drawn_tree.root.name,
        serving_count=len(sharing_slots),
        served_count=len(supplied_roots),
    )


def _page_of_past(req: Request, ident: str, at: datetime.datetime) -> Reply:
    req.authorize("placement:v1:overview:show")
    state = past.state_of(req, at)
    slot = lookup.provider_in_path(state.snapshot, req.database, ident)
    drawn_tree = tree.draw(state.snapshot, slot)
    uuid = state.snapshot.provider(slot).uuid
    root = state.snapshot.provider(slot).root
    members = [state.snapshot.provider(member) for member in state.snapshot.forest.tree(root)]
    return pages.show(
        req,
        "provider_then.html",
        page="providers",
        at=at,
        provider=next(drawn_provider for drawn_provider in drawn_tree.providers if drawn_provider.uuid == uuid),
        drawn=drawn_tree,
        in_tree=of_tree(state.snapshot, root),
        consumers={member.uuid: state.consumers[member.id] for member in members},
    )


def _page_of_history(req: Request, ident: str) -> Reply:
    """Return the page of a deleted provider, or of a node without a provider, or raise NoSuchProvider."""
    uuid = subject.find(req.database, named_snapshot(req), ident)
    events = None if uuid is None else timeline.requested_page(req, _events_of((uuid,)))
    if uuid is None or events is None or events.is_empty:
        raise NoSuchProvider(provider=ident)
    name = next((entry.name for summary in events.summaries for entry in summary.entries if entry.name), uuid)
    return pages.show(req, "gone.html", page="providers", kind="provider", uuid=uuid, name=name, timeline=events)


def _by_provider(holders: Iterable[Holding]) -> dict[str, list[Holding]]:
    """Return the consumers with allocations of each provider, by uuid of the provider."""
    by_provider: defaultdict[str, list[Holding]] = defaultdict(list)
    for holder in holders:
        for uuid in holder.held:
            by_provider[uuid].append(holder)
    return by_provider


def _events_of(uuids: tuple[str, ...]) -> EventFilter:
    """Return the filter for the events of providers and their nodes."""
    return EventFilter(uuids=uuids, kinds=(PROVIDER, NODE))


def _inventories(req: Request, uuid: str) -> list[Inventory]:
    """Return the inventories of a provider, sorted by class; empty if it has just been deleted."""

    def work(db: Reading) -> list[Inventory]:
        provider = ResourceProvider.find(db, uuid)
        return [] if provider is None else Inventory.of_provider(db, provider)

    return sorted(req.read(work), key=lambda record: record.resource_class)


def _header(filters: dict[str, str], current: str, orders: tuple[str, str]) -> tuple[str, str]:
    """Return the query string that sorts by a column, and its ``aria-sort``; empty unless the list is sorted by it.

    Args:
        filters: The filters of the list.
        current: The order of the list.
        orders: The default order of the column, and the reverse.
    """
    next_order = orders[1] if current == orders[0] else orders[0]
    aria_sort = ("descending" if current.startswith("-") else "ascending") if current in orders else ""
    return _address(filters, sort=next_order), aria_sort


def _address(filters: dict[str, str], **parameters: object) -> str:
    """Return the query string of the list without empty values and the default order."""
    if parameters["sort"] == search.ORDERS[0]:
        del parameters["sort"]
    return urlencode({name: value for name, value in filters.items() if value} | parameters)
