"""/resource_providers/{uuid}/inventories, /resource_providers/{uuid}/inventories/{resource_class}"""

from __future__ import annotations

from placement.schemas.document import Body
from placement.schemas.provider import GENERATION
from placement.schemas.shape import RESOURCE_CLASS_NAME, Field, Fields, Object, integer, number, required, string

_MOST = 2**31 - 1
_COUNT = integer(maximum=_MOST, minimum=1)
_RECORD = (
    Field("total", _COUNT, required=True),
    Field("reserved", integer(maximum=_MOST, minimum=0)),
    Field("min_unit", _COUNT),
    Field("max_unit", _COUNT),
    Field("step_size", _COUNT),
    Field("allocation_ratio", number(maximum=3.40282e38)),
)
_RECORD_IN_SET = Object(GENERATION, *_RECORD)

CREATE = Body(Object(GENERATION, *_RECORD, Field("resource_class", string(pattern=RESOURCE_CLASS_NAME), required=True)))
UPDATE = Body(Object(*_RECORD, required(GENERATION)))

#: The whole set of a provider.  A key that can be no resource class is left to be an unknown one (contract 2.6), but
#: what stands under it is a record all the same.
SET = Object(
    required(GENERATION),
    Field("inventories", Object(Fields(RESOURCE_CLASS_NAME, _RECORD_IN_SET), others=_RECORD_IN_SET), required=True),
)
REPLACE = Body(SET)
