"""Contents of a snapshot as JSON, for comparing the indices of processes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Set
from typing import Any

from placement.index.snapshot import Snapshot
from tests.index.contents import meaning


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return the complete contents of a snapshot; equal for snapshots of the same database state."""
    content: dict[str, Any] = _as_plain_json(meaning(snapshot))
    return content


def digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of the contents, in hexadecimal."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _as_plain_json(value: Any) -> Any:
    match value:
        case Mapping():
            return {_key(key): _as_plain_json(item) for key, item in value.items()}
        case Set():
            return sorted(value)
        case tuple() | list():
            return [_as_plain_json(item) for item in value]
        case _:
            number = value.item() if hasattr(value, "item") else value  # a NumPy scalar
            return str(number) if number == -math.inf else number  # not representable in JSON


def _key(key: Any) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
