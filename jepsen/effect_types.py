"""What calls do to consumers and providers, and what they show of them: the vocabulary of ``calls`` and the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Expected(Enum):
    """What a write requires of the consumer or the provider, where that is no generation."""

    #: The write does not look at what there is.
    ANY = "any"
    #: There must be none.
    ABSENT = "absent"
    #: There must be one, of any generation.
    PRESENT = "present"


ANY, ABSENT, PRESENT = Expected.ANY, Expected.ABSENT, Expected.PRESENT
#: The consumer or the provider of an effect that may concern any of them.
EVERY = "*"
#: ``Holding.ends`` of a consumer without a lease.
NEVER = "never"
#: ``Holding.ends`` of a consumer that has a lease, or not, of which no reply says the end; and ``Holding.request`` of
#: one whose request cannot be compared with others.
UNKNOWN = "unknown"
#: ``Holding.request`` of a consumer that POST /v1/claims did not place.
NO_REQUEST = ""
#: The consumer type of consumers without one.
NO_TYPE = "unknown"


@dataclass(frozen=True, slots=True)
class Holding:
    """A consumer that exists, as far as it is known: a field is None where a reply does not show it.

    In the effect of a write, None means what the consumer had before; ``resources`` is None where the service chooses
    the place and the reply is lost; a generation of None is the next one.

    Attributes:
        resources: Amounts by class, by the uuid of the provider; sorted tuples, so that equal ones are equal keys.
        ends: When its lease ends, as ``expires_at`` shows it; ``NEVER``; or ``UNKNOWN``.
        request: The content of the request of POST /v1/claims that placed it; ``NO_REQUEST``; or ``UNKNOWN``.
    """

    resources: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] | None = None
    project: str | None = None
    user: str | None = None
    type: str | None = None
    generation: int | None = None
    ends: str | None = None
    request: str | None = None

    @property
    def providers(self) -> Sequence[str]:
        """The uuids of the providers of which it holds something; empty if that is not known."""
        return [provider for provider, _ in self.resources or ()]


def amounts(resources: Mapping[str, Mapping[str, int]]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """Return amounts by class by provider as ``Holding.resources`` has them."""
    return tuple(sorted((provider, tuple(sorted(by_class.items()))) for provider, by_class in resources.items()))


@dataclass(frozen=True, slots=True)
class ConsumerWrite:
    """A call made the consumer hold exactly this, or may have.

    Attributes:
        expected: What the consumer had to be for that: ANY, ABSENT, PRESENT or a generation.
        after: What it holds afterwards; None: nothing, it is gone.
        certain: Whether a call that succeeded did this; otherwise it may have left the consumer as it was.
        may_end: From when on the lease that this begins may end, in nanoseconds of the run; None: with no such lease.
    """

    consumer: str
    expected: Expected | int
    after: Holding | None
    certain: bool = True
    may_end: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumerExtended:
    """The lease of the consumer was given another end, or none.

    Attributes:
        shown: The consumer with the new end.
        may_end: As of ``ConsumerWrite``.
    """

    consumer: str
    shown: Holding
    may_end: int | None = None


@dataclass(frozen=True, slots=True)
class ConsumerRead:
    """A reply shows the consumer.

    Attributes:
        shown: None: it holds nothing.
        minds_ends: Whether the reply does not show a consumer whose lease is over, as those of the API below /v1.
    """

    consumer: str
    shown: Holding | None
    minds_ends: bool = False


@dataclass(frozen=True, slots=True)
class ConsumerRefused:
    """A write about the consumer was refused, and changed nothing.

    Attributes:
        why: "generation": it has another one than ``given``; "missing": it holds nothing; "held": it holds something;
            "capacity": no room, or the inventory does not allow the amount; "collision": others were faster;
            "other": anything else, such as a mistake in the request, or another consumer of the same call.
        given: The generation in the request; None: the client expects that there is no such consumer.
        actual: With "generation", the one that the service says it has; None: there is no such consumer.
        request: Of POST /v1/claims, which answers the request that placed the consumer with what it holds: as
            ``Holding.request``.  Then "capacity" says that the consumer is as ``given``.  None: another route.
    """

    consumer: str
    why: str
    given: int | None = None
    actual: int | None = None
    request: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderWrite:
    """A guarded write of a provider, or one that changes its generation by itself.

    Attributes:
        expected: What its generation had to be, ANY, or ABSENT: it is created.
        shown: The generation in the reply, after the write; None: not shown.
        raises: By how much the generation may have increased; which of them depends on what was there.
    """

    provider: str
    expected: Expected | int
    shown: int | None = None
    raises: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class ProviderUsed:
    """A claim named the provider: its generation increased by one, for this claim or for several written together.

    Attributes:
        consumer: The one that claimed.
        shown: The generation in the reply, after the claim; None: not shown.
        certain: Whether it is known that the claim named this provider.
    """

    provider: str
    consumer: str
    shown: int | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class ProvidersLeft:
    """A write emptied the consumer: the generation of each provider of which it held something increased by one."""

    consumer: str


@dataclass(frozen=True, slots=True)
class ProviderRead:
    """A reply shows the provider's generation; None: there is no such provider."""

    provider: str
    generation: int | None


@dataclass(frozen=True, slots=True)
class ProviderRefused:
    """A write of the provider was refused, and changed nothing.

    Attributes:
        why: "generation": it has another one than ``given``; "missing": there is none; "collision": others were
            faster; "other": anything else.
    """

    provider: str
    why: str
    given: int | None = None
    actual: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderGone:
    """The provider was deleted."""

    provider: str


@dataclass(frozen=True, slots=True)
class NodeTouched:
    """A bare metal node: the service itself writes the inventory of its provider, so its generation is not judged."""

    provider: str


Effect = (
    ConsumerWrite
    | ConsumerExtended
    | ConsumerRead
    | ConsumerRefused
    | ProviderWrite
    | ProviderUsed
    | ProvidersLeft
    | ProviderRead
    | ProviderRefused
    | ProviderGone
    | NodeTouched
)
