"""The replies of /resource_classes, /resource_classes/{name}"""

from __future__ import annotations

from placement.schemas.declarations import RESOURCE_CLASS_NAME, Array, Field, Object, string
from placement.schemas.replies.common import LINKS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

_CLASS = Object(Field("name", string(pattern=RESOURCE_CLASS_NAME), required=True), Field("links", LINKS, required=True))

LIST = ok(Object(Field("resource_classes", Array(_CLASS), required=True)))
CREATE = (Success(201, location=True),)
SHOW = ok(_CLASS)
UPDATE = ok(_CLASS, dated=Dated.NEVER)
ENSURE = (Success(201, location=True), Success(204, location=True))
DELETE = NO_CONTENT
