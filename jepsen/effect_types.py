"""Effects of operations on consumers and providers: the vocabulary of ``calls`` and the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Expected(Enum):
    """Precondition of a write on the consumer or provider, other than a generation."""

    #: No precondition.
    ANY = "any"
    #: The consumer or provider must not exist.
    ABSENT = "absent"
    #: The consumer or provider must exist, with any generation.
    PRESENT = "present"


ANY, ABSENT, PRESENT = Expected.ANY, Expected.ABSENT, Expected.PRESENT
#: Placeholder for every consumer or provider, in an effect that may concern any of them.
EVERY = "*"
#: ``Holding.expiry`` of a consumer without a lease.
NEVER = "never"
#: ``Holding.expiry`` of a consumer whose expiry no response shows; ``Holding.request`` of a request that cannot be
#: compared with others.
UNKNOWN = "unknown"
#: ``Holding.request`` of a consumer that POST /v1/claims did not place.
NO_REQUEST = ""
#: Consumer type shown for consumers that have none.
NO_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class Holding:
    """The known state of an existing consumer; a field is None if a response does not show it.

    In the effect of a write, None keeps the consumer's value, with two exceptions: ``resources`` is None if the service
    chose the place and the response is lost, and a generation of None is the next one.

    Attributes:
        resources: Amounts by provider uuid and class; sorted tuples, so that equal values are equal keys.
        expiry: Expiry of the lease, as in ``expires_at``; ``NEVER``; or ``UNKNOWN``.
        request: Content of the POST /v1/claims request that placed the consumer; ``NO_REQUEST``; or ``UNKNOWN``.
    """

    resources: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] | None = None
    project: str | None = None
    user: str | None = None
    type: str | None = None
    generation: int | None = None
    expiry: str | None = None
    request: str | None = None

    @property
    def providers(self) -> Sequence[str]:
        """Uuids of the providers that the consumer uses; empty if unknown."""
        return [provider for provider, _ in self.resources or ()]


def amounts(resources: Mapping[str, Mapping[str, int]]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Return amounts by provider and class in the form of ``Holding.resources``."""
    return tuple(sorted((provider, tuple(sorted(by_class.items()))) for provider, by_class in resources.items()))


@dataclass(frozen=True, slots=True)
class ConsumerWrite:
    """A write that sets the holding of the consumer, or may do so.

    Attributes:
        expected: Precondition: ANY, ABSENT, PRESENT or a generation.
        holding: Holding after the write; None: the consumer is gone.
        certain: Whether the write took effect if the operation succeeded; otherwise the consumer may be unchanged.
        earliest_expiry: Earliest expiry of the lease that the write begins, in nanoseconds of the run; None: no lease.
    """

    consumer: str
    expected: Expected | int
    holding: Holding | None
    certain: bool = True
    earliest_expiry: int | None = None


@dataclass(frozen=True, slots=True)
class LeaseExtension:
    """A change or removal of the expiry of the consumer's lease.

    Attributes:
        holding: The consumer with the new expiry.
        earliest_expiry: As in ``ConsumerWrite``.
    """

    consumer: str
    holding: Holding
    earliest_expiry: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumerRead:
    """A response that shows the consumer.

    Attributes:
        holding: None: the consumer holds nothing.
        respects_expiry: Whether the response omits consumers whose lease has expired, as the v1 API does.
    """

    consumer: str
    holding: Holding | None
    respects_expiry: bool = False


@dataclass(frozen=True, slots=True)
class ConsumerRefusal:
    """A refused write of the consumer, which changed nothing.

    Attributes:
        reason: "generation": the generation differs from ``expected``; "missing": the consumer holds nothing; "held":
            it holds something; "capacity": too little capacity, or the inventory does not allow the amount;
            "collision": the write lost to concurrent writes; "other": anything else, such as an invalid request, or
            another consumer of the same request.
        expected: Generation in the request; None: the client expects that the consumer does not exist.
        actual: With "generation", the generation that the service states; None: the consumer does not exist.
        request: Content of a POST /v1/claims request, as ``Holding.request``; None: another route.  The refusal of such
            a request implies that the consumer was not placed by an equal one; "capacity" also implies that it has the
            generation ``expected``.
    """

    consumer: str
    reason: str
    expected: int | None = None
    actual: int | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderWrite:
    """A write that raises the generation of the provider.

    Attributes:
        expected: Required generation; ANY; PRESENT; or ABSENT for a creation.
        generation: Generation in the response, after the write; None: not shown.
        raises: Possible increases of the generation, which depend on the contents before.
    """

    provider: str
    expected: Expected | int
    generation: int | None = None
    raises: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class ProviderClaim:
    """A claim that names the provider and raises its generation by one, alone or with claims of the same transaction.

    Attributes:
        consumer: The claiming consumer.
        generation: Generation in the response, after the claim; None: not shown.
        certain: Whether the claim is known to name this provider.
    """

    provider: str
    consumer: str
    generation: int | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ConsumerEmptying:
    """A write that empties the consumer, and raises the generation of each provider that it used by one."""

    consumer: str


@dataclass(frozen=True, slots=True)
class ProviderRead:
    """A response that shows the generation of the provider; None: the provider does not exist."""

    provider: str
    generation: int | None


@dataclass(frozen=True, slots=True)
class ProviderRefusal:
    """A refused write of the provider, which changed nothing.

    Attributes:
        reason: "generation": the generation differs from ``expected``; "missing": the provider does not exist;
            "collision": the write lost to concurrent writes; "other": anything else.
    """

    provider: str
    reason: str
    expected: int | None = None
    actual: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderDeletion:
    """A deletion of the provider."""

    provider: str


@dataclass(frozen=True, slots=True)
class NodeOperation:
    """An operation on a bare metal node, whose generation is not checked because the service writes its inventory."""

    provider: str


Effect = (
    ConsumerWrite
    | LeaseExtension
    | ConsumerRead
    | ConsumerRefusal
    | ProviderWrite
    | ProviderClaim
    | ConsumerEmptying
    | ProviderRead
    | ProviderRefusal
    | ProviderDeletion
    | NodeOperation
)
