"""The body of a request: its bytes, and the JSON value or the form that they spell.

Every limit is applied before what it bounds is made of the bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn
from wsgiref.types import WSGIEnvironment

from placement import errors
from placement.schemas import document

#: How deeply lists and objects may be nested.  What is valid has less; the libraries that validate and encode recurse.
DEEPEST = 100
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


def parse_form(content: bytes, most: int) -> list[tuple[str, str]]:
    """Return the fields of a form, in order.

    Args:
        most: How many fields and escaped bytes the form may hold.

    Raises:
        InvalidQuery: A name or a value is not UTF-8, or holds NUL.
        TooManyValues: The form holds more than ``most``.
    """
    _check_count(content, (b"&", b"%"), most)
    return document.urlencoded(content, "ascii", "field")


def parse_json(content: bytes, most: int) -> Any:
    """Return the value of a JSON text.

    The parser is stricter than the standard module: it refuses NaN and Infinity, which are not JSON, and NUL and single
    surrogates in strings, which no database can hold.

    Args:
        most: How many values the text may hold.

    Raises:
        MalformedJSON: The text is not JSON, is nested too deeply, or holds a string that cannot be stored.
        TooManyValues: The text holds more than ``most`` values.
    """
    # A value is the first of a list or an object, or follows a comma.
    _check_count(content, (b",", b"[", b"{"), most)
    try:
        text = content.decode()
        value = _DECODER.decode(text) if not text.startswith(_BOM) else json.loads(text)  # which names the mistake
    except ValueError as error:
        # The error itself holds the whole text.
        raise errors.MalformedJSON(reason=str(error)) from None
    except RecursionError:
        raise errors.MalformedJSON(reason=_TOO_DEEP) from None
    if content.count(b"[") + content.count(b"{") > DEEPEST and isinstance(value, (dict, list)):
        _refuse_deep(value)
    if b"\\u" in content:
        _refuse_unstorable(value)
    return value


def _check_count(content: bytes, signs: tuple[bytes, ...], most: int) -> None:
    """Refuse a body of too many values before any is made: 16 MiB of empty objects take 400 MB, of fields 900 MB.

    Each of these characters begins or ends a value.  Those inside strings count, too: no valid request has that many.
    """
    if len(content) > most and sum(map(content.count, signs)) > most:
        raise errors.TooManyValues(most=most)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


#: ``json.loads`` makes a new one for each call that has options.
_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_BOM = "\ufeff"
_TOO_DEEP = "nested too deeply"


def _refuse_deep(value: dict[str, Any] | list[Any]) -> None:
    """Look at every list and object, level by level: the client chooses the depth."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        members = (item.values() if isinstance(item, dict) else item for item in level)
        level = [member for inside in members for member in inside if isinstance(member, (dict, list))]
        if not level:
            return
    raise errors.MalformedJSON(reason=_TOO_DEEP)


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
