"""The names of nodes and allocations."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}")


def is_name(text: str) -> bool:
    """Whether this is a valid name of a node or an allocation; reserved names and uuids are not checked."""
    return _NAME.fullmatch(text) is not None
