"""Traits, and which provider has which."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Self

import sqlalchemy as sa

from placement import errors
from placement.db import feed
from placement.db.tables import resource_provider_traits, traits
from placement.db.transaction import Reading, Transaction
from placement.objects.provider import ResourceProvider

CUSTOM_PREFIX = "CUSTOM_"
_CUSTOM = re.compile(r"\ACUSTOM_[A-Z0-9_]+\Z")
_LONGEST = 255


@dataclass(frozen=True, slots=True)
class Trait:
    id: int
    name: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def modified(self) -> datetime.datetime | None:
        """When the row was last written."""
        return self.updated_at or self.created_at

    @property
    def standard(self) -> bool:
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
        """The traits of these names, with this prefix, and which some provider has (True) or none (False)."""
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
        """The trait of this very name, or None."""
        return next((cls(*row) for row in db.execute(_BY_NAME, {"name": name}) if row.name == name), None)

    @classmethod
    def get(cls, db: Reading, name: str) -> Self:
        """The trait; raises TraitNotFound."""
        found = cls.find(db, name)
        if found is None:
            raise errors.TraitNotFound(name=name)
        return found

    @classmethod
    def unknown(cls, db: Reading, names: Collection[str]) -> frozenset[str]:
        """Those of the names that no trait has."""
        return frozenset(names) - _ids(db, names).keys()

    @staticmethod
    def check_name(name: str) -> None:
        """Nothing; raises InvalidTrait unless the name is one for a custom trait."""
        if len(name) > _LONGEST or not _CUSTOM.match(name):
            raise errors.InvalidTrait()

    @classmethod
    def create(cls, db: Transaction, name: str) -> bool:
        """Whether the trait was made; False if it is there."""
        if cls.find(db, name) is not None:
            return False
        db.execute(sa.insert(traits).values(name=name))
        return True

    def delete(self, db: Transaction) -> None:
        """Remove the trait, which must be custom and on no provider."""
        if self.standard:
            raise errors.TraitIsStandard(name=self.name)
        in_use = sa.select(_ON.trait_id).where(_ON.trait_id == self.id).limit(1)
        if db.execute(in_use).first() is not None:
            raise errors.TraitInUse(name=self.name)
        db.execute(sa.delete(traits).where(_T.id == self.id))
        db.changed(feed.NO_PROVIDER, feed.NAMES)

    @classmethod
    def of_provider(cls, db: Reading, provider: ResourceProvider) -> list[Self]:
        """The traits of the provider, in the order of their names."""
        return [cls(*row) for row in db.execute(_OF_PROVIDER, {"provider": provider.id})]

    @classmethod
    def replace(cls, db: Transaction, provider: ResourceProvider, names: Iterable[str]) -> ResourceProvider:
        """The provider with exactly these traits, one generation on if they differ; its row must be locked.

        Raises UnknownProviderTraits with all names that do not exist.
        """
        wanted = set(names)
        ids = _ids(db, wanted)
        unknown = sorted(wanted - ids.keys())
        if unknown:
            raise errors.UnknownProviderTraits(names=", ".join(unknown))
        present = {trait.id for trait in cls.of_provider(db, provider)}
        gone, new = present - set(ids.values()), set(ids.values()) - present
        if not gone and not new:
            return provider
        if gone:
            db.execute(_TAKE_AWAY, {"provider": provider.id, "ids": list(gone)})
        if new:
            rows = [{"resource_provider_id": provider.id, "trait_id": trait_id} for trait_id in sorted(new)]
            db.execute(sa.insert(resource_provider_traits), rows)
        return provider.advance(db)


def _ids(db: Reading, names: Collection[str]) -> dict[str, int]:
    if not names:
        return {}
    found = db.execute(_IDS, {"names": list(names)})
    return {row.name: row.id for row in found if row.name in names}


_T, _ON = traits.c, resource_provider_traits.c
_ALL = sa.select(_T.id, _T.name, _T.created_at, _T.updated_at).order_by(_T.name)
_ASSOCIATED = sa.exists().where(_ON.trait_id == _T.id)
_BY_NAME = _ALL.where(_T.name == sa.bindparam("name"))
_IDS = sa.select(_T.name, _T.id).where(_T.name.in_(sa.bindparam("names", expanding=True)))
_OF_PROVIDER = _ALL.join(resource_provider_traits, _ON.trait_id == _T.id).where(
    _ON.resource_provider_id == sa.bindparam("provider")
)
_TAKE_AWAY = sa.delete(resource_provider_traits).where(
    _ON.resource_provider_id == sa.bindparam("provider"),
    _ON.trait_id.in_(sa.bindparam("ids", expanding=True)),
)
