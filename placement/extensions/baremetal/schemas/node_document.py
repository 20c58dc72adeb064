"""Documents of nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oslo_utils import strutils

from placement.extensions.baremetal import versions
from placement.extensions.baremetal.objects import states
from placement.extensions.baremetal.objects.node import Node, instance_name
from placement.extensions.baremetal.objects.node_page import COLUMNS
from placement.extensions.baremetal.schemas.node_fields import FIELDS, LINKS
from placement.extensions.baremetal.schemas.reply import Links, date
from placement.http.request import Request

_MASK = "******"
#: Names of secrets in addition to the names known to oslo.utils, which masks only strings.
_SECRET = re.compile(
    r"password|community|(auth|priv|private|kg)_key$|key_contents$|passphrase|secret|token|credential", re.IGNORECASE
)


class NodePresentation:
    """A builder of the documents of nodes, for one request."""

    def __init__(self, req: Request, names: Sequence[str]) -> None:
        """Prepare documents with these fields and the links."""
        self._names = dict.fromkeys(names)
        self._defaults = {name: FIELDS[name].default for name in names if FIELDS[name].detail}
        self._dates = [name for name in names if not FIELDS[name].detail and name.endswith("_at")]
        self._masked = [name for name in ("driver_info", "instance_info") if name in self._names]
        self._links = Links(req, "nodes")
        self._shows_available = req.version >= versions.AVAILABLE_STATE

    @property
    def has_traits(self) -> bool:
        """Whether the documents show traits."""
        return "traits" in self._names

    def of_node(self, node: Node, traits: Sequence[str]) -> dict[str, Any]:
        """Return the document of a node."""
        columns = {name: getattr(node, name) for name in self._names if name in COLUMNS}
        return self({**columns, "uuid": node.uuid, "details": node.details}, traits)

    def __call__(self, columns: dict[str, Any], traits: Sequence[str]) -> dict[str, Any]:
        """Return the document of a row of ``node_page.read``; modifies the row."""
        details, uuid = columns.pop("details", None), columns["uuid"]
        if "uuid" not in self._names:
            del columns["uuid"]
        for name in self._dates:
            columns[name] = date(columns[name])
        if not self._shows_available and columns.get("provision_state") == states.AVAILABLE:
            columns["provision_state"] = None
        if details is not None:
            columns |= self._defaults
            for name in details.keys() & self._defaults.keys():
                columns[name] = details[name]
        if "instance_name" in self._names:
            columns["instance_name"] = instance_name(details)
        for name in self._masked:
            columns[name] = mask(columns[name])
        if "traits" in self._names:
            columns["traits"] = traits
        if "states" in self._names:
            columns["states"] = self._links(f"{uuid}/states")
        columns[LINKS] = self._links(uuid)
        return columns


def mask(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document with passwords, other secrets, the configdrive and the image URL masked."""
    if not info:
        return info
    hidden: dict[str, Any] = _mask_value(strutils.mask_dict_password(info, _MASK))
    return hidden | {name: _MASK for name in ("configdrive", "image_url") if name in hidden}


def _mask_value(value: Any) -> Any:
    """Return the value with secrets masked at any depth, even in lists, which oslo.utils skips."""
    if isinstance(value, list):
        return [
            _mask_value(strutils.mask_dict_password(item, _MASK) if isinstance(item, dict) else item) for item in value
        ]
    if isinstance(value, dict):
        return {name: _MASK if item and _SECRET.search(name) else _mask_value(item) for name, item in value.items()}
    return value
