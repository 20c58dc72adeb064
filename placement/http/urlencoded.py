"""Names and values in the form of a query string, of which a body of a form is one, too."""

from __future__ import annotations

from urllib.parse import parse_qsl

from placement import errors


def pairs(content: bytes, encoding: str, part: str) -> list[tuple[str, str]]:
    """Return the names and values, in order.

    Args:
        encoding: Of what is not escaped; what is escaped is UTF-8.
        part: What a name with its value is called, for the message of a refusal.

    Raises:
        InvalidQuery: A name or a value is not in the encoding, or holds NUL.
    """
    try:
        found = parse_qsl(content.decode(encoding), keep_blank_values=True, errors="strict")
    except UnicodeError as error:
        raise errors.InvalidQuery(reason=error) from None
    if any("\0" in text for pair in found for text in pair):
        raise errors.InvalidQuery(reason=f"NUL in a {part}")
    return found
