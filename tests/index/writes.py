"""Random writes of every kind, and a process that only writes.

Each method for a kind of write returns the work of a transaction, which is deterministic.  The names are few, so that
writers collide and many writes are refused.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from placement import errors
from placement.db.database import Database
from placement.db.writes.transaction import Transaction
from placement.index.snapshot import SHARES
from placement.objects.claims import release
from placement.objects.claims.claim import Claim
from placement.objects.claims.claim_set import ClaimSet
from placement.objects.consumer import Owner
from placement.objects.inventory import Inventory
from placement.objects.locked_provider import LockedProvider
from placement.objects.provider import ResourceProvider
from placement.objects.reshape import NewInventories, reshape
from placement.objects.resource_class import ResourceClass
from placement.objects.trait import Trait
from tests import children, preloaded
from tests.made import opened

CLASSES = ("VCPU", "DISK_GB", "CUSTOM_A", "CUSTOM_B")
TRAITS = ("HW_CPU_X86_AVX", SHARES, "CUSTOM_T", "CUSTOM_U")
AGGREGATES = ("a0", "a1", "a2")
# A ratio that every database returns exactly.
RATIOS = (1.0, 16.1, 0.5)

Work = Callable[[Transaction], Any]


class Writer:
    """A writer; writers with different names write different providers and consumers."""

    def __init__(self, database: Database, chance: random.Random, name: str = "") -> None:
        self.database, self.chance = database, chance
        self.providers = [f"{name}p{number}" for number in range(6)]
        self.consumers = [f"{name}c{number}" for number in range(4)]

    def write(self, kinds: tuple[Callable[[Writer], Work], ...] | None = None) -> None:
        """Run a random write, which may be refused."""
        work = self.chance.choice(kinds or KINDS)(self)
        with contextlib.suppress(errors.Failure):
            self.database.write(work)

    # --- kinds of writes ---

    def provider(self) -> str:
        return self.chance.choice(self.providers)

    def sample_names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return up to three of the names, the first ones more often: custom names may not exist."""
        sample = [names[min(self.chance.randrange(len(names)), self.chance.randrange(len(names)))] for _ in range(3)]
        return tuple(dict.fromkeys(sample[self.chance.randrange(4) :]))

    def create(self) -> Work:
        uuid, parent = self.provider(), self.chance.choice([None, self.provider()])
        return lambda db: LockedProvider.create(db, uuid=uuid, name=f"{uuid} ü", parent_uuid=parent)

    def create_stocked(self) -> Work:
        """Create a root with capacity for most claims."""
        uuid, records = self.provider(), self.stock(("VCPU", "DISK_GB"))

        def work(db: Transaction) -> None:
            LockedProvider.create(db, uuid=uuid, name=f"{uuid} ü").replace_inventories(records)

        return work

    def rename(self) -> Work:
        uuid, name = self.provider(), f"{self.provider()} {self.chance.randrange(3)}"
        return lambda db: LockedProvider.lock(db, uuid).rename(name)

    def move(self) -> Work:
        uuid, parent = self.provider(), self.chance.choice([None, self.provider(), self.provider()])
        return lambda db: LockedProvider.lock_and_move(db, uuid, parent, may_reparent=True)

    def delete(self) -> Work:
        uuid = self.provider()
        return lambda db: LockedProvider.lock(db, uuid).delete()

    def stock(self, classes: tuple[str, ...]) -> list[Inventory]:
        return [
            Inventory(
                resource_class,
                total=self.chance.choice((8, 4)),
                reserved=self.chance.choice((0, 1)),
                step_size=self.chance.choice((1, 1, 2)),
                allocation_ratio=self.chance.choice(RATIOS),
            )
            for resource_class in classes
        ]

    def replace_stock(self, classes: tuple[str, ...] = CLASSES) -> Work:
        uuid, records = self.provider(), self.stock(self.sample_names(classes))
        return lambda db: LockedProvider.lock(db, uuid).replace_inventories(records)

    def add_stock(self) -> Work:
        uuid, (record,) = self.provider(), self.stock((self.chance.choice(CLASSES),))
        return lambda db: LockedProvider.lock(db, uuid).add_inventory(record)

    def update_stock(self) -> Work:
        uuid, (record,) = self.provider(), self.stock((self.chance.choice(CLASSES),))
        return lambda db: LockedProvider.lock(db, uuid).update_inventory(record)

    def remove_stock(self) -> Work:
        uuid, resource_class = self.provider(), self.chance.choice(CLASSES)
        return lambda db: LockedProvider.lock(db, uuid).remove_inventory(resource_class)

    def set_traits(self) -> Work:
        uuid, names = self.provider(), self.sample_names(TRAITS)
        return lambda db: LockedProvider.lock(db, uuid).replace_traits(names)

    def set_aggregates(self) -> Work:
        uuid, names = self.provider(), self.sample_names(AGGREGATES)
        guarded = bool(self.chance.randrange(2))
        return lambda db: LockedProvider.lock(db, uuid).replace_aggregates(names, advance=guarded)

    def claim(self) -> Claim:
        amounts_by_provider = {}
        for _ in range(self.chance.choice((1, 1, 2, 0))):
            amounts_by_provider[self.provider()] = {
                self.chance.choice(("VCPU", "DISK_GB", "CUSTOM_A")): self.chance.choice((1, 2))
            }
        return Claim(self.chance.choice(self.consumers), amounts_by_provider, Owner("project", "user"))

    def allocate(self) -> Work:
        claims = [self.claim()]
        return lambda db: ClaimSet(db, claims).place()

    def allocate_many(self) -> Work:
        claims = {claim.consumer: claim for claim in (self.claim(), self.claim(), self.claim())}
        return lambda db: ClaimSet(db, list(claims.values())).place()

    def free(self) -> Work:
        consumer = self.chance.choice(self.consumers)
        return lambda db: release.end_consumer(db, consumer)

    def reshape(self) -> Work:
        stock = {self.provider(): self.stock(("VCPU", "CUSTOM_A")) for _ in range(2)}
        claims = [self.claim()]

        def work(db: Transaction) -> None:
            providers = {uuid: ResourceProvider.get(db, uuid) for uuid in stock}
            reshape(db, {uuid: NewInventories(providers[uuid].generation, stock[uuid]) for uuid in stock}, claims)

        return work

    def create_class(self) -> Work:
        name = self.chance.choice(CLASSES[2:])
        return lambda db: ResourceClass.create(db, name)

    def rename_class(self) -> Work:
        names = self.chance.sample(CLASSES[2:], 2)
        return lambda db: ResourceClass.rename(db, *names)

    def delete_class(self) -> Work:
        name = self.chance.choice(CLASSES[2:])
        return lambda db: ResourceClass.delete(db, name)

    def create_trait(self) -> Work:
        name = self.chance.choice(TRAITS[2:])
        return lambda db: Trait.create(db, name)

    def delete_trait(self) -> Work:
        name = self.chance.choice(TRAITS[2:])
        return lambda db: Trait.delete(db, name)

    def fail(self) -> Work:
        """Return a write of another kind, which fails at its end."""
        work = self.chance.choice(KINDS[:-1])(self)

        def failing(db: Transaction) -> None:
            work(db)
            raise errors.ConsumerGenerationConflict(expected=1, given=2)

        return failing


