"""Orphans are given back: what of them may be, what that makes free, and the transactions that do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from placement.db.database import Database
from placement.extensions.orphans.comparison import DiscrepancyKind, Review
from placement.extensions.orphans.consumers import AgedHolder
from placement.objects.claims import release

#: Of so many of the consumers that were compared, at most, nobody may know: more are a sign of a wrong list.
LARGEST_SHARE = 0.5
#: The same of those of one type, which may be few beside others; so many of them are no sign of anything.
_FEW = 10


@dataclass(slots=True)
class FreedAmounts:
    """What the release of consumers makes free."""

    #: Consumers by type and project.
    consumers: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: By class.
    amounts: Counter[str] = field(default_factory=Counter)
    #: Consumers by the provider on which they hold something.
    providers: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, consumers: Iterable[AgedHolder]) -> FreedAmounts:
        """Return what these consumers hold."""
        freed = cls()
        for consumer in consumers:
            holder = consumer.holder
            freed.consumers[holder.consumer_type, holder.project or "unknown"] += 1
            freed.amounts.update(consumer.amounts)
            freed.providers.update(held.name or held.provider for held in holder.held.values())
        return freed


def orphans(review: Review) -> list[AgedHolder]:
    """Return the consumers that nobody knows."""
    return [one.consumer for one in review.of(DiscrepancyKind.ORPHAN) if one.consumer is not None]


def is_most(review: Review, chosen: Sequence[AgedHolder]) -> bool:
    """Whether these are so many of all consumers that the list is more likely wrong than the consumers."""
    of_types = Counter(one.holder.consumer_type for one in chosen)
    return len(chosen) > LARGEST_SHARE * review.compared.total() or any(
        number > max(LARGEST_SHARE * review.compared[kind], _FEW) for kind, number in of_types.items()
    )


def give_back(
    database: Database,
    consumers: Sequence[AgedHolder],
    released: list[str],
    tried: set[str],
    advance: Callable[[int], object] = lambda _: None,
) -> None:
    """Release consumers, in transactions of bounded size.

    A consumer that was changed since it was read keeps what it holds: somebody knows it.

    Args:
        database: Where they are.
        consumers: As they were read.
        released: Takes the uuids of those that were released, after each transaction.
        tried: Takes the uuids of those that the transaction was about.
        advance: Called with the number of consumers after each transaction.
    """
    for start in range(0, len(consumers), release.BATCH):
        batch = consumers[start : start + release.BATCH]
        released += database.write(lambda db: release.release_unchanged(db, [one.holder for one in batch]))  # noqa: B023
        tried.update(one.holder.uuid for one in batch)
        advance(len(batch))
