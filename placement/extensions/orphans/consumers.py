"""All consumers with what they hold, on which trees, and how old they are; read in pages."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from placement.db.database import Database
from placement.db.writes.transaction import Reading
from placement.extensions.orphans import hosts
from placement.extensions.orphans.hosts import Tree
from placement.objects.claims import consumer_pages, leases
from placement.objects.claims.consumer_pages import ConsumerFilter, ConsumerPage
from placement.objects.claims.holding import Holding

#: Consumers of a page.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class AgedHolder:
    """A consumer with what it holds, as one page found it."""

    holder: Holding
    #: How long ago it was created or changed last, by the clock of the database; None if its row does not say.
    age: datetime.timedelta | None
    #: The trees of the providers on which it holds something, by the uuids of these, without shared providers.
    trees: Mapping[str, Tree]

    def is_older_than(self, bound: datetime.timedelta) -> bool:
        """Whether it was neither created nor changed within this time; not if that is unknown."""
        return self.age is not None and self.age >= bound

    @property
    def hosts(self) -> dict[str, Tree]:
        """The trees on which it holds something, by the uuids of their roots."""
        return {tree.uuid: tree for tree in self.trees.values()}

    def providers_of(self, host: Tree) -> list[str]:
        """Return the uuids of the providers of a tree on which it holds something."""
        return [provider for provider, tree in self.trees.items() if tree.uuid == host.uuid]

    @property
    def amounts(self) -> dict[str, int]:
        """What it holds on all providers together, by class."""
        sums: dict[str, int] = {}
        for held in self.holder.held.values():
            for name, amount in held.resources.items():
                sums[name] = sums.get(name, 0) + amount
        return sums


def read(
    database: Database, wanted: ConsumerFilter, advance: Callable[[int], object] = lambda _: None
) -> Iterator[AgedHolder]:
    """Yield the consumers that meet the conditions, in the order of their creation.

    Args:
        database: Where they are; no statement reads more than one page.
        wanted: The conditions.
        advance: Called with the number of consumers after each page.
    """
    now = database.read(leases.now)
    after: int | None = 0
    while after is not None:
        page, trees = database.read(functools.partial(_page, wanted=wanted, after=after))
        for holder in page.holders:
            yield _aged(holder, now, trees)
        advance(len(page.holders))
        after = page.next


def _page(db: Reading, wanted: ConsumerFilter, after: int) -> tuple[ConsumerPage, dict[str, Tree]]:
    page = consumer_pages.page(db, wanted, PAGE, after)
    return page, hosts.trees_of(db, {provider for holder in page.holders for provider in holder.held})


def _aged(holder: Holding, now: datetime.datetime, trees: Mapping[str, Tree]) -> AgedHolder:
    written = [date for date in (holder.created_at, holder.updated_at) if date is not None]
    held = {provider: trees[provider] for provider in holder.held if provider in trees}
    return AgedHolder(
        holder,
        # The clock of the worker that wrote it may be ahead.
        max(now - max(written), datetime.timedelta()) if written else None,
        {provider: tree for provider, tree in held.items() if not tree.is_shared},
    )
