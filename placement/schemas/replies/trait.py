"""The replies of /traits, /traits/{name}, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from placement.schemas.declarations import Field, Object
from placement.schemas.replies.common import GENERATION, TRAITS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

_TRAITS = Field("traits", TRAITS, required=True)

LIST = ok(Object(_TRAITS))
SHOW = (Success(204, dated=Dated.ALWAYS),)
ENSURE = (Success(201, location=True, dated=Dated.ALWAYS), Success(204, location=True, dated=Dated.ALWAYS))
DELETE = CLEAR = NO_CONTENT
OF_PROVIDER = REPLACE = ok(Object(GENERATION, _TRAITS))
