"""/console/providers"""

from __future__ import annotations

import contextlib
from urllib.parse import urlencode

from placement.db.writes.notes import PROVIDER
from placement.db.writes.transaction import Reading
from placement.extensions.console import dry_runs, pages, timeline
from placement.extensions.console.views import search, tree
from placement.extensions.console.views.cloud import class_names, named
from placement.extensions.console.views.dry_run import DryRunAnswer
from placement.extensions.v1 import lookup
from placement.extensions.v1.failures import NoSuchProvider
from placement.extensions.v1.history import subject
from placement.extensions.v1.history.event import NODE, EventFilter
from placement.extensions.v1.overview.trees import shared_by, shares_with
from placement.http.endpoint import endpoint
from placement.http.request import Request
from placement.http.response import Reply
from placement.objects import usage
from placement.objects.claims import consumer_pages
from placement.objects.claims.consumer_pages import ConsumerFilter, ConsumerPage
from placement.objects.inventory import AMOUNTS, Inventory
from placement.objects.provider import ResourceProvider
from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Query
from placement.version_history import OLDEST

#: Providers on one page of the list, and names that a field suggests.
ROWS, _SUGGESTIONS = 50, 500
#: Consumers, and sharing relations, on the page of a provider.
_HOLDERS, _NAMED = 50, 20

_TEXT = string(maxLength=255)
_LIST = Query(
    Object(
        Field("name", _TEXT, since=OLDEST),
        Field("class", _TEXT, since=OLDEST),
        Field("trait", _TEXT, since=OLDEST),
        Field("aggregate", _TEXT, since=OLDEST),
        Field("page", string(pattern="^[1-9][0-9]{0,5}$"), since=OLDEST),
    )
)


@endpoint(policy="placement:v1:overview:show", query=_LIST, negotiates=False)
def list_providers(req: Request) -> Reply:
    """List the providers that match, in pages, by name."""
    given = {name: value.strip() for name, value in req.parameters.items() if name != "page"}
    wanted = search.Wanted(*(given.get(name, "") for name in ("name", "class", "trait", "aggregate")))
    number = int(req.parameters.get("page", 1))
    snapshot = req.index.current()
    slots = search.find_slots(wanted, snapshot)
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
        previous=_page(given, min(number - 1, last_page)) if number > 1 else "",
        next=_page(given, number + 1) if number < last_page else "",
    )


@endpoint(policy="placement:v1:providers:show", query=timeline.QUERY, negotiates=False)
def show(req: Request, ident: str) -> Reply:
    """Show a provider: its tree, traits, aggregates, what it shares with whom, who holds what in the tree, its history.

    Of one that is gone its history is shown, to those who may see that.
    """
    if lookup.find(req.index.current(), ident) is None:
        return _page_of_history(req, ident)
    return _page_of(req, ident)


@endpoint(policy="placement:v1:providers:show", negotiates=False)
def try_inventory(req: Request, ident: str) -> Reply:
    """Show a provider, and what the service would answer to a change of one of its inventories."""
    snapshot = req.index.current()
    uuid = snapshot.provider(lookup.of_path(snapshot, ident)).uuid
    form = dry_runs.form_of(req)
    amounts = {name: _number(form.get(name, "")) for name in (*AMOUNTS, "resource_provider_generation")}
    return _page_of(req, uuid, dry_runs.inventory(req, uuid, form.get("resource_class", ""), amounts))


def _number(text: str) -> int | float | str:
    """Return the number that was typed; the text if it is none, which the schema then refuses."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _page_of(req: Request, ident: str, tried: DryRunAnswer | None = None) -> Reply:
    snapshot = req.index.current()
    slot = lookup.of_path(snapshot, ident)
    uuid, root = snapshot.provider(slot).uuid, snapshot.provider(slot).root
    drawn = tree.draw(snapshot, slot)
    members = {snapshot.provider(each).id: snapshot.provider(each).uuid for each in snapshot.forest.tree(root)}

    def work(db: Reading) -> tuple[dict[int, int], ConsumerPage]:
        wanted = ConsumerFilter(providers=members.keys())
        return usage.count_by_provider(db, [*members]), consumer_pages.page(db, wanted, _HOLDERS)

    counts, held = req.read(work)
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
        consumers={members[provider_id]: count for provider_id, count in counts.items()},
        held=held.holders,
        members=frozenset(members.values()),
        more=held.next is not None,
        serving=[named(snapshot, each) for each in serving[:_NAMED]],
        served=[named(snapshot, each) for each in served[:_NAMED]],
        inventories=_inventories(req, uuid) if may_try else [],
        tried=tried,
        timeline=timeline.of(req, _told_of(uuid)),
        serving_count=len(serving),
        served_count=len(served),
    )


def _page_of_history(req: Request, ident: str) -> Reply:
    """Return the page of a provider that is gone, or of a node without a provider; raises NoSuchProvider."""
    uuid = subject.find(req.database, req.index.current(), ident)
    told = None if uuid is None else timeline.of(req, _told_of(uuid))
    if uuid is None or told is None or told.is_empty:
        raise NoSuchProvider(provider=ident)
    name = next((each.name for each in told.entries if each.name), uuid)
    return pages.show(req, "gone.html", page="providers", what="provider", uuid=uuid, name=name, timeline=told)


def _told_of(uuid: str) -> EventFilter:
    """Return what the history of a provider has: also what happened to its node."""
    return EventFilter(uuids=(uuid,), kinds=(PROVIDER, NODE))


def _inventories(req: Request, uuid: str) -> list[Inventory]:
    """Return the inventories of a provider, by class; none if it was deleted meanwhile."""

    def work(db: Reading) -> list[Inventory]:
        provider = ResourceProvider.find(db, uuid)
        return [] if provider is None else Inventory.of_provider(db, provider)

    return sorted(req.read(work), key=lambda record: record.resource_class)


def _page(given: dict[str, str], number: int) -> str:
    """Return the query string of another page of the list."""
    return urlencode({name: value for name, value in given.items() if value} | {"page": str(number)})
