"""The pages of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit


def pages(
    get: Callable[[str, str], dict[str, Any]], path: str, query: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the documents of a list, page by page.

    Args:
        get: Returns the document at a path below /v1, with this query string.  Its exceptions are raised.

    Raises:
        ValueError: A link to the next page leads to one that was read.
    """
    text = urlencode(query, errors="surrogateescape")  # bytes that are no UTF-8, too
    asked = {text}
    while True:
        document = get(path, text)
        yield document
        if not document.get("next"):
            return
        # Of the link only the query: another host would get the token.
        text = urlsplit(document["next"]).query
        if text in asked:
            raise ValueError("the link to the next page leads to one that was read")
        asked.add(text)
