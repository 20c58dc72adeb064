"""Calls and their requests, with the digest that identifies a repeated request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from placement.db.writes import author
from placement.db.writes.author import Author
from placement.extensions.v1.pick.strategy import Preference, Strategy
from placement.objects.consumer import Owner
from placement.search.query.query import UNSUFFIXED, SearchQuery


@dataclass(frozen=True)
class ClaimRequest:
    """A request for a place for one consumer."""

    consumer: str
    owner: Owner
    query: SearchQuery
    #: Copies of the query to place for the consumer, each in a different tree.
    count: int = 1
    #: Whether this is a new claim: the consumer must hold nothing, or exactly the result of an earlier attempt.
    #: Otherwise the consumer is moved, and its present resources are released.
    keep: bool = True
    #: The consumer generation that the client states; None if the consumer does not exist.
    generation: int | None = None
    #: Whether to find a place without claiming it.
    dry_run: bool = False
    #: The author of the request.
    author: Author | None = field(default_factory=author.current, compare=False)

    @cached_property
    def content(self) -> str:
        """The digest of the request without its consumer."""
        owner = [self.owner.project, self.owner.user, self.owner.consumer_type]
        text = json.dumps([self.query.canonical, self.count, owner, self.keep, self.generation])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ClaimCall:
    """One POST /v1/claims: requests that are placed together, and options for all of them."""

    requests: Sequence[ClaimRequest]
    strategy: Strategy
    #: Whether to write nothing if one of the requests cannot be placed.
    all_or_nothing: bool = False
    #: Seconds until the claims expire; None if they do not expire.
    expires_in: int | None = None
    #: Whether the client states ``expires_in``; otherwise a moved consumer keeps its expiry.
    sets_expiry: bool = False
    #: Consumers to keep apart from: places avoid their trees.
    apart_from: frozenset[str] = frozenset()
    #: Consumers to join: places are in trees on which each of them holds resources.
    together_with: frozenset[str] = frozenset()
    #: Whether to roll back the whole call.
    dry_run: bool = False

    @property
    def may_be_optimistic(self) -> bool:
        """Whether the call may claim from a recent snapshot, if the provider has not changed since.

        The place must depend on one provider (``ChosenPlace.depends_on_one_provider``), whose generation proves that it
        is still valid.  So the call is for one consumer, and neither names trees nor compares providers.
        """
        [first, *more_requests] = self.requests
        return (
            not (more_requests or self.dry_run or self.all_or_nothing or self.apart_from or self.together_with)
            and (self.strategy.spread_over is None and self.strategy.preference is not Preference.PACK)
            and (first.keep and not first.dry_run and first.count == 1)
            and _names_no_trees(first.query)
        )


def _names_no_trees(query: SearchQuery) -> bool:
    """Whether the query names neither trees nor aggregates, only amounts and traits."""
    [first, *more_groups] = query.groups
    return not more_groups and first.suffix == UNSUFFIXED and first.in_tree is None and not first.aggregates.names
