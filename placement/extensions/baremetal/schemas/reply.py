"""Parts shared by the documents of nodes and allocations: dates, links, and the link to the next page."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from placement.extensions.baremetal.objects.keyset import Paging
from placement.http.request import Request


def date(timestamp: datetime.datetime | None) -> str | None:
    """Return a timestamp (naive, UTC) with microseconds and offset, such as ``2026-11-20T08:11:35.396209+00:00``."""
    return None if timestamp is None else f"{timestamp.isoformat(timespec='microseconds')}+00:00"


class Links:
    """A builder of the links of the items of a collection, for one request."""

    def __init__(self, req: Request, collection: str) -> None:
        self._self = req.absolute_url(f"/v1/{collection}/")
        self._bookmark = req.absolute_url(f"/{collection}/")

    def __call__(self, uuid: str) -> list[dict[str, str]]:
        """Return the links of an item."""
        return [{"href": self._self + uuid, "rel": "self"}, {"href": self._bookmark + uuid, "rel": "bookmark"}]


def next_page(
    req: Request,
    path: str,
    paging: Paging,
    last: str,
    *,
    fields: Sequence[str] | None = None,
    filters: Mapping[str, str] | None = None,
) -> str:
    """Return the link to the next page.

    Args:
        path: The path of the collection.
        last: The uuid of the last item on this page.
        fields: The fields that the client selected.
        filters: Other parameters of the query to repeat.
    """
    query: dict[str, Any] = {"sort_key": paging.sort_key, "sort_dir": "desc" if paging.descending else "asc"}
    if fields:
        query["fields"] = ",".join(fields)
    query |= {"limit": paging.limit, "marker": last, **(filters or {})}
    return f"{req.absolute_url(path)}?{urlencode(query, safe=',')}"
