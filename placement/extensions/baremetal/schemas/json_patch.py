"""Documents changed by a JSON patch (RFC 6902), of which clients may use ``add``, ``replace`` and ``remove``."""

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

#: Operations of one patch.  A client sends one for each value that it changes, tens of them at most.
MAX_OPERATIONS = 1000
#: Bytes of their values as JSON, in sum; a node stores a quarter of this.
_LARGEST = 2**20
#: Names in a path.  Nothing is stored so deep.
_DEEPEST = 40


class TooManyOperations(errors.BadRequest):
    template = "A patch may have %(most)d operations at most: %(count)d are given"


class PatchTooLarge(errors.BadRequest):
    template = "The values of a patch take more than %(most)d bytes as JSON"


class PathTooDeep(errors.BadRequest):
    template = "A path of a patch may have %(most)d names at most"


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
    """Operations that are applied one after another, with the limits that keep the time of that small.

    It is applied while a transaction is open and others wait for it, so what needs no document is checked before.

    Values are checked when the patch is made, since a copy is made by recursion, and again where they have changed:
    operations can put their values into each other.

    Args:
        operations: Valid by ``body``: they have an ``op`` of the three, and a ``path``.
        updatable: The names at the top that may be changed, or have changes below them.

    Raises:
        TooManyOperations, PatchTooLarge, PathTooDeep: The patch is larger than any that could be applied.
        BadRequest: A value cannot be stored (``free_form.check``); by ``apply``, too.
    """

    operations: Sequence[Operation]
    updatable: Collection[str]

    def __post_init__(self) -> None:
        if len(self.operations) > MAX_OPERATIONS:
            raise TooManyOperations(most=MAX_OPERATIONS, count=len(self.operations))
        size = 0
        for operation in self.operations:
            if operation["path"].count("/") > _DEEPEST:
                raise PathTooDeep(most=_DEEPEST)
            value = operation.get("value")
            free_form.check("value", value)
            size += free_form.size(value)
            if size > _LARGEST:
                raise PatchTooLarge(most=_LARGEST)

    def apply(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the document with the operations applied.

        Args:
            document: Not changed.  A value that can be removed although it is not set is there as None.

        Raises:
            NotUpdatable: An operation is about something else.  It is found before any is applied.
            PatchNotApplied: A path is no JSON pointer, or nothing is where it points to.
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
    """Return the name at the top that a valid operation is about."""
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
