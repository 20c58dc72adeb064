"""/v1/nodes/{node}/traits, /v1/nodes/{node}/traits/{trait}"""

from __future__ import annotations

from placement.schemas.declarations import Array, Field, Object, required, string
from placement.schemas.document import Body

REPLACE = Body(Object(required(Field("traits", Array(string())))))
#: One trait is added without a body.
ADD = Body(Object())
#: How many traits a node can have.
MOST = 50
