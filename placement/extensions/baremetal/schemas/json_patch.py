"""JSON patches (RFC 6902) with the operations ``add``, ``replace`` and ``remove``."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonpatch
from jsonpointer import JsonPointer, JsonPointerException

from placement import errors
from placement.extensions.baremetal.schemas import free_form
from placement.schemas.declarations import Array, Field, Object, SchemaType, string
from placement.schemas.document import Body

Operation = Mapping[str, Any]

#: Maximum number of operations in a patch.  Clients send one per changed value, tens at most.
MAX_OPERATIONS = 1000
#: Maximum size of all values together as JSON, in bytes; a node stores at most a quarter of this.
_MAX_BYTES = 2**20
#: Maximum number of names in a path: more than the depth of any stored value.
_MAX_DEPTH = 40


class TooManyOperations(errors.BadRequest):
    template = "A patch has at most %(maximum)d operations: got %(count)d"


class PatchTooLarge(errors.BadRequest):
    template = "The values of a patch exceed %(maximum)d bytes as JSON"


class PathTooDeep(errors.BadRequest):
    template = "A path of a patch has at most %(maximum)d names"


class PatchNotApplied(errors.BadRequest):
    template = "Couldn't apply patch '%(operation)s'. Reason: %(reason)s"


class NotUpdatable(errors.BadRequest):
    template = "Cannot patch %(path)s. Only the following can be updated: %(names)s"


def body(value: SchemaType) -> Body:
    """Return the schema of a patch with values of this type."""
    op, path = string(enum=["add", "replace", "remove"]), string()
    return Body(
        Array(Object(Field("op", op, required=True), Field("path", path, required=True), Field("value", value)))
    )


@dataclass(frozen=True, slots=True)
class Patch:
    """Operations applied one after another, limited so that applying them takes little time.

    A patch is applied in an open transaction for which other transactions wait, so everything that does not depend on
    the document is checked beforehand.  Values are checked on construction, because copying recurses, and after the
    patch is applied, because operations can nest values in each other.

    Attributes:
        operations: The operations, valid according to ``body``.
        updatable: Top-level names that may be changed, at any depth.

    Raises:
        TooManyOperations, PatchTooLarge, PathTooDeep: The patch exceeds a limit.
        BadRequest: A value cannot be stored (``free_form.check``); also raised by ``apply``.
    """

    operations: Sequence[Operation]
    updatable: Collection[str]

    def __post_init__(self) -> None:
        if len(self.operations) > MAX_OPERATIONS:
            raise TooManyOperations(maximum=MAX_OPERATIONS, count=len(self.operations))
        size = 0
        for operation in self.operations:
            if operation["path"].count("/") > _MAX_DEPTH:
                raise PathTooDeep(maximum=_MAX_DEPTH)
            value = operation.get("value")
            free_form.check("value", value)
            size += free_form.size(value)
            if size > _MAX_BYTES:
                raise PatchTooLarge(maximum=_MAX_BYTES)

    def apply(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the document with the operations applied.

        Args:
            document: The document, with None for unset values that may be removed.

        Raises:
            NotUpdatable: An operation changes another name; raised before any operation is applied.
            PatchNotApplied: A path is not a JSON pointer or does not exist in the document.
        """
        names = {_name(operation, self.updatable) for operation in self.operations}
        changed: dict[str, Any] = copy.deepcopy(dict(document))
        for operation in self.operations:
            try:
                changed = jsonpatch.apply_patch(changed, [copy.deepcopy(dict(operation))], in_place=True)
            except (jsonpatch.JsonPatchException, JsonPointerException) as error:
                raise PatchNotApplied(operation=dict(operation), reason=error) from None
        for name in sorted(names & changed.keys()):
            free_form.check(name, changed[name])
        return changed


def _name(operation: Operation, updatable: Collection[str]) -> str:
    """Return the top-level name that a valid operation changes."""
    try:
        parts = JsonPointer(operation["path"]).parts
    except JsonPointerException as error:
        raise PatchNotApplied(operation=dict(operation), reason=error) from None
    if not parts or parts[0] not in updatable:
        raise NotUpdatable(path=operation["path"], names=", ".join(sorted(updatable)))
    if operation["op"] != "remove" and "value" not in operation:
        raise PatchNotApplied(operation=dict(operation), reason="The operation does not contain a 'value' member")
    name: str = parts[0]
    return name
