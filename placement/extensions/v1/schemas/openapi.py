"""/openapi.json, /openapi-placement.json"""

from __future__ import annotations

from placement import microversion as mv
from placement.schemas.declarations import ANYTHING, Field, Object, string
from placement.schemas.document import Query
from placement.schemas.success import Dated, Success

_LATEST = "latest"
_VERSIONS = string(enum=[*(str(entry.version) for entry in mv.HISTORY), _LATEST])

#: The query for the document of one version of the Placement API.
VERSION = Query(Object(Field("version", _VERSIONS, text="A version of Placement; by default the newest.")))

_DOCUMENT = Object(
    Field("openapi", string(), required=True),
    Field("info", Object(additional=ANYTHING), required=True),
    Field("paths", Object(additional=ANYTHING), required=True),
    additional=ANYTHING,
)
_ETAG = (("etag", "A tag that changes whenever the document changes."),)
#: The response with 304 is for a client that sends the ETag of the present document.
SHOW = (
    Success(200, _DOCUMENT, headers=_ETAG, dated=Dated.SOMETIMES),
    Success(304, headers=_ETAG, dated=Dated.SOMETIMES),
)