#: Kinds of writes; frequent ones are listed twice.
KINDS: tuple[Callable[[Writer], Work], ...] = (
    *(Writer.create, Writer.create, Writer.create_stocked, Writer.create_stocked, Writer.rename, Writer.move),
    *(Writer.move, Writer.delete, Writer.replace_stock, Writer.replace_stock, Writer.add_stock, Writer.update_stock),
    *(Writer.remove_stock, Writer.set_traits, Writer.set_traits, Writer.set_aggregates, Writer.set_aggregates),
    *(Writer.allocate, Writer.allocate, Writer.allocate, Writer.allocate_many, Writer.free, Writer.free),
    *(Writer.reshape, Writer.create_class, Writer.rename_class, Writer.delete_class, Writer.create_trait),
    *(Writer.delete_trait, Writer.fail),
)
#: Kinds of writes that lock no shared rows.
LOCAL: tuple[Callable[[Writer], Work], ...] = (
    *(Writer.create_stocked, Writer.create_stocked, Writer.rename, Writer.delete, Writer.allocate, Writer.allocate),
    lambda writer: writer.replace_stock(("VCPU", "DISK_GB")),
)


# --- a process that writes ---


@contextlib.contextmanager
def process(url: str, seed: int, number: int, *, then_hold: bool) -> Iterator[children.Child]:
    """Run a process that does a number of writes, then reports; with ``then_hold``, it keeps a transaction open."""
    command = [sys.executable, "-m", "tests.index.writes", url, str(seed), str(number), str(int(then_hold))]
    log = children.run_directory() / f"writes-{secrets.token_hex(4)}"
    child = children.Child(command, log, begin=preloaded.service().popen)
    try:
        yield child
    finally:
        child.kill()


def _main(url: str, seed: int, number: int, then_hold: bool) -> None:
    with opened(url) as database:
        writer = Writer(database, random.Random(seed))
        for _ in range(number):
            writer.write()
        for _ in itertools.count() if then_hold else ():
            work = writer.create_stocked() if writer.chance.randrange(2) else writer.allocate()

            def work_and_hold(db: Transaction, work: Work = work) -> None:
                work(db)
                sys.stdout.write("holding\n")
                sys.stdout.flush()
                time.sleep(600)

            with contextlib.suppress(errors.Failure):
                database.write(work_and_hold)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), bool(int(sys.argv[4])))
