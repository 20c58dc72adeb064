"""/resource_classes, /resource_classes/{name}"""

from __future__ import annotations

from placement.schemas.declarations import Field, Object, string
from placement.schemas.document import Body

#: A custom resource class, in the body or (mv.ENSURE_RESOURCE_CLASS) as {"name": <the name in the path>}.
NAME = Body(Object(Field("name", string(pattern="^CUSTOM_[A-Z0-9_]+$", maxLength=255), required=True)))
CREATE = NAME
