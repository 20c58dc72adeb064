"""Providers for tests, described concisely; all other properties have irrelevant defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placement.index.build import build
from placement.index.records import Rows
from placement.index.snapshot import SHARES, Snapshot
from placement.index.tables import Tables


@dataclass(frozen=True)
class Stock:
    """The inventory and the usage of a provider in one class."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int | None = None
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0

    @property
    def effective_max_unit(self) -> int:
        """The largest amount of one allocation."""
        return self.total if self.max_unit is None else self.max_unit


@dataclass(frozen=True)
class Member:
    """One provider of a world; its name is its uuid."""

    name: str
    parent: str | None
    stock: Mapping[str, Stock]
    traits: frozenset[str]
    aggregates: frozenset[str]
    generation: int = 0


@dataclass
class World:
    """A forest of providers.

    >>> world = World()
    >>> world.host("cn1", VCPU=8, traits=["HW_CPU_X86_AVX"])
    >>> world.host("numa1", parent="cn1", MEMORY_MB=Stock(1024, used=512))
    """

    members: dict[str, Member] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    #: Ids, in the order of creation.
    trait_ids: dict[str, int] = field(default_factory=dict)

    def host(
        self,
        name: str,
        parent: str | None = None,
        traits: Iterable[str] = (),
        aggregates: Iterable[str] = (),
        generation: int = 0,
        **stock: int | Stock,
    ) -> None:
        """Add a provider, or replace it."""
        stocks = {class_: Stock(amount) if isinstance(amount, int) else amount for class_, amount in stock.items()}
        traits = [*traits]
        self.members[name] = Member(name, parent, stocks, frozenset(traits), frozenset(aggregates), generation)
        if name not in self.ids:
            self.ids[name] = max(self.ids.values(), default=0) + 1
        for trait in traits:
            self.trait_ids.setdefault(trait, len(self.trait_ids))
        for class_ in stocks:
            self.classes.setdefault(class_, len(self.classes))

    def sharing(self, name: str, *, traits: Iterable[str] = (), **more: object) -> None:
        """Add a provider that shares with the trees of its aggregates."""
        self.host(name, traits=[*traits, SHARES], **more)  # type: ignore[arg-type]

    def root(self, name: str) -> str:
        """Return the root of the provider's tree."""
        parent = self.members[name].parent
        return name if parent is None else self.root(parent)

    def ancestry(self, name: str) -> list[str]:
        """Return the provider, its parent, and so on to the root."""
        parent = self.members[name].parent
        return [name, *([] if parent is None else self.ancestry(parent))]

    def rows(self, names: Iterable[str] | None = None) -> Rows:
        """Return the rows of these providers, or of all."""
        members = [self.members[name] for name in (self.members if names is None else names) if name in self.members]
        stocks = [(self.ids[m.name], self.classes[class_], stock) for m in members for class_, stock in m.stock.items()]
        return Rows(
            providers=[
                (
                    self.ids[m.name],
                    m.name,
                    m.name,
                    m.generation,
                    self.ids[m.parent] if m.parent else None,
                    self.ids[self.root(m.name)],
                )
                for m in members
            ],
            inventories=[
                (id_, class_, s.total, s.reserved, s.min_unit, s.effective_max_unit, s.step_size, s.allocation_ratio)
                for id_, class_, s in stocks
            ],
            usages=[(id_, class_, s.used) for id_, class_, s in stocks if s.used],
            traits=[(self.ids[m.name], trait) for m in members for trait in sorted(m.traits)],
            aggregates=[(self.ids[m.name], aggregate) for m in members for aggregate in sorted(m.aggregates)],
            trait_ids=self.trait_ids,
        )

    def snapshot(self) -> Snapshot:
        """Return an index of this world."""
        return build(Tables.of(self.rows()), {id_: name for name, id_ in self.classes.items()})
