"""The body of a request: its bytes, and the JSON value that they spell."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn
from wsgiref.types import WSGIEnvironment

from placement import errors

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def read(environ: WSGIEnvironment, most: int) -> bytes:
    """Return the bytes of the body.

    That a Content-Length is a number, and not above the limit, was checked before the routing.  WebOb's ``body`` is not
    used: it copies what it reads, and its error for a client that goes away is not one of ours.

    Args:
        most: The largest size of a body without a Content-Length, in bytes.

    Raises:
        MalformedJSON: The client went away, or sends slower than the server waits.
        TooLarge: A body without a length has more bytes than ``most``.
    """
    try:
        if length := int(environ.get("CONTENT_LENGTH") or 0):
            content: bytes = environ["wsgi.input"].read(length)
            return content
        if not environ.get("wsgi.input_terminated"):
            return b""
        # A chunked body, and a server that knows where it ends.
        content = environ["wsgi.input"].read(most + 1)
    except OSError as error:
        raise errors.MalformedJSON(reason=str(error)) from None
    if len(content) > most:
        raise errors.TooLarge(most=most)
    return content


def parse_json(content: bytes, most: int | None = None) -> Any:
    """Return the value of a JSON text.

    The parser is stricter than the standard module: it refuses NaN and Infinity, which are not JSON, and NUL and single
    surrogates in strings, which no database can hold.

    Args:
        most: How many values the text may hold; None for any number.

    Raises:
        MalformedJSON: The text is not JSON, or holds a string that cannot be stored.
        TooManyValues: The text holds more than ``most`` values.
    """
    if most is not None and len(content) > most:
        _check_count(content, most)
    try:
        text = content.decode()
        value = _DECODER.decode(text) if not text.startswith(_BOM) else json.loads(text)  # which names the mistake
    except ValueError as error:
        # The error itself holds the whole text.
        raise errors.MalformedJSON(reason=str(error)) from None
    except RecursionError:
        raise errors.MalformedJSON(reason="nested too deeply") from None
    if b"\\u" in content:
        _refuse_unstorable(value)
    return value


def _check_count(content: bytes, most: int) -> None:
    """Refuse a text of too many values before any is made: 16 MiB of empty objects take 400 MB.

    A value is the first of a list or an object, or follows a comma.  Commas and brackets inside of strings count, too:
    no request of this service needs so many.
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > most:
        raise errors.TooManyValues(most=most)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


#: ``json.loads`` makes a new one for each call that has options.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_BOM = "\ufeff"


def _refuse_unstorable(value: Any) -> None:
    """Look at every string, without recursion: the client chooses the depth."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str) and _UNSTORABLE.search(item):
            raise errors.MalformedJSON(reason="a string holds NUL or half of a surrogate pair")
