"""An endpoint of this API: as ``placement.http.endpoint`` has it, with what is the same for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placement.extensions.baremetal import access
from placement.http import endpoint as http
from placement.http.endpoint import Endpoint, Handler


def endpoint(**declaration: Any) -> Callable[[Handler], Endpoint]:
    """Return a decorator that makes an ``Endpoint`` of a handler ``(req, **path values) -> Reply``.

    Its policy rule is asked about something that the caller's project owns: a caller that is refused can do this to
    nothing.  What may be done to the node or allocation of the path is checked once it was read (``access``).

    Args:
        declaration: The fields of Endpoint, by name.
    """
    return http.endpoint(**{"target": access.own, "negotiates": False, **declaration})
