"""The names of nodes and allocations."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}")


def is_name(text: str) -> bool:
    """Whether a node or an allocation can have this name, but for what is reserved or spells a uuid."""
    return _NAME.fullmatch(text) is not None
