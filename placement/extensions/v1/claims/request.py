"""What a call asks for, and the digest by which a repeated request is known."""

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
    """A place that one consumer asks for."""

    consumer: str
    owner: Owner
    query: SearchQuery
    #: How many copies the consumer gets of what the query asks for, each in another tree.
    count: int = 1
    #: Whether this is a new claim: the consumer must hold nothing yet, or what this request has claimed.  Otherwise
    #: it is moved, and gives up what it holds.
    keep: bool = True
    #: The generation that the client states; None: there is no such consumer.
    generation: int | None = None
    #: Whether the place is only searched for.
    dry_run: bool = False
    #: Who asks for it.
    author: Author | None = field(default_factory=author.current, compare=False)

    @cached_property
    def content(self) -> str:
        """The digest of everything that the request asks for, apart from the consumer."""
        owner = [self.owner.project, self.owner.user, self.owner.consumer_type]
        text = json.dumps([self.query.canonical, self.count, owner, self.keep, self.generation])
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ClaimCall:
    """Everything that one call asks for."""

    requests: Sequence[ClaimRequest]
    strategy: Strategy
    #: Whether nothing is written if one of the requests cannot be placed.
    all_or_nothing: bool = False
    #: Seconds after which what was claimed is given back; None: never.
    expires_in: int | None = None
    #: Whether the client states ``expires_in``; if not, a consumer that is moved keeps its end.
    sets_end: bool = False
    #: No consumer of the call gets a place in a tree where one of these holds something.
    apart_from: frozenset[str] = frozenset()
    #: Each consumer of the call gets a place in a tree where each of these holds something.
    together_with: frozenset[str] = frozenset()
    #: Whether the whole call is only tried.
    dry_run: bool = False

    @property
    def may_be_optimistic(self) -> bool:
        """Whether the call may claim from a recent snapshot, if the provider has not changed since.

        The generation of one provider must vouch for the place (``ChosenPlace.depends_on_one_provider``), so the call
        is for one consumer, and neither names trees nor compares providers.
        """
        [first, *others] = self.requests
        return (
            not (others or self.dry_run or self.all_or_nothing or self.apart_from or self.together_with)
            and (self.strategy.spread_over is None and self.strategy.preference is not Preference.PACK)
            and (first.keep and not first.dry_run and first.count == 1)
            and _names_no_trees(first.query)
        )


def _names_no_trees(query: SearchQuery) -> bool:
    """Return whether the query is only about amounts and traits, not about certain trees or aggregates."""
    [first, *others] = query.groups
    return not others and first.suffix == UNSUFFIXED and first.in_tree is None and not first.aggregates.names
