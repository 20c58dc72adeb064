"""/openapi.json, /openapi-placement.json"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import ANYTHING, Field, Object, string
from placement.schemas.document import Query
from placement.schemas.success import Dated, Success

_LATEST = "latest"
_VERSIONS = string(enum=[*(str(each.version) for each in mv.HISTORY), _LATEST])

#: The version of Placement that is described.
VERSION = Query(Object(Field("version", _VERSIONS, text="A version of Placement; the newest if none is given.")))

_DOCUMENT = Object(
    Field("openapi", string(), required=True),
    Field("info", Object(additional=ANYTHING), required=True),
    Field("paths", Object(additional=ANYTHING), required=True),
    additional=ANYTHING,
)
_ETAG = (("etag", "Changes with the document."),)
#: The second one is for a client that sends the ETag of the document, because it has it already.
SHOW = (
    Success(200, _DOCUMENT, headers=_ETAG, dated=Dated.SOMETIMES),
    Success(304, headers=_ETAG, dated=Dated.SOMETIMES),
)
