"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import UUID, Array, ChangedAt, Field, Object, required
from placement.schemas.document import Body
from placement.schemas.provider import GENERATION

_UUIDS = Array(UUID, unique=True)

REPLACE = Body(
    ChangedAt(
        mv.AGGREGATE_GENERATION,
        before=_UUIDS,
        after=Object(Field("aggregates", _UUIDS, required=True), required(GENERATION)),
    )
)
