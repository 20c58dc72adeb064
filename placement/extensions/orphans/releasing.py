"""Release of orphans: the limits, the amounts freed, and the transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from placement.db.database import Database
from placement.extensions.orphans.comparison import DiscrepancyKind, Review
from placement.extensions.orphans.consumers import AgedHolder
from placement.objects.claims import release

#: Maximum share of orphans among all consumers and among the consumers of one type; more suggest an incomplete list.
LARGEST_SHARE = 0.5
#: Maximum number of orphans of one type whose share is never suspicious.
_MAX_UNSUSPICIOUS = 10


@dataclass(slots=True)
class FreedAmounts:
    """The amounts that a release of consumers frees."""

    #: Consumers by type and project.
    consumers: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Amounts by class.
    amounts: Counter[str] = field(default_factory=Counter)
    #: Consumers by the provider on which they hold resources.
    providers: Counter[str] = field(default_factory=Counter)

    @classmethod
    def from_consumers(cls, consumers: Iterable[AgedHolder]) -> FreedAmounts:
        """Return the amounts that these consumers hold."""
        freed = cls()
        for consumer in consumers:
            holder = consumer.holder
            freed.consumers[holder.consumer_type, holder.project or "unknown"] += 1
            freed.amounts.update(consumer.amounts)
            freed.providers.update(allocations.name or allocations.provider for allocations in holder.held.values())
        return freed


def orphans(review: Review) -> list[AgedHolder]:
    """Return the consumers unknown to all sources."""
    return [orphan.consumer for orphan in review.of_kind(DiscrepancyKind.ORPHAN) if orphan.consumer is not None]


def is_suspicious(review: Review, consumers: Sequence[AgedHolder]) -> bool:
    """Whether the share of these orphans is so large that most likely a list or a cloud is incomplete."""
    numbers = Counter(consumer.holder.consumer_type for consumer in consumers)
    return len(consumers) > LARGEST_SHARE * review.compared.total() or any(
        number > max(LARGEST_SHARE * review.compared[name], _MAX_UNSUSPICIOUS) for name, number in numbers.items()
    )


def release_orphans(
    database: Database,
    consumers: Sequence[AgedHolder],
    released: list[str],
    tried: set[str],
    advance: Callable[[int], object] = lambda _: None,
) -> None:
    """Release consumers, in transactions of bounded size.

    A consumer that has changed since it was read is kept: a client still uses it.

    Args:
        database: The database with the consumers.
        consumers: The consumers, in the state in which they were read.
        released: A list that receives the uuids of the released consumers after each transaction.
        tried: A set that receives the uuids of all consumers of each transaction.
        advance: A callback with the number of consumers, after each transaction.
    """
    for start in range(0, len(consumers), release.BATCH):
        batch = consumers[start : start + release.BATCH]
        released += database.write(lambda db: release.release_unchanged(db, [consumer.holder for consumer in batch]))  # noqa: B023
        tried.update(consumer.holder.uuid for consumer in batch)
        advance(len(batch))
