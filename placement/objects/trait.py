"""Traits: named properties of providers.  A ``LockedProvider`` changes the traits of a provider."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.schema.tables import resource_provider_traits, traits
from placement.db.upkeep.standard import CUSTOM_PREFIX
from placement.db.writes.notes import TRAIT
from placement.db.writes.transaction import Reading, Transaction
from placement.objects.provider import ResourceProvider

_CUSTOM_NAME = re.compile(rf"\A{CUSTOM_PREFIX}[A-Z0-9_]+\Z")
_MAX_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Trait:
    """The record of a trait."""

    id: int
    name: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def modified(self) -> datetime.datetime | None:
        """The time at which the row was last written."""
        return self.updated_at or self.created_at

    @property
    def standard(self) -> bool:
        """Whether the trait is a standard one, rather than a custom one."""
        return not self.name.startswith(CUSTOM_PREFIX)

    @classmethod
    def all(
        cls,
        db: Reading,
        *,
        names: Collection[str] | None = None,
        prefix: str | None = None,
        associated: bool | None = None,
    ) -> list[Self]:
        """Return the traits that meet every given condition, ordered by name.

        Args:
            names: Only traits with one of these names.
            prefix: Only traits whose name begins with this text.
            associated: Whether at least one provider (True) or no provider (False) has the trait.
        """
        query = _ALL
        if names is not None:
            query = query.where(_T.name.in_(names))
        if prefix is not None:
            query = query.where(_T.name.startswith(prefix, autoescape=True))
        if associated is not None:
            query = query.where(_ASSOCIATED if associated else ~_ASSOCIATED)
        return [cls(*row) for row in db.execute(query)]

    @classmethod
    def find(cls, db: Reading, name: str) -> Self | None:
        """Return the trait with exactly this name, case included, or None."""
        return next((cls(*row) for row in db.execute(_BY_NAME, {"name": name}) if row.name == name), None)

    @classmethod
    def get(cls, db: Reading, name: str) -> Self:
        """Return the trait with exactly this name; raise TraitNotFound if it does not exist."""
        trait = cls.find(db, name)
        if trait is None:
            raise errors.TraitNotFound(name=name)
        return trait

    @staticmethod
    def ids(db: Reading, names: Collection[str]) -> dict[str, int]:
        """Return the ids of the existing traits by name."""
        if not names:
            return {}
        rows = db.execute(_IDS, {"names": list(names)})
        return {row.name: row.id for row in rows if row.name in names}

    @classmethod
    def unknown_names(cls, db: Reading, names: Collection[str]) -> frozenset[str]:
        """Return the names for which no trait exists."""
        return frozenset(names) - cls.ids(db, names).keys()

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """Return the traits of the provider, ordered by name."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]

    @staticmethod
    def check_name(name: str) -> None:
        """Raise InvalidTrait unless this is a valid name of a custom trait."""
        if len(name) > _MAX_LENGTH or not _CUSTOM_NAME.match(name):
            raise errors.InvalidTrait()

    @classmethod
    def create(cls, db: Transaction, name: str) -> bool:
        """Create a custom trait unless it exists; return whether it was created."""
        if cls.find(db, name) is not None:
            return False
        # Not recorded in the feed: no provider has the trait yet, and the index reads traits with their providers.
        db.execute(sa.insert(traits).values(name=name))
        db.note(TRAIT, name, {("name",): (None, name)})
        return True

    @classmethod
    def delete(cls, db: Transaction, name: str) -> None:
        """Delete a custom trait that no provider has.

        Raises:
            TraitNotFound: The trait does not exist.
            TraitIsStandard: The trait is a standard one.
            TraitInUse: A provider has it.
        """
        deleted = cls.get(db, name)
        if deleted.standard:
            raise errors.TraitIsStandard(name=name)
        # A concurrent transaction that adds the trait to a provider collides, because of the foreign key.
        if db.execute(_IN_USE, {"trait": deleted.id}).first() is not None:
            raise errors.TraitInUse(name=name)
        if not db.execute(_DELETE, {"trait": deleted.id}).rowcount:
            raise errors.TraitNotFound(name=name)  # another transaction has deleted it since
        db.note(TRAIT, name, {("name",): (name, None)})
        db.record_change(feed.NO_PROVIDER, feed.NAMES)


_T, _ON = traits.c, resource_provider_traits.c
_ALL = sa.select(_T.id, _T.name, _T.created_at, _T.updated_at).order_by(_T.name)
_ASSOCIATED = sa.exists().where(_ON.trait_id == _T.id)
_BY_NAME = _ALL.where(_T.name == sa.bindparam("name"))
_IDS = sa.select(_T.name, _T.id).where(_T.name.in_(sa.bindparam("names", expanding=True)))
_OF_PROVIDER = _ALL.join(resource_provider_traits, _ON.trait_id == _T.id).where(
    _ON.resource_provider_id == sa.bindparam("provider")
)
_IN_USE = sa.select(_ON.trait_id).where(_ON.trait_id == sa.bindparam("trait")).limit(1)
_DELETE = sa.delete(traits).where(_T.id == sa.bindparam("trait"))
