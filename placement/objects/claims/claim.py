"""A claim: the new allocations of one consumer, on all providers or on one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.db.writes import author
from placement.db.writes.author import Author
from placement.objects.consumer import Owner


class AnyGeneration(enum.Enum):
    """The type of ``ANY_GENERATION``."""

    ANY_GENERATION = "any generation will do"


#: The generation of a client that states none.  None, in contrast, states that the consumer does not exist yet.
ANY_GENERATION = AnyGeneration.ANY_GENERATION


@dataclass(frozen=True, slots=True)
class Claim:
    """The new allocations of one consumer, which replace the old ones.  A consumer without new allocations ends."""

    consumer: str
    #: Amounts by provider uuid and name of the resource class.
    resources: Mapping[str, Mapping[str, int]]
    owner: Owner
    #: The consumer generation that the client states.
    generation: int | AnyGeneration | None = ANY_GENERATION
    #: The uuid of the only provider that the claim concerns; None for all providers.  Allocations on other providers do
    #: not change and are not checked: they may exceed the capacity.  Such a claim states a generation.
    only_on: str | None = None
    #: The author of the change, for the history.
    author: Author | None = field(default_factory=author.current, compare=False)

    @property
    def is_first(self) -> bool:
        """Whether the client states that the consumer is new, and claims resources."""
        return self.generation is None and bool(self.resources) and self.only_on is None
