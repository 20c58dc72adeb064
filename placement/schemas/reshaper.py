"""/reshaper"""

from __future__ import annotations

from placement.schemas import allocation, inventory
from placement.schemas.declarations import UUID_KEY, Field, Object, PatternField
from placement.schemas.document import Body
from placement.schemas.success import NO_CONTENT

CREATE = Body(
    Object(
        Field("inventories", Object(PatternField(UUID_KEY, inventory.SET), min_properties=1), required=True),
        Field("allocations", allocation.CONSUMERS_OR_NONE, required=True),
    )
)

CREATE_REPLIES = NO_CONTENT
