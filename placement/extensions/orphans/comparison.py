"""Discrepancies between the consumers that hold resources and the consumers that should hold resources."""

from __future__ import annotations

import datetime
import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from placement.extensions.orphans.consumers import AgedHolder
from placement.extensions.orphans.expected import INSTANCE, Expected, NovaServer
from placement.extensions.orphans.hosts import Tree
from placement.objects.usage import UNKNOWN_TYPE
from placement.uuids import canonical


class DiscrepancyKind(enum.StrEnum):
    """The kind of a discrepancy."""

    #: A consumer unknown to all sources.
    ORPHAN = "orphan"
    #: A consumer unknown so far: it was claimed or changed a short time ago.
    YOUNG = "young"
    #: A server that holds resources on several hosts.
    DOUBLE = "double"
    #: A server that holds resources on a host other than its own.
    WRONG_HOST = "wrong-host"
    #: A server that holds resources but runs on no host.
    NO_HOST = "no-host"
    #: A server that holds amounts other than its flavor's.
    AMOUNTS = "amounts"
    #: A server that runs on a host but holds nothing.
    MISSING = "missing"


#: Kinds that disappear on their own and need no action.
HARMLESS = frozenset({DiscrepancyKind.YOUNG})


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """A discrepancy of one consumer."""

    kind: DiscrepancyKind
    uuid: str
    project: str | None
    #: The reason, in words.
    reason: str
    #: The command that fixes it; empty if no action is needed.
    hint: str
    #: The consumer; None if it holds nothing.
    consumer: AgedHolder | None = None


@dataclass(slots=True)
class Review:
    """The result of a comparison."""

    discrepancies: list[Discrepancy] = field(default_factory=list)
    #: Consumers compared, by type.
    compared: Counter[str] = field(default_factory=Counter)
    #: Consumers not compared, by type.
    left_out: Counter[str] = field(default_factory=Counter)
    #: Consumers named by files or by Ironic that hold nothing.
    named_only: int = 0
    #: Servers left out because they have changed since they were read.
    changed: int = 0
    #: Consumers left out because they may be migrations in a cell of nova that does not respond.
    doubtful: int = 0

    def of_kind(self, kind: DiscrepancyKind) -> list[Discrepancy]:
        """Return the discrepancies of one kind."""
        return [discrepancy for discrepancy in self.discrepancies if discrepancy.kind is kind]

    @property
    def needs_work(self) -> bool:
        """Whether a discrepancy has to be fixed."""
        return self.doubtful > 0 or any(discrepancy.kind not in HARMLESS for discrepancy in self.discrepancies)


def compare(
    consumers: Iterable[AgedHolder], expected: Expected, age_limit: datetime.timedelta, project: str | None = None
) -> Review:
    """Compare all consumers with the consumers that should exist.

    Args:
        consumers: All consumers, read after ``expected``.
        expected: The consumers that should exist.
        age_limit: Age at which an unknown consumer counts as an orphan; a younger one may be a server that nova does
            not show yet.
        project: A project to restrict the report to.
    """
    review, holders, known_types = Review(), set(), set()
    for consumer in consumers:
        holder = consumer.holder
        uuid = canonical(holder.uuid) or holder.uuid
        holders.add(uuid)
        is_known = expected.knows(uuid)
        if is_known:
            known_types.add(holder.consumer_type)
        if project not in (None, holder.project):
            continue
        if not expected.covers(holder.consumer_type):
            review.left_out[holder.consumer_type] += 1
            continue
        review.compared[holder.consumer_type] += 1
        if server := expected.servers.get(uuid):
            if not (server.is_changing or uuid in expected.migrating):
                review.discrepancies += _compare_with_nova(consumer, server)
        elif not is_known:
            review.discrepancies.append(_unknown_consumer(consumer, age_limit))
    # If the lists name no consumer, all types are compared.
    if expected.types is None and known_types:
        _leave_out_types(review, review.compared.keys() - known_types)
    review.discrepancies += _missing_consumers(expected, holders, project)
    review.named_only = len(expected.named - holders)
    return review


def _leave_out_types(review: Review, types: Collection[str]) -> None:
    """Drop the discrepancies of types without a known consumer: the lists do not cover these types."""
    for name in types:
        review.left_out[name] += review.compared.pop(name)
    review.discrepancies = [
        discrepancy
        for discrepancy in review.discrepancies
        if discrepancy.consumer is None or discrepancy.consumer.holder.consumer_type not in types
    ]


def confirm(review: Review, exists: Callable[[str], bool]) -> None:
    """Drop the orphans that exist in nova after all.

    Args:
        review: The result of ``compare``.
        exists: Whether nova has a server with this uuid; its list omits some, such as deleted servers that can be
            restored.
    """
    review.discrepancies = [
        discrepancy
        for discrepancy in review.discrepancies
        if discrepancy.kind is not DiscrepancyKind.ORPHAN or not exists(discrepancy.uuid)
    ]


