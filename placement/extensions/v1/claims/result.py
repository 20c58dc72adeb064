"""Results of the requests of a call."""

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
    """The outcome of a request."""

    CLAIMED = "claimed"
    #: The consumer has a new place.
    MOVED = "moved"
    #: The consumer holds the place that an equal request claimed earlier.
    HELD = "held"
    #: A dry run found a place.
    FOUND = "found"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Place:
    """The resources that a consumer holds or would hold."""

    #: Amounts by provider uuid and class.
    resources: Mapping[str, Mapping[str, int]]
    #: Names by provider uuid.
    provider_names: Mapping[str, str | None]
    #: Generations by provider uuid.
    provider_generations: Mapping[str, int]
    #: Providers by group and copy; None if unknown.
    mappings: Mappings | None
    #: The generation of the consumer after the write; None if nothing was written.
    consumer_generation: int | None = None
    #: The expiry by the database's clock (naive, UTC); None if the claim does not expire.
    expires_at: datetime.datetime | None = None

    @classmethod
    def of_holding(cls, holding: Holding) -> Place:
        """Return the place of a holding."""
        return cls(
            resources=holding.resources,
            provider_names={uuid: amounts.name for uuid, amounts in holding.held.items()},
            provider_generations={uuid: amounts.generation for uuid, amounts in holding.held.items()},
            mappings=holding.mappings,
            consumer_generation=holding.generation,
            expires_at=holding.expires_at,
        )


@dataclass(frozen=True, slots=True)
class Reason:
    """The parts of an explanation that a result shows.

    Unlike an ``Explanation``, it does not keep the snapshot alive.
    """

    #: The number of candidates, which may be positive but too small.
    found: int
    summary: str
    #: The rule that left no candidate, as in ``Explanation``.
    obstacle: tuple[str, str | None] | None
    relaxations: Sequence[Relaxation]

    @property
    def clause(self) -> str:
        """The summary in lower case, to follow a colon."""
        return self.summary[0].lower() + self.summary[1:]

    @classmethod
    def from_explanation(cls, explanation: Explanation) -> Self:
        """Return the reason from an explanation."""
        return cls(explanation.found, explanation.summary, explanation.obstacle, explanation.relaxations)


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of one request: a place, or a failure."""

    consumer: str
    outcome: RequestOutcome
    place: Place | None = None
    failure: errors.Failure | None = None
    #: The reason for a refusal; only with the first result of each query.
    reason: Reason | None = None


def refused_result(consumer: str, failure: errors.Failure, reason: Reason | None = None) -> ClaimResult:
    """Return the result of a refused request."""
    return ClaimResult(consumer, RequestOutcome.REFUSED, failure=failure, reason=reason)
