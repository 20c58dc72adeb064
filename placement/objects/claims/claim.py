"""A claim: all that one consumer is to hold from now on, everywhere or on one provider."""

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


#: Stands for a generation that the client does not state.  The value ``None`` is another one: it states that the
#: consumer does not exist yet.
ANY_GENERATION = AnyGeneration.ANY_GENERATION


@dataclass(frozen=True, slots=True)
class Claim:
    """All that one consumer is to hold from now on; a consumer that is left with nothing ends."""

    consumer: str
    #: Amounts by provider uuid and name of the resource class.
    resources: Mapping[str, Mapping[str, int]]
    owner: Owner
    #: The consumer generation that the client states.
    generation: int | AnyGeneration | None = ANY_GENERATION
    #: The uuid of the one provider that the claim is about; None for all providers.  What the consumer holds on others
    #: stays as it is, and is not judged: it may be more than fits there now.  Such a claim states a generation.
    only_on: str | None = None
    #: Who asks for it.
    author: Author | None = field(default_factory=author.current, compare=False)

    @property
    def is_first(self) -> bool:
        """Whether the client states that the consumer holds nothing yet, and claims something."""
        return self.generation is None and bool(self.resources) and self.only_on is None
