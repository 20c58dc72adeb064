"""/resource_providers/{uuid}/aggregates"""

from __future__ import annotations

from dataclasses import replace

from placement import microversion as mv
from placement.schemas.declarations import UUID, Array, ChangedAt, Field, Object, required, string
from placement.schemas.document import Body
from placement.schemas.provider import GENERATION
from placement.schemas.reply_types import SHOWN_GENERATION
from placement.schemas.success import ok

_UUIDS = Array(UUID, unique=True)

REPLACE = Body(
    ChangedAt(
        mv.AGGREGATE_GENERATION,
        before=_UUIDS,
        after=Object(Field("aggregates", _UUIDS, required=True), required(GENERATION)),
    )
)

#: Uuids of aggregates as they were written, with or without dashes.
_AGGREGATES = Field("aggregates", Array(string()), required=True)

LIST_REPLIES = REPLACE_REPLIES = ok(Object(_AGGREGATES, replace(SHOWN_GENERATION, since=mv.AGGREGATE_GENERATION)))
