"""The endpoint decorator of this API: ``placement.http.endpoint`` with shared defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placement.extensions.baremetal import access
from placement.http import endpoint as http
from placement.http.endpoint import Endpoint, Handler


def endpoint(**declaration: Any) -> Callable[[Handler], Endpoint]:
    """Return a decorator that turns a handler ``(req, **path values) -> Reply`` into an ``Endpoint``.

    The policy rule is checked for a target owned by the caller's project: a caller refused there may not do this to any
    object.  The node or allocation in the path is checked after it has been read (``access``).

    Args:
        declaration: Fields of ``Endpoint``, by name.
    """
    return http.endpoint(**{"target": access.own_target, "negotiates": False, **declaration})
