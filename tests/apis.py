"""All APIs of the service, whether a configuration asks for them or not."""

from __future__ import annotations

from placement import extension, routes

ALL = (routes.PLACEMENT, *(each.api() for each in extension.installed().values() if each.api))
#: Those with routes that write: a page only tries what it would write.
WRITTEN = tuple(each for each in ALL if not each.has_pages)
