"""All APIs of the service, whether or not a configuration enables them."""

from __future__ import annotations

from placement import extension, routes

ALL = (routes.PLACEMENT, *(each.api() for each in extension.installed_extensions().values() if each.api))
#: The APIs with routes that write; pages only send dry runs.
WRITTEN = tuple(each for each in ALL if not each.has_pages)
