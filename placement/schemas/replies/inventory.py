"""The replies of /resource_providers/{uuid}/inventories, /resource_providers/{uuid}/inventories/{resource_class}"""

from __future__ import annotations

from placement.schemas.declarations import Field, Object, integer, number
from placement.schemas.replies.common import GENERATION, by_class
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

_COUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size")
_RECORD = (
    *(Field(name, integer(), required=True) for name in _COUNTS),
    Field("allocation_ratio", number(), required=True),
)
_ONE = Object(GENERATION, *_RECORD)

#: Without an inventory there is no date.
LIST = REPLACE = ok(
    Object(GENERATION, Field("inventories", by_class(Object(*_RECORD)), required=True)), dated=Dated.SOMETIMES
)
CREATE = (Success(201, _ONE, location=True, dated=Dated.ALWAYS),)
SHOW = UPDATE = ok(_ONE)
DELETE = DELETE_ALL = NO_CONTENT
