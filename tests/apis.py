"""All APIs of the service, whether or not a configuration enables them."""

from __future__ import annotations

from placement import extension, routes

ALL = (routes.PLACEMENT, *(installed.api() for installed in extension.installed_extensions().values() if installed.api))
#: The APIs with routes that write; pages only send dry runs.
WRITABLE = tuple(api for api in ALL if not api.has_pages)
