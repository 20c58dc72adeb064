"""The replies of /traits, /traits/{name}, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from placement.schemas.declarations import Field, Object
from placement.schemas.replies.common import GENERATION, TRAITS
from placement.schemas.success import NO_CONTENT, Success, ok

_TRAITS = Field("traits", TRAITS, required=True)

LIST = ok(Object(_TRAITS))
SHOW = DELETE = CLEAR = NO_CONTENT
ENSURE = (Success(201, location=True), Success(204, location=True))
OF_PROVIDER = REPLACE = ok(Object(GENERATION, _TRAITS))
