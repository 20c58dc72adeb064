"""/traits, /traits/{name}, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from placement.schemas.declarations import IDENTIFIER, Array, Field, Object, required, string
from placement.schemas.document import Body, Query
from placement.schemas.provider import GENERATION
from placement.schemas.reply_types import SHOWN_GENERATION, TRAITS
from placement.schemas.success import NO_CONTENT, Dated, Success, ok

REPLACE = Body(Object(Field("traits", Array(IDENTIFIER), required=True), required(GENERATION)))
LIST = Query(
    Object(
        Field("name", string(), text="Names of traits: in:TRAIT,TRAIT; or a prefix: startswith:TEXT."),
        Field("associated", string(), text="true for traits that some provider has, false for all others."),
    )
)

_TRAITS = Field("traits", TRAITS, required=True)

LIST_REPLIES = ok(Object(_TRAITS))
SHOW_REPLIES = (Success(204, dated=Dated.ALWAYS),)
ENSURE_REPLIES = (Success(201, location=True, dated=Dated.ALWAYS), Success(204, location=True, dated=Dated.ALWAYS))
DELETE_REPLIES = CLEAR_REPLIES = NO_CONTENT
OF_PROVIDER_REPLIES = REPLACE_REPLIES = ok(Object(SHOWN_GENERATION, _TRAITS))
