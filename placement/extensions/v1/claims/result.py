"""What became of each request of a call."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from placement import errors
from placement.extensions.v1.explain.explanation import Explanation, Relaxation
from placement.objects.claims.holding import Holding, Mappings


class RequestOutcome(StrEnum):
    """How a request ended."""

    CLAIMED = "claimed"
    #: It has another place than before.
    MOVED = "moved"
    #: An earlier request with the same content was placed.
    HELD = "held"
    #: A place was found by a dry run.
    FOUND = "found"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Place:
    """What a consumer holds, or would hold, and where."""

    #: Amounts by provider uuid and class.
    resources: Mapping[str, Mapping[str, int]]
    #: By provider uuid, as are the generations.
    provider_names: Mapping[str, str | None]
    provider_generations: Mapping[str, int]
    #: None if they are unknown.
    mappings: Mappings | None
    #: None if nothing was written.
    consumer_generation: int | None = None
    #: By the database's clock: naive, UTC; None for no end.
    expires_at: datetime.datetime | None = None

    @classmethod
    def of_held(cls, held: Holding) -> Place:
        """Return what a consumer holds."""
        return cls(
            resources=held.resources,
            provider_names={uuid: on.name for uuid, on in held.held.items()},
            provider_generations={uuid: on.generation for uuid, on in held.held.items()},
            mappings=held.mappings,
            consumer_generation=held.generation,
            expires_at=held.expires_at,
        )


@dataclass(frozen=True, slots=True)
class Reason:
    """What a result shows of the explanation of its query, without keeping a snapshot alive."""

    #: The number of candidates; not 0 if there are some, but not enough.
    found: int
    summary: str
    #: As in ``Explanation``.
    obstacle: tuple[str, str | None] | None
    relaxations: Sequence[Relaxation]

    @property
    def clause(self) -> str:
        """The summary as it follows a colon."""
        return self.summary[0].lower() + self.summary[1:]

    @classmethod
    def of(cls, explanation: Explanation) -> Self:
        """Return the reason that an explanation gives."""
        return cls(explanation.found, explanation.summary, explanation.obstacle, explanation.relaxations)


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one request: a place, or a failure."""

    consumer: str
    outcome: RequestOutcome
    place: Place | None = None
    failure: errors.Failure | None = None
    #: Why nothing fits; only with the first result of each query.
    reason: Reason | None = None


def refused(consumer: str, failure: errors.Failure, reason: Reason | None = None) -> ClaimResult:
    """Return the result of a request that was refused."""
    return ClaimResult(consumer, RequestOutcome.REFUSED, failure=failure, reason=reason)
