"""Reading and parsing of request bodies: JSON and forms.

Limits are checked on the bytes, before the parser allocates any values.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.schemas import document

#: Levels of nested lists and objects.  Valid bodies have fewer; the libraries that validate and encode recurse.
MAX_DEPTH = 100
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def read(environ: WSGIEnvironment, max_size: int) -> bytes:
    """Return the bytes of the body.

    ``Application`` has already checked the Content-Length.  WebOb's ``body`` is not used because it copies the bytes
    and reports a disconnected client with its own error.

    Args:
        max_size: The maximum size of a body without a Content-Length, in bytes.

    Raises:
        MalformedJSON: The client disconnected, or the server timed out while reading.
        TooLarge: A body without a Content-Length is larger than ``max_size``.
    """
    try:
        if length := int(environ.get("CONTENT_LENGTH") or 0):
            content: bytes = environ["wsgi.input"].read(length)
            return content
        if not environ.get("wsgi.input_terminated"):
            return b""
        # A chunked body, whose end the server detects.
        content = environ["wsgi.input"].read(max_size + 1)
    except OSError as error:
        raise errors.MalformedJSON(reason=str(error)) from None
    if len(content) > max_size:
        raise errors.TooLarge(limit=max_size)
    return content


def parse_form(content: bytes, max_values: int) -> list[tuple[str, str]]:
    """Return the fields of a form, in order.

    Args:
        content: The urlencoded form.
        max_values: The limit on fields plus percent-encoded bytes.

    Raises:
        InvalidQuery: A name or a value is not UTF-8 or contains NUL.
        TooManyValues: The form exceeds ``max_values``.
    """
    _check_count(content, (b"&", b"%"), max_values)
    return document.parse_urlencoded(content, "ascii", "field")


def parse_json(content: bytes, max_values: int) -> Any:
    """Return the value of a JSON text.

    The function is stricter than the ``json`` module: it refuses NaN and Infinity, which are not JSON, and NUL and lone
    surrogates in strings, which no database can store.

    Args:
        content: The text in UTF-8.
        max_values: The limit on values in the text.

    Raises:
        MalformedJSON: The text is not JSON, is nested too deeply, or contains a string that cannot be stored.
        TooManyValues: The text may contain more than ``max_values`` values.
    """
    # A value is the first of a list or an object, or follows a comma.
    _check_count(content, (b",", b"[", b"{"), max_values)
    try:
        text = content.decode()
        # With a byte order mark, json.loads raises an error that mentions it; the decoder's would not.
        value = _DECODER.decode(text) if not text.startswith(_BOM) else json.loads(text)
    except ValueError as error:
        # Chaining the error would keep the whole text, which it refers to.
        raise errors.MalformedJSON(reason=str(error)) from None
    except RecursionError:
        raise errors.MalformedJSON(reason=_TOO_DEEP) from None
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and isinstance(value, (dict, list)):
        _refuse_deep(value)
    if b"\\u" in content:
        _refuse_unstorable(value)
    return value


def _check_count(content: bytes, delimiters: tuple[bytes, ...], max_values: int) -> None:
    """Raise TooManyValues before parsing: 16 MiB of empty objects take 400 MB of memory, 16 MiB of fields 900 MB.

    Delimiters inside strings count as well; no valid request comes near the limit.
    """
    if len(content) > max_values and sum(map(content.count, delimiters)) > max_values:
        raise errors.TooManyValues(limit=max_values)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


#: The shared decoder: ``json.loads`` with options creates a decoder per call.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_BOM = "\ufeff"
_TOO_DEEP = "nested too deeply"


def _refuse_deep(value: dict[str, Any] | list[Any]) -> None:
    """Raise MalformedJSON if lists and objects are nested too deeply; walks breadth-first, without recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        members = (item.values() if isinstance(item, dict) else item for item in level)
        level = [member for group in members for member in group if isinstance(member, (dict, list))]
        if not level:
            return
    raise errors.MalformedJSON(reason=_TOO_DEEP)


def _refuse_unstorable(value: Any) -> None:
    """Raise MalformedJSON if a string contains NUL or a lone surrogate; does not recurse."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and _UNSTORABLE.search(item):
            raise errors.MalformedJSON(reason="a string contains NUL or half of a surrogate pair")
