"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.document import Body
from placement.schemas.provider import GENERATION
from placement.schemas.shape import UUID, Array, Field, Object, Turning, required

_UUIDS = Array(UUID, unique=True)

REPLACE = Body(
    Turning(
        mv.AGGREGATE_GENERATION,
        before=_UUIDS,
        after=Object(Field("aggregates", _UUIDS, required=True), required(GENERATION)),
    )
)
