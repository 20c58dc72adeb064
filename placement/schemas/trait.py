"""/traits, /resource_providers/{uuid}/traits"""

from __future__ import annotations

from placement.schemas.declarations import IDENTIFIER, Array, Field, Object, required, string
from placement.schemas.document import Body, Query
from placement.schemas.provider import GENERATION

REPLACE = Body(Object(Field("traits", Array(IDENTIFIER), required=True), required(GENERATION)))
LIST = Query(
    Object(
        Field("name", string(), text="Names, in:TRAIT,TRAIT, or how they begin, startswith:TEXT."),
        Field("associated", string(), text="true for traits that a provider has, false for all others."),
    )
)
