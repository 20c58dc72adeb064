"""Paging through lists of the v1 API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit


def pages(
    get: Callable[[str, str], dict[str, Any]], path: str, query: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the pages of a list.

    Args:
        get: A function of a path of the v1 API and a query string that returns the document; its exceptions are raised.

    Raises:
        ValueError: A link to the next page leads to a page that was read before.
    """
    text = urlencode(query, errors="surrogateescape")  # keeps bytes that are not UTF-8
    requested_queries = {text}
    while True:
        document = get(path, text)
        yield document
        if not document.get("next"):
            return
        # Only the query of the link is used: the link may name another host, which must not receive the token.
        text = urlsplit(document["next"]).query
        if text in requested_queries:
            raise ValueError("the link to the next page leads to a page that was read before")
        requested_queries.add(text)
