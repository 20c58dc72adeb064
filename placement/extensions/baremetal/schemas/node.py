"""/v1/nodes, /v1/nodes/{node}, /v1/nodes/{node}/traits: documents written by clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from oslo_utils import strutils

from placement import errors
from placement.extensions.baremetal.failures import NotInThisVersion
from placement.extensions.baremetal.objects.node import Node, json_differs
from placement.extensions.baremetal.schemas import free_form, json_patch
from placement.extensions.baremetal.schemas.name import is_name
from placement.extensions.baremetal.schemas.node_fields import FIELDS, UPDATABLE
from placement.extensions.baremetal.versions import Version
from placement.schemas.declarations import ANYTHING, Array, Field, Object, required, string
from placement.schemas.document import Body
from placement.uuids import canonical

_RESERVED = ("maintenance", "management", "states", "vendor_passthru", "detail", "validate")


class InvalidNodeName(errors.BadRequest):
    template = "Node names consist of up to 255 letters, digits and -._~, and must not look like a UUID: '%(name)s'"


class ReservedNodeName(errors.BadRequest):
    template = (
        'The word "%(name)s" is reserved and can not be used as a node name. Reserved words are: '
        f"{', '.join(_RESERVED)}."
    )


class NeitherUuidNorName(errors.BadRequest):
    template = "Expected UUID or name for node: %(ident)s"


class NotUuid(errors.BadRequest):
    template = "Expected UUID for %(name)s: %(value)s"


class InvalidNodeValue(errors.BadRequest):
    template = "Invalid %(name)s: %(reason)s"


class NoChassis(errors.BadRequest):
    template = "Chassis %(uuid)s does not exist: this service does not support chassis."


_WRITABLE = [Field(field.name, field.type) for field in FIELDS.values() if field.type is not None]
CREATE = Body(
    Object(
        *(required(field) if field.name == "driver" else field for field in _WRITABLE if FIELDS[field.name].create),
    )
)
PATCH = json_patch.body(ANYTHING)
TRAITS = Body(Object(required(Field("traits", Array(string())))))
#: The optional, empty body of a request that adds one trait.
ONE_TRAIT = Body(Object())
#: Maximum number of traits of a node.
MAX_TRAITS = 50
_UPDATED = Body(Object(*(field for field in _WRITABLE if FIELDS[field.name].update)))


def check_ident(_req: Any, node: str, **_more: str) -> None:
    """Raise NeitherUuidNorName if the path is neither a valid uuid nor a valid name."""
    if canonical(node) is None and not is_name(node):
        raise NeitherUuidNorName(ident=node)


def check_visible(names: Collection[str], version: Version) -> None:
    """Raise NotInThisVersion if one of the fields was added in a later version."""
    if any(name in FIELDS and FIELDS[name].since > version for name in names):
        raise NotInThisVersion()


def stored_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a request, whose types have been validated, in the stored form.

    Raises:
        BadRequest: A value is invalid.
    """
    values = dict(document)
    for name, value in values.items():
        if FIELDS[name].boolean:
            values[name] = _boolean(name, value)
        elif isinstance(value, dict):
            free_form.check(name, value)
    for name in ("uuid", "instance_uuid"):
        if values.get(name) is not None:
            values[name] = uuid_of(name, values[name])
    if values.get("name") is not None:
        _check_name(values["name"])
    if values.get("chassis_uuid") is not None:
        raise NoChassis(uuid=uuid_of("chassis_uuid", values["chassis_uuid"]))
    if "resource_class" in values:
        values["resource_class"] = values["resource_class"] or None
    if values.get("conductor_group"):
        values["conductor_group"] = values["conductor_group"].lower()
    free_form.check_details({name: value for name, value in values.items() if FIELDS[name].detail})
    return values


def without_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with None for defaults in ``details``, which are not stored."""
    return {
        name: None if FIELDS[name].detail and value == FIELDS[name].default else value for name, value in values.items()
    }


def _boolean(name: str, value: Any) -> bool | None:
    if value is None and FIELDS[name].default is None:
        return None
    return truth(name, value)


def _check_name(name: str) -> None:
    if not is_name(name) or canonical(name) is not None:
        raise InvalidNodeName(name=name)
    if name in _RESERVED:
        raise ReservedNodeName(name=name)


def changes(operations: Sequence[json_patch.Operation], version: Version) -> Callable[[Node], dict[str, Any]]:
    """Return a function that applies the operations to a node and returns the new values by field.

    Raises:
        NotInThisVersion: An operation changes a field added in a later version.
        BadRequest: The patch or a value is invalid (``json_patch.Patch``, ``stored_form``); the function raises it too.
    """
    patch = json_patch.Patch(operations, UPDATABLE)
    for operation in operations:
        check_visible([operation["path"].removeprefix("/").partition("/")[0]], version)

    def changes_of(node: Node) -> dict[str, Any]:
        old_values = {name: _value(node, name) for name in UPDATABLE}
        patched = patch.apply(old_values)
        changed: dict[str, Any] = {}
        for name, old in old_values.items():
            value = patched.get(name, FIELDS[name].default)
            if json_differs(value, old):
                changed[name] = FIELDS[name].default if value is None else value
        if "name" in changed and "name" in patched and patched["name"] is None:
            raise InvalidNodeName(name=None)
        if changed.get("maintenance") is False and patched.get("maintenance", False) is None:
            raise InvalidNodeValue(name="maintenance", reason="it cannot be null")
        _UPDATED.validate(changed, version)
        new = without_defaults(
            {name: value for name, value in stored_form(changed).items() if json_differs(value, old_values[name])}
        )
        _check_details(node, new)
        return new

    return changes_of


def _check_details(node: Node, changed: Mapping[str, Any]) -> None:
    """Raise NodeTooLarge if the details grow beyond the limit; details already beyond it may shrink."""
    details = {name: value for name, value in changed.items() if FIELDS[name].detail}
    merged = {name: value for name, value in {**node.details, **details}.items() if value is not None}
    if details and free_form.size(merged) > free_form.size(node.details):
        free_form.check_details(merged)


def _value(node: Node, name: str) -> Any:
    field = FIELDS[name]
    return node.details.get(name, field.default) if field.detail else getattr(node, name)


def truth(name: str, value: object) -> bool:
    """Return the boolean for a word such as ``True`` or ``no``, or raise InvalidNodeValue."""
    try:
        return bool(strutils.bool_from_string(value, strict=True))
    except ValueError as error:
        raise InvalidNodeValue(name=name, reason=error) from None


def uuid_of(name: str, value: str) -> str:
    """Return the canonical uuid of a text, or raise NotUuid."""
    uuid = canonical(value)
    if uuid is None:
        raise NotUuid(name=name, value=value)
    return uuid
