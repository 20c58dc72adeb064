"""Documents changed by a JSON patch (RFC 6902), of which clients may use ``add``, ``replace`` and ``remove``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jsonpatch
from jsonpointer import JsonPointer, JsonPointerException

from placement import errors

Operation = Mapping[str, Any]


class PatchNotApplied(errors.BadRequest):
    template = "Couldn't apply patch '%(operation)s'. Reason: %(reason)s"


class NotUpdatable(errors.BadRequest):
    template = "Cannot patch %(path)s. Only the following can be updated: %(names)s"


def apply(
    document: Mapping[str, Any],
    operations: Sequence[Operation],
    updatable: Collection[str],
    check: Callable[[str, Any], None],
) -> dict[str, Any]:
    """Return a copy of the document with the operations applied, one after another.

    Args:
        document: Not changed.  A value that can be removed although it is not set is there as None.
        operations: Valid by the schema: they have an ``op`` of the three, and a ``path``.
        updatable: The names at the top that may be changed, or have changes below them.
        check: Raises a failure for a value that is too much, of this name.  It is called with the value of each
            operation before anything is copied, since a copy is made by recursion, and with each that has changed:
            operations can put their values into each other.

    Raises:
        NotUpdatable: An operation is about something else.  It is found before any is applied.
        PatchNotApplied: A path is no JSON pointer, or nothing is where it points to.
    """
    for operation in operations:
        check("value", operation.get("value"))
    names = {_name(operation, updatable) for operation in operations}
    changed: dict[str, Any] = copy.deepcopy(dict(document))
    for operation in operations:
        try:
            changed = jsonpatch.apply_patch(changed, [copy.deepcopy(dict(operation))], in_place=True)
        except (jsonpatch.JsonPatchException, JsonPointerException) as error:
            raise PatchNotApplied(operation=dict(operation), reason=error) from None
    for name in sorted(names & changed.keys()):
        check(name, changed[name])
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
