"""Examples in the pages of docs/api: how they are written, run and compared.

An example is two blocks, a request and its response::

    .. code-block:: http

       GET /resource_providers?member_of=c4b1a5a8-0a5b-4f4e-9a0d-6d0d4d0f0a01
           &required=HW_CPU_X86_AVX2
       OpenStack-API-Version: placement 1.39

    .. code-block:: http

       HTTP/1.1 200 OK
       Content-Type: application/json

       {"resource_providers": []}

Long lines of a head are folded: an indented line continues the previous one.  ``HTTP/1.1`` after the path is optional,
and ``...`` in place of a header represents further headers.

The examples of a page run in order against a new service.  The headers of ``DEFAULTS`` are added to a request that does
not show them, and ``Content-Type: application/json`` to one with a body.  The status line of a response, the headers
that the page shows, and the body are compared.  In an expected response ``...`` matches any text; the string ``"..."``
matches any value, any number of elements in a list, and, as a key, any further members of an object.

Comments in the page are directives that the rendered page does not show:

- ``.. example-setup:`` with an indented block: requests that are sent here and must succeed, at the latest version
  unless they show another;
- ``.. example-unordered:`` between a request and its response: the order of list elements is not compared;
- ``.. example-none:`` with a reason: the page has no examples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import webob

#: The host of the service in the examples, and the headers of a request that does not show them.
HOST = "placement.example.com"
DEFAULTS = {"Host": HOST, "X-Auth-Token": "admin", "X-Roles": "admin,service"}
LATEST = "placement latest, baremetal latest"
ANY = "..."

_REQUEST_LINE = re.compile(r"(GET|PUT|POST|DELETE|HEAD|OPTIONS|PATCH) (/\S*)(?: HTTP/1\.1)?")
_STATUS_LINE = re.compile(r"HTTP/1\.1 (\d{3} .+)")
_HEADER = re.compile(r"([A-Za-z-]+): *(.*)")
_DIRECTIVE = re.compile(r"( *)\.\. (?:(code-block|sourcecode):: *http|(example-(?:setup|unordered|none)):) *(.*)")


class Malformed(ValueError):
    """A block is not a valid example; the message has its line."""


class Mismatch(AssertionError):
    """A response differs from the page; the message has the line of the example and the difference."""


@dataclass(frozen=True)
class Request:
    line: int
    method: str
    path: str
    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Reply:
    line: int
    status: str
    headers: dict[str, str]
    body: str
    ordered: bool = True


@dataclass(frozen=True)
class Example:
    """A request and the response that the page shows; a set-up request has no response."""

    request: Request
    reply: Reply | None = None


@dataclass
class Page:
    examples: list[Example] = field(default_factory=list)
    #: The reason for having no examples, or None.
    reason: str | None = None


# --- parsing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    """A directive or comment of this module: its line, kind, argument and indented lines."""

    line: int
    kind: str
    argument: str
    content: list[str]


def parse(text: str) -> Page:
    """Return the examples of a page.

    Raises:
        Malformed: A block is not a valid example, or the page has neither examples nor a reason.
    """
    page = Page()
    pending: Request | None = None
    ordered = True
    for block in _blocks(text):
        if pending is None and block.kind == "example-unordered":
            raise Malformed(f"line {block.line}: example-unordered must be between a request and its response")
        if pending is not None and block.kind in ("example-setup", "example-none"):
            raise Malformed(f"line {pending.line}: a request without a response")
        if block.kind == "example-none":
            page.reason = " ".join([block.argument, *block.content]).strip()
        elif block.kind == "example-setup":
            page.examples.extend(Example(request) for request in _set_up(block))
        elif block.kind == "example-unordered":
            ordered = False
        elif pending is None:
            pending = _request(block.line, block.content)
        else:
            page.examples.append(Example(pending, _reply(block.line, block.content, ordered)))
            pending, ordered = None, True
    if pending is not None:
        raise Malformed(f"line {pending.line}: a request without a response")
    if page.reason == "" or bool(page.reason) == any(example.reply for example in page.examples):
        raise Malformed("a page needs examples, or the reason for having none in example-none")
    return page


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        start = number
        number += 1
        match = _DIRECTIVE.fullmatch(lines[start])
        if match is None:
            continue
        indent = len(match[1])
        while number < len(lines) and _is_in_block(lines[number], indent):
            number += 1
        yield _Block(start + 1, match[3] or "http", match[4], _dedent(lines[start + 1 : number]))


def _is_in_block(line: str, indent: int) -> bool:
    return not line.strip() or len(line) - len(line.lstrip()) > indent


def _dedent(lines: list[str]) -> list[str]:
    """Return the lines without common indentation, directive options, and blank lines at both ends."""
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    cut = [line[margin:].rstrip() for line in lines]
    while cut and (not cut[0] or re.match(r":[a-z-]+:", cut[0])):
        del cut[0]
    while cut and not cut[-1]:
        del cut[-1]
    return cut


def _set_up(block: _Block) -> Iterator[Request]:
    starts = [index for index, line in enumerate(block.content) if _REQUEST_LINE.fullmatch(line)]
    if not starts or starts[0] != 0:
        raise Malformed(f"line {block.line}: set-up requests begin with a request line")
    for start, end in zip(starts, [*starts[1:], len(block.content)], strict=True):
        request = _request(block.line, block.content[start:end])
        request.headers.setdefault("OpenStack-API-Version", LATEST)
        yield request


def _request(line: int, content: list[str]) -> Request:
    head, body = _head_and_body(content, fold="")
    match = _REQUEST_LINE.fullmatch(head[0]) if head else None
    if match is None:
        raise Malformed(f"line {line}: the block does not begin with a request line like 'GET /path HTTP/1.1'")
    return Request(line, match[1], match[2], _headers(line, head[1:]), body)


def _reply(line: int, content: list[str], ordered: bool) -> Reply:
    head, body = _head_and_body(content, fold=" ")
    match = _STATUS_LINE.fullmatch(head[0]) if head else None
    if match is None:
        raise Malformed(f"line {line}: a response begins with a status line like 'HTTP/1.1 200 OK'")
    return Reply(line, match[1], _headers(line, head[1:]), body, ordered)


def _head_and_body(content: list[str], fold: str) -> tuple[list[str], str]:
    """Return the lines of the head, folded ones joined by ``fold``, and the text after the first blank line."""
    blank = content.index("") if "" in content else len(content)
    head: list[str] = []
    for text in content[:blank]:
        if head and text.startswith(" "):
            head[-1] += fold + text.strip()
        else:
            head.append(text)
    return head, "\n".join(content[blank:]).strip()


def _headers(line: int, head: list[str]) -> dict[str, str]:
    headers = {}
    for text in head:
        match = _HEADER.fullmatch(text)
        if match is not None:
            headers[match[1]] = match[2]
        elif text != ANY:
            raise Malformed(f"line {line}: not a header: {text!r}")
    return headers


# --- running ---------------------------------------------------------------------------------------------------------


def run(page: Page, application: Any) -> None:
    """Send every request of the page to a WSGI application, and compare the responses.

    Raises:
        Mismatch: A response differs from the page, or a set-up request failed.
    """
    for example in page.examples:
        reply = _ask(application, example.request)
        if example.reply is not None:
            compare(example.reply, reply)
        elif not 200 <= reply.status_int < 300:
            request = example.request
            raise Mismatch(f"line {request.line}: set-up {request.method} {request.path}: {reply.status}\n{reply.text}")


def _ask(application: Any, request: Request) -> webob.Response:
    headers = {name.lower(): value for name, value in DEFAULTS.items()}
    if request.body:
        headers["content-type"] = "application/json"
    headers |= {name.lower(): value for name, value in request.headers.items()}
    blank = webob.Request.blank(request.path, method=request.method, headers=headers)
    if request.body:
        blank.body = request.body.encode()
    return blank.get_response(application)


def compare(expected: Reply, actual: webob.Response) -> None:
    """Compare a response with the expected one.

    Raises:
        Mismatch: They differ.
    """
    try:
        _compare_texts("status", expected.status, actual.status)
        for name, value in expected.headers.items():
            _compare_texts(f"header {name}", value, actual.headers.get(name))
        _compare_bodies(expected, actual)
    except Mismatch as mismatch:
        raise Mismatch(f"line {expected.line}: {mismatch}\nthe response:\n{_format(actual)}") from None


def _compare_bodies(expected: Reply, actual: webob.Response) -> None:
    if not expected.body or actual.content_type != "application/json":
        _compare_texts("body", " ".join(expected.body.split()), " ".join(actual.text.split()))
        return
    try:
        document = json.loads(expected.body)
    except ValueError as error:
        raise Mismatch(f"the body on the page is not JSON: {error}") from None
    if not matches(document, actual.json, expected.ordered):
        raise Mismatch("body")


def _compare_texts(part: str, expected: str, actual: str | None) -> None:
    if actual is None or not _matches_text(expected, actual):
        raise Mismatch(f"{part}: the page shows {expected!r}, the service returned {actual!r}")


def _format(reply: webob.Response) -> str:
    headers = "\n".join(f"{name}: {value}" for name, value in reply.headers.items())
    body = json.dumps(reply.json, indent=2) if reply.content_type == "application/json" else reply.text
    return f"HTTP/1.1 {reply.status}\n{headers}\n\n{body}"


def matches(expected: Any, actual: Any, ordered: bool = True) -> bool:
    """Whether a JSON value matches the value that a page shows."""
    if expected == ANY:
        return True
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, dict):
        return _matches_object(expected, actual, ordered)
    if isinstance(expected, list):
        return _matches_list(expected, actual) if ordered else _matches_set(expected, actual)
    if isinstance(expected, str):
        return _matches_text(expected, actual)
    return bool(expected == actual)


def _matches_object(expected: dict[str, Any], actual: dict[str, Any], ordered: bool) -> bool:
    named_keys = expected.keys() - {ANY}
    if ANY in expected:
        actual = {key: value for key, value in actual.items() if key in named_keys}
    return actual.keys() == named_keys and all(matches(expected[key], actual[key], ordered) for key in named_keys)


def _matches_list(expected: list[Any], actual: list[Any]) -> bool:
    if not expected:
        return not actual
    first, *tail = expected
    if first == ANY:
        return any(_matches_list(tail, actual[skipped:]) for skipped in range(len(actual) + 1))
    return bool(actual) and matches(first, actual[0]) and _matches_list(tail, actual[1:])


def _matches_set(expected: list[Any], actual: list[Any]) -> bool:
    """Whether expected and actual elements can be paired, in any order."""
    remaining = list(actual)
    for element in expected:
        if element == ANY:
            continue
        position = next(
            (index for index, candidate in enumerate(remaining) if matches(element, candidate, ordered=False)), None
        )
        if position is None:
            return False
        del remaining[position]
    return not remaining or ANY in expected


def _matches_text(expected: str, actual: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.split(ANY))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None
