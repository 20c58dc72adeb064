"""What differs between the consumers and those that should exist."""

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
    """What is wrong with a consumer."""

    #: Nobody knows it.
    ORPHAN = "orphan"
    #: Nobody knows it yet: it was claimed or changed a short time ago.
    YOUNG = "young"
    #: It holds on several hosts.
    DOUBLE = "double"
    #: It holds on another host than the one on which it runs.
    WRONG_HOST = "wrong-host"
    #: It holds something and runs on no host.
    NO_HOST = "no-host"
    #: It holds other amounts than its flavor says.
    AMOUNTS = "amounts"
    #: It runs on a host and holds nothing.
    MISSING = "missing"


#: Kinds that are only what the clock makes of them, and no reason to act.
HARMLESS = frozenset({DiscrepancyKind.YOUNG})


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that is wrong with one consumer."""

    kind: DiscrepancyKind
    uuid: str
    project: str | None
    #: A sentence.
    reason: str
    #: The command that mends it; empty if nothing has to be done.
    hint: str
    #: None if it holds nothing.
    consumer: AgedHolder | None = None


@dataclass(slots=True)
class Review:
    """All that was found."""

    found: list[Discrepancy] = field(default_factory=list)
    #: How many consumers were compared, by their type.
    compared: Counter[str] = field(default_factory=Counter)
    #: How many were not, by their type.
    left_out: Counter[str] = field(default_factory=Counter)
    #: How many are named by a file, and hold nothing.
    named_only: int = 0
    #: How many servers were changed meanwhile, so that they are not judged.
    changed: int = 0
    #: How many may be migrations of a cell of nova that did not answer, so that they are not judged.
    doubtful: int = 0

    def of(self, kind: DiscrepancyKind) -> list[Discrepancy]:
        """Return what was found of one kind."""
        return [one for one in self.found if one.kind is kind]

    @property
    def needs_work(self) -> bool:
        """Whether there is anything to mend."""
        return self.doubtful > 0 or any(one.kind not in HARMLESS for one in self.found)


def compare(
    consumers: Iterable[AgedHolder], expected: Expected, bound: datetime.timedelta, project: str | None = None
) -> Review:
    """Compare all consumers with those that should exist.

    Args:
        consumers: All of them, read after ``expected``.
        expected: Those that should exist.
        bound: Orphans younger than this are not reported as such: a server is claimed before nova shows it.
        project: Report on consumers of this project only.
    """
    review, seen, known_types = Review(), set(), set()
    for consumer in consumers:
        holder = consumer.holder
        uuid = canonical(holder.uuid) or holder.uuid
        seen.add(uuid)
        is_known = expected.knows(uuid)
        if is_known:
            known_types.add(holder.consumer_type)
        if project not in (None, holder.project):
            continue
        if not expected.judges(holder.consumer_type):
            review.left_out[holder.consumer_type] += 1
            continue
        review.compared[holder.consumer_type] += 1
        if server := expected.servers.get(uuid):
            if not (server.in_motion or uuid in expected.migrating):
                review.found += _judged(consumer, server)
        elif not is_known:
            review.found.append(_unknown(consumer, bound))
    if expected.types is None and known_types:  # a list that names none of all consumers is another one
        _leave_out_types(review, review.compared.keys() - known_types)
    review.found += _missing(expected, seen, project)
    review.named_only = len(expected.named - seen)
    return review


def _leave_out_types(review: Review, types: Collection[str]) -> None:
    """Take away what was found of types that are not compared after all: a list that names none is not about them."""
    for name in types:
        review.left_out[name] += review.compared.pop(name)
    review.found = [
        one for one in review.found if one.consumer is None or one.consumer.holder.consumer_type not in types
    ]


def confirm(review: Review, exists: Callable[[str], bool]) -> None:
    """Take away the orphans that are servers after all.

    Args:
        review: What was found.
        exists: Whether there is a server of this uuid: pages leave some out, such as deleted ones that can be restored.
    """
    review.found = [one for one in review.found if one.kind is not DiscrepancyKind.ORPHAN or not exists(one.uuid)]


def leave_out_changed(review: Review, expected: Expected, changed: Collection[str]) -> None:
    """Take away what was found of servers that have changed since they were read.

    Args:
        review: What was found.
        expected: What it was compared with.
        changed: The uuids of the servers that have changed since.
    """
    about_servers = {one.uuid for one in review.found if (canonical(one.uuid) or one.uuid) in expected.servers}
    moved = {uuid for uuid in about_servers if (canonical(uuid) or uuid) in changed}
    review.changed = len(moved)
    review.found = [one for one in review.found if one.uuid not in moved]


def hold_back_migrations(review: Review) -> None:
    """Take away the orphans that may be migrations of a part of nova that did not answer."""
    doubtful = [
        one
        for one in review.of(DiscrepancyKind.ORPHAN)
        if one.consumer is None or one.consumer.holder.consumer_type != INSTANCE
    ]
    review.doubtful = len(doubtful)
    uuids = {one.uuid for one in doubtful}
    review.found = [one for one in review.found if one.uuid not in uuids]


def _unknown(consumer: AgedHolder, bound: datetime.timedelta) -> Discrepancy:
    holder = consumer.holder
    if consumer.is_older_than(bound):
        hint = f"placement-manage consumers --release, or openstack resource provider allocation delete {holder.uuid}"
        return Discrepancy(DiscrepancyKind.ORPHAN, holder.uuid, holder.project, "nobody knows it", hint, consumer)
    reason = "nobody knows it yet" if consumer.age is not None else "nobody knows it, and its age is unknown"
    return Discrepancy(DiscrepancyKind.YOUNG, holder.uuid, holder.project, reason, "", consumer)


def _judged(consumer: AgedHolder, server: NovaServer) -> Iterator[Discrepancy]:
    """Yield what is wrong with the consumer of a server at rest."""

    def found(kind: DiscrepancyKind, reason: str, hint: str) -> Discrepancy:
        return Discrepancy(kind, consumer.holder.uuid, consumer.holder.project, reason, hint, consumer)

    uuid, trees = consumer.holder.uuid, [*consumer.hosts.values()]
    others = [tree for tree in trees if tree.name != server.host]
    heal = f"nova-manage placement heal_allocations --force --instance {uuid}"
    if server.host is None:
        if any(consumer.amounts.values()):
            hint = f"openstack resource provider allocation delete {uuid}"
            yield found(DiscrepancyKind.NO_HOST, f"nova has it on no host ({server.status})", hint)
    elif len(trees) > 1:
        on = " and ".join(sorted(_name(tree) for tree in trees))
        reason = f"holds on {on}; nova has it on {server.host}, and it does not migrate"
        # What it holds on its own host is kept, if there is any.
        hint = _unset(consumer, others) if len(others) < len(trees) else heal
        yield found(DiscrepancyKind.DOUBLE, reason, hint)
    elif others or not trees:
        on = _name(others[0]) if others else "no host"
        yield found(DiscrepancyKind.WRONG_HOST, f"holds on {on}; nova has it on {server.host}", heal)
    elif server.demand is not None:
        differences = [*server.demand.differences(consumer.amounts)]
        if differences:
            texts = (f"{name} {has} instead of {wants}" for name, wants, has in differences)
            reason = "holds other amounts than its flavor says: " + ", ".join(texts)
            yield found(DiscrepancyKind.AMOUNTS, reason, heal)


def _missing(expected: Expected, seen: Collection[str], project: str | None) -> Iterator[Discrepancy]:
    if not (expected.judges(INSTANCE) or expected.judges(UNKNOWN_TYPE)):
        return
    for server in expected.hosted():
        demanded = server.demand is None or any(server.demand.exact.values()) or any(server.demand.least.values())
        if server.uuid in seen or server.in_motion or not demanded or project not in (None, server.project):
            continue
        hint = f"nova-manage placement heal_allocations --instance {server.uuid}"
        reason = f"holds nothing; nova has it on {server.host} ({server.status})"
        yield Discrepancy(DiscrepancyKind.MISSING, server.uuid, server.project, reason, hint)


def _name(tree: Tree) -> str:
    return tree.name or tree.uuid


def _unset(consumer: AgedHolder, trees: Collection[Tree]) -> str:
    """Return the command that takes away what a consumer holds on trees, on each of their providers."""
    held = (uuid for tree in trees for uuid in consumer.providers_of(tree))
    options = " ".join(f"--provider {uuid}" for uuid in held)
    return f"openstack resource provider allocation unset {options} {consumer.holder.uuid}"
