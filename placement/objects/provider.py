"""Resource providers as records; ``placement.objects.locked_provider`` changes them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from placement import errors
from placement.db import batches
from placement.db.schema.tables import resource_providers
from placement.db.writes.transaction import Reading

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A provider as read from the database."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int | None
    parent_id: int | None
    root_uuid: str | None
    parent_uuid: str | None
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None

    @property
    def tree_id(self) -> int:
        """The id of the root; the provider's own id if an older Placement has recorded no root."""
        return self.id if self.root_id is None else self.root_id

    @property
    def modified(self) -> datetime.datetime | None:
        """The time at which the row was last written."""
        return self.updated_at or self.created_at

    @classmethod
    def find(cls, db: Reading, uuid: str) -> Self | None:
        """Return the provider with exactly this uuid, case included, or None."""
        row = db.execute(_BY_UUID, {"uuid": uuid}).first()
        # Some collations also match a uuid in another case, which is a different uuid to clients.
        return None if row is None or row.uuid != uuid else cls(*row)

    @classmethod
    def get(cls, db: Reading, uuid: str, missing: type[errors.NotFound] = errors.ProviderNotFound) -> Self:
        """Return the provider with exactly this uuid, case included.

        Raises:
            missing: No provider has the uuid.
        """
        provider = cls.find(db, uuid)
        if provider is None:
            raise missing(uuid=uuid)
        return provider

    @classmethod
    def get_with(
        cls,
        db: Reading,
        uuid: str,
        read: Callable[[Reading, Self], Result],
        missing: type[errors.NotFound] = errors.ProviderNotFound,
    ) -> tuple[Self, Result]:
        """Return the provider and the result of ``read``, which is at least as new as the provider's generation.

        Raises:
            missing: No provider has the uuid.
        """
        provider = cls.get(db, uuid, missing)
        result = read(db, provider)
        if not result:
            cls.get(db, uuid, missing)  # it may have been deleted since
        return provider, result

    @staticmethod
    def ids(db: Reading, uuids: Collection[str]) -> dict[str, int]:
        """Return the ids of the existing providers by uuid.  An id never changes."""
        if not uuids:
            return {}
        rows = batches.rows(db, _IDS_BY_UUID, "uuids", uuids)
        return {row.uuid: row.id for row in rows if row.uuid in uuids}

    @classmethod
    def of_ids(cls, db: Reading, ids: Collection[int]) -> list[Self]:
        """Return the providers with these ids, ordered by id."""
        return [cls(*row) for row in batches.rows(db, _BY_ID, "ids", sorted(ids))]

    @classmethod
    def by_uuid_or_name(cls, db: Reading, uuids_or_names: Collection[str]) -> list[Self]:
        """Return the providers with one of these uuids or names; some collations also match other cases."""
        rows = batches.rows(db, _BY_UUID_OR_NAME, "texts", uuids_or_names)
        return list({row.id: cls(*row) for row in rows}.values())

    @staticmethod
    def count(db: Reading) -> int:
        """Return the number of all providers."""
        return int(db.execute(_COUNT).scalar_one())

    @classmethod
    def changed_last(cls, db: Reading, count: int) -> list[Self]:
        """Return the ``count`` providers last written, newest first; no index orders them, so all dates are read."""
        ids = list(db.execute(_CHANGED_LAST, {"count": count}).scalars())
        return sorted(cls.of_ids(db, ids), key=lambda provider: ids.index(provider.id))

    @staticmethod
    def newest_change(db: Reading, ids: Collection[int] | None) -> datetime.datetime | None:
        """Return the time of the last write to one of these providers, or to any (None); None without a date."""
        if ids is None:
            newest: datetime.datetime | None = db.execute(_NEWEST).scalar()
            return newest
        dates = (row[0] for row in batches.rows(db, _NEWEST_OF, "ids", ids))
        return max((date for date in dates if date is not None), default=None)


_P = resource_providers
#: The generation of a row; other implementations may have left NULL, which cannot be incremented.
GENERATION = sa.func.coalesce(_P.c.generation, 0)


def _uuid_of(column: sa.Column[Any]) -> sa.ScalarSelect[str]:
    referenced = resource_providers.alias()
    return sa.select(referenced.c.uuid).where(referenced.c.id == column).scalar_subquery()


#: The fields of ``ResourceProvider``, in order.  Subqueries instead of joins, so that a lock covers only one row.
SELECT = sa.select(
    _P.c.id,
    _P.c.uuid,
    _P.c.name,
    GENERATION.label("generation"),
    _P.c.root_provider_id,
    _P.c.parent_provider_id,
    _uuid_of(_P.c.root_provider_id).label("root_uuid"),
    _uuid_of(_P.c.parent_provider_id).label("parent_uuid"),
    _P.c.created_at,
    _P.c.updated_at,
)
_BY_UUID = SELECT.where(_P.c.uuid == sa.bindparam("uuid"))
_HAS_ID = _P.c.id.in_(sa.bindparam("ids", expanding=True))
_BY_ID = SELECT.where(_HAS_ID).order_by(_P.c.id)
_TEXTS: sa.BindParameter[Any] = sa.bindparam("texts", expanding=True)
_BY_UUID_OR_NAME = SELECT.where(_P.c.uuid.in_(_TEXTS) | _P.c.name.in_(_TEXTS))
_COUNT = sa.select(sa.func.count()).select_from(_P)
_NEWEST = sa.select(sa.func.max(sa.func.coalesce(_P.c.updated_at, _P.c.created_at)))
_CHANGED_LAST = (
    sa.select(_P.c.id)
    .order_by(sa.func.coalesce(_P.c.updated_at, _P.c.created_at).desc(), _P.c.id.desc())
    .limit(sa.bindparam("count"))
)
_NEWEST_OF = _NEWEST.where(_HAS_ID)
_IDS_BY_UUID = sa.select(_P.c.id, _P.c.uuid).where(_P.c.uuid.in_(sa.bindparam("uuids", expanding=True)))
