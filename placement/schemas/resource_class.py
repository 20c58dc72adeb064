"""/resource_classes, /resource_classes/{name}"""

from __future__ import annotations

from placement.schemas.declarations import RESOURCE_CLASS_NAME, Array, Field, Object, string
from placement.schemas.document import Body
from placement.schemas.reply_types import LINKS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

#: An object with the name of a custom resource class: a body or, since ENSURE_RESOURCE_CLASS, the name in the path.
NAME = Body(Object(Field("name", string(pattern="^CUSTOM_[A-Z0-9_]+$", maxLength=255), required=True)))
CREATE = NAME

_CLASS = Object(Field("name", string(pattern=RESOURCE_CLASS_NAME), required=True), Field("links", LINKS, required=True))

LIST_REPLIES = ok(Object(Field("resource_classes", Array(_CLASS), required=True)))
CREATE_REPLIES = (Success(201, location=True),)
SHOW_REPLIES = ok(_CLASS)
UPDATE_REPLIES = ok(_CLASS, dated=Dated.NEVER)
ENSURE_REPLIES = (Success(201, location=True), Success(204, location=True))
DELETE_REPLIES = NO_CONTENT