def leave_out_changed(review: Review, expected: Expected, changed: Collection[str]) -> None:
    """Drop the discrepancies of servers that have changed since they were read.

    Args:
        review: The result of ``compare``.
        expected: The consumers that should exist.
        changed: The uuids of the changed servers.
    """
    uuids = {discrepancy.uuid: canonical(discrepancy.uuid) or discrepancy.uuid for discrepancy in review.discrepancies}
    outdated = {uuid for uuid, server in uuids.items() if server in expected.servers and server in changed}
    review.changed = len(outdated)
    review.discrepancies = [discrepancy for discrepancy in review.discrepancies if discrepancy.uuid not in outdated]


def hold_back_migrations(review: Review) -> None:
    """Drop the orphans that may be migrations in a cell of nova that does not respond."""
    doubtful = {
        orphan.uuid
        for orphan in review.of_kind(DiscrepancyKind.ORPHAN)
        if orphan.consumer is None or orphan.consumer.holder.consumer_type != INSTANCE
    }
    review.doubtful = len(doubtful)
    review.discrepancies = [discrepancy for discrepancy in review.discrepancies if discrepancy.uuid not in doubtful]


def _unknown_consumer(consumer: AgedHolder, age_limit: datetime.timedelta) -> Discrepancy:
    holder = consumer.holder
    if consumer.is_older_than(age_limit):
        hint = f"placement-manage consumers --release, or openstack resource provider allocation delete {holder.uuid}"
        return Discrepancy(DiscrepancyKind.ORPHAN, holder.uuid, holder.project, "unknown", hint, consumer)
    reason = "unknown so far" if consumer.age is not None else "unknown, and so is its age"
    return Discrepancy(DiscrepancyKind.YOUNG, holder.uuid, holder.project, reason, "", consumer)


def _compare_with_nova(consumer: AgedHolder, server: NovaServer) -> Iterator[Discrepancy]:
    """Yield the discrepancies of a server that is not being changed."""

    def discrepancy(kind: DiscrepancyKind, reason: str, hint: str) -> Discrepancy:
        return Discrepancy(kind, consumer.holder.uuid, consumer.holder.project, reason, hint, consumer)

    uuid, trees = consumer.holder.uuid, [*consumer.hosts.values()]
    other_hosts = [tree for tree in trees if tree.name != server.host]
    heal_command = f"nova-manage placement heal_allocations --force --instance {uuid}"
    if server.host is None:
        if any(consumer.amounts.values()):
            hint = f"openstack resource provider allocation delete {uuid}"
            yield discrepancy(DiscrepancyKind.NO_HOST, f"nova runs it on no host ({server.status})", hint)
    elif len(trees) > 1:
        hosts = " and ".join(sorted(_name(tree) for tree in trees))
        reason = f"holds resources on {hosts}; nova runs it on {server.host}, without a migration"
        # The allocations on its own host, if any, are kept.
        hint = _unset_command(consumer, other_hosts) if len(other_hosts) < len(trees) else heal_command
        yield discrepancy(DiscrepancyKind.DOUBLE, reason, hint)
    elif other_hosts or not trees:
        host = _name(other_hosts[0]) if other_hosts else "no host"
        reason = f"holds resources on {host}; nova runs it on {server.host}"
        yield discrepancy(DiscrepancyKind.WRONG_HOST, reason, heal_command)
    elif server.demand is not None:
        differences = [*server.demand.differences(consumer.amounts)]
        if differences:
            texts = (f"{name} {amount} instead of {demanded}" for name, demanded, amount in differences)
            reason = "holds amounts that differ from its flavor's: " + ", ".join(texts)
            yield discrepancy(DiscrepancyKind.AMOUNTS, reason, heal_command)


def _missing_consumers(expected: Expected, holders: Collection[str], project: str | None) -> Iterator[Discrepancy]:
    if not (expected.covers(INSTANCE) or expected.covers(UNKNOWN_TYPE)):
        return
    for server in expected.hosted_servers():
        needs_resources = (
            server.demand is None or any(server.demand.exact.values()) or any(server.demand.minimum.values())
        )
        if server.uuid in holders or server.is_changing or not needs_resources or project not in (None, server.project):
            continue
        hint = f"nova-manage placement heal_allocations --instance {server.uuid}"
        reason = f"holds nothing; nova runs it on {server.host} ({server.status})"
        yield Discrepancy(DiscrepancyKind.MISSING, server.uuid, server.project, reason, hint)


def _name(tree: Tree) -> str:
    return tree.name or tree.uuid


def _unset_command(consumer: AgedHolder, trees: Collection[Tree]) -> str:
    """Return the command that deletes the allocations of a consumer on trees."""
    providers = (uuid for tree in trees for uuid in consumer.providers_of(tree))
    options = " ".join(f"--provider {uuid}" for uuid in providers)
    return f"openstack resource provider allocation unset {options} {consumer.holder.uuid}"
