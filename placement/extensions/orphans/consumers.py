"""Consumers with their allocations, trees and ages, read in pages."""

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

#: Consumers per page.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class AgedHolder:
    """A consumer with its allocations and its age."""

    holder: Holding
    #: Time since the consumer was created or last changed, by the clock of the database; None if its row has no dates.
    age: datetime.timedelta | None
    #: The trees on which the consumer holds resources, by the uuid of the provider; without sharing providers.
    trees: Mapping[str, Tree]

    def is_older_than(self, limit: datetime.timedelta) -> bool:
        """Whether the consumer was neither created nor changed within this time; False if its age is unknown."""
        return self.age is not None and self.age >= limit

    @property
    def hosts(self) -> dict[str, Tree]:
        """The trees on which the consumer holds resources, by the uuids of their roots."""
        return {tree.uuid: tree for tree in self.trees.values()}

    def providers_of(self, host: Tree) -> list[str]:
        """Return the uuids of the providers in a tree on which the consumer holds resources."""
        return [provider for provider, tree in self.trees.items() if tree.uuid == host.uuid]

    @property
    def amounts(self) -> dict[str, int]:
        """The amounts that the consumer holds on all providers together, by class."""
        sums: dict[str, int] = {}
        for allocations in self.holder.held.values():
            for name, amount in allocations.resources.items():
                sums[name] = sums.get(name, 0) + amount
        return sums


def read(
    database: Database, conditions: ConsumerFilter, advance: Callable[[int], object] = lambda _: None
) -> Iterator[AgedHolder]:
    """Yield the consumers that meet the conditions, in the order of their creation.

    Args:
        database: The database; each transaction reads one page.
        advance: A callback with the number of consumers, after each page.
    """
    now = database.read(leases.now)
    after: int | None = 0
    while after is not None:
        page, trees = database.read(functools.partial(_page, conditions=conditions, after=after))
        for holder in page.holders:
            yield _add_age(holder, now, trees)
        advance(len(page.holders))
        after = page.next


def _page(db: Reading, conditions: ConsumerFilter, after: int) -> tuple[ConsumerPage, dict[str, Tree]]:
    page = consumer_pages.page(db, conditions, PAGE, after)
    return page, hosts.trees_of(db, {provider for holder in page.holders for provider in holder.held})


def _add_age(holder: Holding, now: datetime.datetime, trees: Mapping[str, Tree]) -> AgedHolder:
    dates = [date for date in (holder.created_at, holder.updated_at) if date is not None]
    own = {provider: trees[provider] for provider in holder.held if provider in trees}
    return AgedHolder(
        holder,
        # The clock of the worker that wrote the date may be ahead.
        max(now - max(dates), datetime.timedelta()) if dates else None,
        {provider: tree for provider, tree in own.items() if not tree.is_sharing},
    )
