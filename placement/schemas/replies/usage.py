"""The replies of /resource_providers/{uuid}/usages, /usages"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import (
    RESOURCE_CLASS_NAME,
    ChangedAt,
    Field,
    Object,
    PatternField,
    integer,
)
from placement.schemas.replies.common import AMOUNTS, GENERATION
from placement.schemas.success import ok

_COUNT = Field("consumer_count", integer(minimum=1), required=True)
#: The usages of the consumers of one type.
_OF_TYPE = Object(_COUNT, PatternField(RESOURCE_CLASS_NAME, integer(minimum=0)))
#: By consumer type; ``unknown`` is that of consumers without one, ``all`` the sum over all types.
_BY_TYPE = Object(PatternField(f"{RESOURCE_CLASS_NAME}|^unknown$|^all$", _OF_TYPE))

OF_PROVIDER = ok(Object(GENERATION, Field("usages", AMOUNTS, required=True)))
OF_PROJECT = ok(Object(Field("usages", ChangedAt(mv.CONSUMER_TYPES, before=AMOUNTS, after=_BY_TYPE), required=True)))
