"""/resource_providers/{uuid}/inventories, /resource_providers/{uuid}/inventories/{resource_class}"""

from __future__ import annotations

from placement.db.schema.tables import LARGEST_RATIO
from placement.schemas.declarations import (
    RESOURCE_CLASS_NAME,
    Field,
    Object,
    PatternField,
    integer,
    number,
    required,
    string,
)
from placement.schemas.document import Body
from placement.schemas.provider import GENERATION
from placement.schemas.reply_types import SHOWN_GENERATION, by_class
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

_LARGEST = 2**31 - 1
_COUNT = integer(maximum=_LARGEST, minimum=1)
#: The inventory of one class, as a client states it.
RECORD = (
    Field("total", _COUNT, required=True),
    Field("reserved", integer(maximum=_LARGEST, minimum=0)),
    Field("min_unit", _COUNT),
    Field("max_unit", _COUNT),
    Field("step_size", _COUNT),
    Field("allocation_ratio", number(maximum=LARGEST_RATIO)),
)
_RECORD_IN_SET = Object(GENERATION, *RECORD)

CREATE = Body(Object(GENERATION, *RECORD, Field("resource_class", string(pattern=RESOURCE_CLASS_NAME), required=True)))
UPDATE = Body(Object(*RECORD, required(GENERATION)))

#: All inventories of a provider.  A key that cannot name a resource class is valid here, with a valid record, and is
#: refused later as an unknown class (docs: api-inventories).
SET = Object(
    required(GENERATION),
    Field(
        "inventories",
        Object(PatternField(RESOURCE_CLASS_NAME, _RECORD_IN_SET), additional=_RECORD_IN_SET),
        required=True,
    ),
)
REPLACE = Body(SET)

_COUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size")
_SHOWN_RECORD = (
    *(Field(name, integer(), required=True) for name in _COUNTS),
    Field("allocation_ratio", number(), required=True),
)
_SHOWN = Object(SHOWN_GENERATION, *_SHOWN_RECORD)

#: All inventories of a provider; without inventories, the response has no date.
LIST_REPLIES = REPLACE_REPLIES = ok(
    Object(SHOWN_GENERATION, Field("inventories", by_class(Object(*_SHOWN_RECORD)), required=True)),
    dated=Dated.SOMETIMES,
)
CREATE_REPLIES = (Success(201, _SHOWN, location=True, dated=Dated.ALWAYS),)
SHOW_REPLIES = UPDATE_REPLIES = ok(_SHOWN)
DELETE_REPLIES = DELETE_ALL_REPLIES = NO_CONTENT
