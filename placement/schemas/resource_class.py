"""/resource_classes, /resource_classes/{name}"""

from __future__ import annotations

from placement.schemas.document import Body
from placement.schemas.shape import Field, Object, string

#: A custom resource class, in the body or (mv.ENSURE_RESOURCE_CLASS) as {"name": <the name in the path>}.
NAME = Body(Object(Field("name", string(pattern="^CUSTOM_[A-Z0-9_]+$", maxLength=255), required=True)))
CREATE = NAME
