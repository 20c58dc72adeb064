"""Checks of free-form JSON values, which refuse values that a database cannot store or return."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from placement import errors

#: Maximum depth of lists and objects.  MariaDB validates stored values with its JSON functions, which refuse 32 levels;
#: the column ``details`` of a node adds one level around its values.
_MAX_DEPTH = 30
#: Maximum length of a key, in bytes of UTF-8: MySQL stores the length in 16 bits.
_MAX_KEY_BYTES = 2**16 - 1
#: Maximum number of bytes of a value as JSON, and of all values of a node, which share a column.  A page of a list
#: holds up to 1000 nodes in memory, and MySQL by default closes the connection on a statement of more than 16 MB.
_MAX_BYTES = 2**18
#: Range of integers that MySQL and orjson represent exactly, in 64 bits.
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1


class NestedTooDeeply(errors.BadRequest):
    template = "%(name)s is nested too deeply: at most %(maximum)s levels are allowed"


class KeyTooLong(errors.BadRequest):
    template = "%(name)s contains a key of more than %(maximum)s bytes"


class NodeTooLarge(errors.BadRequest):
    template = "The free-form values of a node exceed %(maximum)s bytes as JSON"


class NumberTooLarge(errors.BadRequest):
    template = "%(name)s contains a number that is too large"


class ValueTooLarge(errors.BadRequest):
    template = "%(name)s exceeds %(maximum)s bytes as JSON"


def check(name: str, value: Any) -> None:
    """Check a free-form value; without recursion, since it may be nested deeply.

    Args:
        name: The property, for failures.

    Raises:
        NestedTooDeeply, KeyTooLong, NumberTooLarge, ValueTooLarge: The value cannot be stored.
    """
    pending = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, (dict, list)):
            if depth > _MAX_DEPTH:
                raise NestedTooDeeply(name=name, maximum=_MAX_DEPTH)
            if isinstance(item, dict):
                _check_keys(name, item)
            children = item.values() if isinstance(item, dict) else item
            pending.extend((child, depth + 1) for child in children)
        elif isinstance(item, float):
            _check_number(name, math.isfinite(item))
        elif isinstance(item, int):
            _check_number(name, _MIN_INTEGER <= item <= _MAX_INTEGER)
    if size(value) > _MAX_BYTES:
        raise ValueTooLarge(name=name, maximum=_MAX_BYTES)


def check_details(details: Mapping[str, Any]) -> None:
    """Raise NodeTooLarge if all values of a node together are too large, although each is valid."""
    if size(details) > _MAX_BYTES:
        raise NodeTooLarge(maximum=_MAX_BYTES)


def size(value: Any) -> int:
    """Return the size of the value as JSON, in bytes."""
    return len(json.dumps(value))


def _check_keys(name: str, keys: Iterable[str]) -> None:
    if any(len(key.encode(errors="surrogatepass")) > _MAX_KEY_BYTES for key in keys):
        raise KeyTooLong(name=name, maximum=_MAX_KEY_BYTES)


def _check_number(name: str, storable: bool) -> None:
    if not storable:
        raise NumberTooLarge(name=name)
