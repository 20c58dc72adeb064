"""/v1/drivers"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from placement import errors
from placement.extensions.baremetal import versions
from placement.extensions.baremetal.endpoint import endpoint
from placement.extensions.baremetal.failures import NotInThisVersion
from placement.extensions.baremetal.schemas.query import Arguments
from placement.http.request import Request
from placement.http.response import Reply, ok

#: Query parameters, and the first version of each.
_PARAMETERS = {
    "type": versions.DRIVER_TYPES,
    "detail": versions.DRIVER_TYPES,
    "fields": versions.DRIVER_FIELDS,
}
_FIELDS = ("name", "hosts", "type")
#: The type of every driver; "classic" drivers no longer exist.
_TYPE = "dynamic"


class UnknownDriverType(errors.BadRequest):
    template = '"type" filter must be one of "classic" or "dynamic", if specified.'


@endpoint(policy="baremetal:driver:get")
def list_drivers(req: Request) -> Reply:
    """List the drivers that nodes may name.  No host runs them, since the service controls no hardware."""
    arguments = Arguments(req.pairs(), _PARAMETERS)
    fields = arguments.fields(_FIELDS)
    if any(req.version < _PARAMETERS[name] for name in arguments.values_of(_PARAMETERS)):
        raise NotInThisVersion()
    driver_type = arguments.get("type")
    if driver_type not in (None, "classic", _TYPE):
        raise UnknownDriverType()
    names = sorted(set(req.conf.baremetal.drivers)) if driver_type != "classic" else []
    return ok({"drivers": [_document(req, name, fields) for name in names]})


def _document(req: Request, name: str, fields: Collection[str] | None) -> dict[str, Any]:
    document: dict[str, Any] = {"name": name, "hosts": []}
    if req.version >= versions.DRIVER_TYPES:
        document["type"] = _TYPE
    return document if fields is None else {field: value for field, value in document.items() if field in fields}
