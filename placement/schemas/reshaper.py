"""/reshaper"""

from __future__ import annotations

from placement.schemas import allocation, inventory
from placement.schemas.document import Body
from placement.schemas.shape import UUID_KEY, Field, Fields, Object

CREATE = Body(
    Object(
        Field("inventories", Object(Fields(UUID_KEY, inventory.SET), at_least=1), required=True),
        Field("allocations", allocation.CONSUMERS_OR_NONE, required=True),
    )
)
