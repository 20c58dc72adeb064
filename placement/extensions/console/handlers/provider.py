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
from placement.extensions.console.views.cloud import class_names, named, of_tree
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

#: Providers on one page of the list, and names that a field suggests.
ROWS, _SUGGESTIONS = 50, 500
#: The columns that the list can be sorted by, each with its orders: the first, and the other way round.
_COLUMNS = (("Provider", ("name", "-name")), ("Tree", ("tree", "-tree")), ("Used", ("-used", "used")))
#: Consumers, and sharing relations, on the page of a provider.
_HOLDERS, _NAMED = 50, 20

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
    """List the providers that match, in pages, by name or in another order."""
    given = {name: value.strip() for name, value in req.parameters.items() if name != "page"}
    wanted = search.Criteria(*(given.get(name, "") for name in ("name", "class", "trait", "aggregate")))
    number = int(req.parameters.get("page", 1))
    snapshot = named_snapshot(req)
    order = given.pop("sort", search.ORDERS[0])
    slots = search.ordered(search.find_slots(wanted, snapshot), snapshot, order, wanted.resource_class)
    last_page = max(1, -(-len(slots) // ROWS))
    first = (number - 1) * ROWS
    shown = slots[first : first + ROWS]
    return pages.show(
        req,
        "providers.html",
        page="providers",
        wanted=wanted,
        classes=class_names(snapshot),
        traits=sorted(snapshot.traits)[:_SUGGESTIONS],
        count=len(slots),
        first=first + 1,
        last=first + len(shown),
        rows=[search.row(snapshot, slot) for slot in shown],
        order=order,
        columns=[(label, *_order(given, order, ways)) for label, ways in _COLUMNS],
        previous=_address(given, sort=order, page=min(number - 1, last_page)) if number > 1 else "",
        next=_address(given, sort=order, page=number + 1) if number < last_page else "",
    )


@endpoint(policy="placement:v1:providers:show", query=Query(Object(timeline.AFTER, past.AT)), negotiates=False)
def show(req: Request, ident: str) -> Reply:
    """Show a provider: its tree, traits, aggregates, what it shares with whom, who holds what in the tree, its history.

    Of one that is gone its history is shown, to those who may see that.  Of a past time its tree, traits and aggregates
    are shown, to those who may see the overview of that time.
    """
    at = past.moment_of(req)
    if at is not None:
        return _page_of_past(req, ident, at)
    if lookup.find(named_snapshot(req), ident) is None:
        return _page_of_history(req, ident)
    return _page_of(req, ident)


@endpoint(policy="placement:v1:providers:show", negotiates=False)
def try_inventory(req: Request, ident: str) -> Reply:
    """Show a provider, and what the service would answer to a change of one of its inventories."""
    snapshot = named_snapshot(req)
    uuid = snapshot.provider(lookup.of_path(snapshot, req.database, ident)).uuid
    form = dry_runs.form_of(req)
    amounts = {name: _number(form.get(name, "")) for name in (*AMOUNTS, "resource_provider_generation")}
    return _page_of(req, uuid, dry_runs.inventory(req, uuid, form.get("resource_class", ""), amounts))


def _number(text: str) -> int | float | str:
    """Return the number that was typed; the text if it is none, which the schema then refuses."""
    with contextlib.suppress(orjson.JSONDecodeError):
        value = orjson.loads(text)
        if type(value) in (int, float):
            return value  # type: ignore[no-any-return]
    return text


def _page_of(req: Request, ident: str, tried: DryRunResult | None = None) -> Reply:
    snapshot = named_snapshot(req)
    slot = lookup.of_path(snapshot, req.database, ident)
    uuid, root = snapshot.provider(slot).uuid, snapshot.provider(slot).root
    below = tuple(snapshot.provider(each).uuid for each in depth_first(snapshot, slot))
    drawn = tree.draw(snapshot, slot)
    members = {snapshot.provider(each).id: snapshot.provider(each).uuid for each in snapshot.forest.tree(root)}

    def work(db: Reading) -> tuple[dict[int, int], int, ConsumerPage]:
        counts, in_tree = usage.count_by_provider(db, [*members]), usage.count_among(db, [*members])
        return counts, in_tree, consumer_pages.page(db, ConsumerFilter(providers=members.keys()), _HOLDERS)

    counts, in_all, held = req.read(work)
    may_try = req.may("placement:resource_providers:inventories:update")
    serving, served = shared_by(snapshot, root), shares_with(snapshot, root)
    return pages.show(
        req,
        "provider.html",
        page="providers",
        provider=next(each for each in drawn.providers if each.uuid == uuid),
        generation=int(snapshot.generations[slot]),
        ancestors=[named(snapshot, each) for each in reversed(snapshot.ancestry(slot)[1:])],
        drawn=drawn,
        in_tree=of_tree(snapshot, root),
        consumers={members[provider_id]: count for provider_id, count in counts.items()},
        held=_by_provider(held.holders),
        serving=[named(snapshot, each) for each in serving[:_NAMED]],
        served=[named(snapshot, each) for each in served[:_NAMED]],
        inventories=_inventories(req, uuid) if may_try else [],
        tried=tried,
        timeline=timeline.of(req, _told_of(below)),
        consumers_in_tree=in_all,
        root=drawn.root.name,
        serving_count=len(serving),
        served_count=len(served),
    )


def _page_of_past(req: Request, ident: str, at: datetime.datetime) -> Reply:
    req.authorize("placement:v1:overview:show")
    state = past.state_of(req, at)
    slot = lookup.of_path(state.snapshot, req.database, ident)
    drawn = tree.draw(state.snapshot, slot)
    uuid = state.snapshot.provider(slot).uuid
    members = [state.snapshot.provider(each) for each in state.snapshot.forest.tree(state.snapshot.provider(slot).root)]
    return pages.show(
        req,
        "provider_then.html",
        page="providers",
        at=at,
        provider=next(each for each in drawn.providers if each.uuid == uuid),
        drawn=drawn,
        in_tree=of_tree(state.snapshot, state.snapshot.provider(slot).root),
        consumers={member.uuid: state.consumers[member.id] for member in members},
    )


def _page_of_history(req: Request, ident: str) -> Reply:
    """Return the page of a provider that is gone, or of a node without a provider; raises NoSuchProvider."""
    uuid = subject.find(req.database, named_snapshot(req), ident)
    told = None if uuid is None else timeline.of(req, _told_of((uuid,)))
    if uuid is None or told is None or told.is_empty:
        raise NoSuchProvider(provider=ident)
    name = next((each.name for story in told.summaries for each in story.entries if each.name), uuid)
    return pages.show(req, "gone.html", page="providers", what="provider", uuid=uuid, name=name, timeline=told)


def _by_provider(holders: Iterable[Holding]) -> dict[str, list[Holding]]:
    """Return the consumers that hold something on each provider, by its uuid."""
    found: defaultdict[str, list[Holding]] = defaultdict(list)
    for holder in holders:
        for uuid in holder.held:
            found[uuid].append(holder)
    return found


def _told_of(uuids: tuple[str, ...]) -> EventFilter:
    """Return what the history of providers has: also what happened to their nodes."""
    return EventFilter(uuids=uuids, kinds=(PROVIDER, NODE))


def _inventories(req: Request, uuid: str) -> list[Inventory]:
    """Return the inventories of a provider, by class; none if it was deleted meanwhile."""

    def work(db: Reading) -> list[Inventory]:
        provider = ResourceProvider.find(db, uuid)
        return [] if provider is None else Inventory.of_provider(db, provider)

    return sorted(req.read(work), key=lambda record: record.resource_class)


def _order(given: dict[str, str], present: str, ways: tuple[str, str]) -> tuple[str, str]:
    """Return the query string of the list in the order of a column, the other way round where it is in that order.

    The second value says for ARIA how the column is sorted; it is empty if it is not.
    """
    wanted = ways[1] if present == ways[0] else ways[0]
    sorted_how = ("descending" if present.startswith("-") else "ascending") if present in ways else ""
    return _address(given, sort=wanted), sorted_how


def _address(given: dict[str, str], **more: object) -> str:
    """Return the query string of the list, but without what need not be said."""
    if more["sort"] == search.ORDERS[0]:
        del more["sort"]
    return urlencode({name: value for name, value in given.items() if value} | more)
