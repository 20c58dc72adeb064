"""Values that clients fill as they like: what cannot be stored as JSON, or not be read again, is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from placement import errors

#: How deeply lists and objects may be nested.  MariaDB's JSON functions, with which it checks what it stores, refuse
#: 32 levels; the column of a node's ``details`` is one around the values in it.
_DEEPEST = 30
#: Bytes of a key in UTF-8: MySQL stores their number in 16 bits.
_LONGEST_KEY = 2**16 - 1
#: Bytes of a value as JSON, and of all values of a node, which are in one column.  A page of a list has up to 1000
#: nodes in memory, and a statement of more than 16 MB, by default, costs the connection to MySQL.
_LARGEST = 2**18
#: MySQL and orjson keep integers of 64 bits exactly.
_LEAST, _MOST = -(2**63), 2**64 - 1


class NestedTooDeeply(errors.BadRequest):
    template = "%(name)s is nested too deeply: at most %(most)s levels are stored"


class KeyTooLong(errors.BadRequest):
    template = "%(name)s has a key of more than %(most)s bytes"


class NodeTooLarge(errors.BadRequest):
    template = "The free values of a node take more than %(most)s bytes as JSON in sum"


class NumberTooLarge(errors.BadRequest):
    template = "%(name)s holds a number that is too large to be stored"


class ValueTooLarge(errors.BadRequest):
    template = "%(name)s takes more than %(most)s bytes as JSON"


def check(name: str, value: Any) -> None:
    """Check a value of any form, without recursion.

    Args:
        name: Of the property, for the failure.

    Raises:
        NestedTooDeeply, KeyTooLong, NumberTooLarge, ValueTooLarge: The value cannot be stored.
    """
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, (dict, list)):
            if depth > _DEEPEST:
                raise NestedTooDeeply(name=name, most=_DEEPEST)
            if isinstance(item, dict):
                _check_keys(name, item)
            inner = item.values() if isinstance(item, dict) else item
            waiting.extend((each, depth + 1) for each in inner)
        elif isinstance(item, float):
            _check(name, math.isfinite(item))
        elif isinstance(item, int):
            _check(name, _LEAST <= item <= _MOST)
    if size(value) > _LARGEST:
        raise ValueTooLarge(name=name, most=_LARGEST)


def check_details(details: Mapping[str, Any]) -> None:
    """Raise NodeTooLarge for values, each of which is valid, that are too much for one node."""
    if size(details) > _LARGEST:
        raise NodeTooLarge(most=_LARGEST)


def size(value: Any) -> int:
    """Return the bytes of the value as JSON."""
    return len(json.dumps(value))


def _check_keys(name: str, keys: Iterable[str]) -> None:
    if any(len(key.encode(errors="surrogatepass")) > _LONGEST_KEY for key in keys):
        raise KeyTooLong(name=name, most=_LONGEST_KEY)


def _check(name: str, storable: bool) -> None:
    if not storable:
        raise NumberTooLarge(name=name)
