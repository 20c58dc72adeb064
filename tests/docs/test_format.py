"""Examples are parsed, run and compared as tests/docs/examples.py describes."""

from __future__ import annotations

import json
import textwrap

import pytest
import webob
import webob.dec

from tests.docs import examples
from tests.docs.examples import Malformed, Mismatch, matches

PAGE = """
Title
=====

.. example-setup:

   PUT /traits/CUSTOM_A
   POST /resource_providers
   OpenStack-API-Version: placement 1.20

   {"name": "a"}

Some text.

* In a list:

  .. code-block:: http
     :caption: A request

     PUT /things/1?a=b
       &c=d HTTP/1.1
     OpenStack-API-Version: placement 1.39
     ...

     {
       "a": 1,

       "b": 2
     }

  and the reply

  .. example-unordered:

  .. code-block:: http

     HTTP/1.1 200 OK
     Content-Type: application/json

     {"c": [1, 2]}

.. code-block:: json

   {"not": "an example"}

.. code-block:: http

   DELETE /things/1

.. code-block:: http

   HTTP/1.1 204 No Content
"""


def application_with(status="200 OK", body=None, headers=()):
    """Return an application with a fixed response, and the list of requests that it receives."""
    requests = []

    @webob.dec.wsgify
    def application(request):
        requests.append(request)
        reply = webob.Response(status=status, headerlist=list(headers), body=b"")
        if body is not None:
            reply.content_type = "application/json"
            reply.body = json.dumps(body).encode()
        return reply

    return application, requests


def page(reply, request="GET / HTTP/1.1", between=""):
    blocks = [f".. code-block:: http\n\n{textwrap.indent(block, '   ')}\n" for block in (request, reply)]
    return examples.parse(f"\n{between}\n".join(blocks))


def test_a_page_is_parsed():
    trait, provider, missing, deleted = examples.parse(PAGE).examples
    assert (trait.request.method, trait.request.path, trait.request.body) == ("PUT", "/traits/CUSTOM_A", "")
    assert trait.request.headers == {"OpenStack-API-Version": examples.LATEST}
    assert provider.request.headers == {"OpenStack-API-Version": "placement 1.20"}
    assert json.loads(provider.request.body) == {"name": "a"}
    assert (trait.reply, provider.reply) == (None, None)
    assert (missing.request.path, missing.request.line) == ("/things/1?a=b&c=d", 17)
    assert json.loads(missing.request.body) == {"a": 1, "b": 2}
    assert missing.reply.status == "200 OK"
    assert missing.reply.headers == {"Content-Type": "application/json"}
    assert json.loads(missing.reply.body) == {"c": [1, 2]}
    assert not missing.reply.ordered
    assert (deleted.request.method, deleted.reply.status, deleted.reply.body) == ("DELETE", "204 No Content", "")
    assert deleted.reply.ordered


REQUEST = ".. code-block:: http\n\n   GET / HTTP/1.1\n\n"
REPLY = ".. code-block:: http\n\n   HTTP/1.1 200 OK\n\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Only words.", "needs examples, or the reason"),
        (REQUEST + REPLY + ".. example-none: nothing to see\n", "needs examples, or the reason"),
        (".. example-none:\n", "needs examples, or the reason"),
        (".. example-setup:\n\n   PUT /traits/A\n", "needs examples, or the reason"),
        (REQUEST, "line 1: a request without a response"),
        (REQUEST + ".. example-setup:\n\n   PUT /traits/A\n\n" + REPLY, "line 1: a request without a response"),
        (REQUEST + REQUEST, "line 5: a response begins with a status line"),
        (REPLY, "line 1: the block does not begin with a request line"),
        (".. code-block:: http\n\nText\n", "line 1: the block does not begin with a request line"),
        (".. code-block:: http\n\n   FETCH / HTTP/1.1\n", "does not begin with a request line"),
        (".. code-block:: http\n\n   GET / HTTP/1.1\n   {}\n", "line 1: not a header: '{}'"),
        (".. example-setup:\n\n   {}\n", "line 1: set-up requests begin"),
        (".. example-unordered:\n\n" + REQUEST + REPLY, "line 1: example-unordered must be between"),
    ],
)
def test_a_malformed_page_is_refused(text, reason):
    with pytest.raises(Malformed, match=reason):
        examples.parse(text)


def test_a_page_without_examples_states_the_reason():
    assert examples.parse(".. example-none: it is a table\n   of contents\n").reason == "it is a table of contents"


def test_requests_are_sent_with_their_headers_and_the_defaults():
    application, requests = application_with(status="204 No Content")
    text = ".. example-setup:\n\n   PUT /a?b=1\n\n   {}\n\n   GET /c\n   x-auth-token: other\n\n" + REQUEST + REPLY
    with pytest.raises(Mismatch):
        examples.run(examples.parse(text), application)
    first, second, third = requests
    assert (first.method, first.path_qs, first.body, first.content_type) == ("PUT", "/a?b=1", b"{}", "application/json")
    assert first.headers["X-Auth-Token"] == "admin"
    assert first.headers["X-Roles"] == "admin,service"
    assert first.host == examples.HOST
    assert first.headers["OpenStack-API-Version"] == examples.LATEST
    assert (second.headers["X-Auth-Token"], second.content_type) == ("other", "")
    assert "OpenStack-API-Version" not in third.headers


def test_a_failed_set_up_request_is_a_mismatch():
    application, _ = application_with(status="409 Conflict", body={"why": "taken"})
    text = ".. example-setup:\n\n   PUT /traits/A\n\n" + REQUEST + REPLY
    with pytest.raises(Mismatch, match=r"(?s)line 1: set-up PUT /traits/A: 409 Conflict.*taken"):
        examples.run(examples.parse(text), application)


ACTUAL = {"status": "409 Conflict", "body": {"a": [1, 2], "id": "req-1"}, "headers": [("Allow", "GET, PUT")]}


@pytest.mark.parametrize(
    "reply",
    [
        'HTTP/1.1 409 Conflict\nallow: GET, PUT\n\n{"a": [1, 2], "id": "req-1"}',
        'HTTP/1.1 409 Conflict\nContent-Type: application/json\n\n{"id": "req-...",\n\n "a": [1, 2]}',
        'HTTP/1.1 409 Conflict\nAllow: ...\n\n{"...": "...", "a": "..."}',
    ],
)
def test_a_matching_response_passes(reply):
    application, _ = application_with(**ACTUAL)
    examples.run(page(reply), application)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("HTTP/1.1 400 Bad Request", "status: the page shows '400 Bad Request', the service returned '409 Conflict'"),
        ("HTTP/1.1 409 Trouble", "status"),
        ("HTTP/1.1 409 Conflict\nAllow: GET", "header Allow: the page shows 'GET', the service returned 'GET, PUT'"),
        ("HTTP/1.1 409 Conflict\nLocation: ...", "header Location: the page shows '...', the service returned None"),
        ("HTTP/1.1 409 Conflict", "body: the page shows ''"),
        ("HTTP/1.1 409 Conflict\n\n{", "is not JSON"),
        ('HTTP/1.1 409 Conflict\n\n{"a": [2, 1], "id": "req-1"}', "body"),
        ('HTTP/1.1 409 Conflict\n\n{"a": [1, 2]}', "body"),
    ],
)
def test_a_different_response_is_a_mismatch(reply, reason):
    application, _ = application_with(**ACTUAL)
    with pytest.raises(Mismatch) as raised:
        examples.run(page(reply), application)
    assert reason in str(raised.value)
    assert str(raised.value).startswith("line 6: ")


def test_an_empty_body_matches_only_an_empty_body():
    application, _ = application_with(status="204 No Content")
    examples.run(page("HTTP/1.1 204 No Content"), application)
    with pytest.raises(Mismatch):
        examples.run(page('HTTP/1.1 204 No Content\n\n{"a": 1}'), application)


def test_the_order_of_elements_counts_except_after_example_unordered():
    application, _ = application_with(body=[1, 2])
    with pytest.raises(Mismatch):
        examples.run(page("HTTP/1.1 200 OK\n\n[2, 1]"), application)
    examples.run(page("HTTP/1.1 200 OK\n\n[2, 1]", between=".. example-unordered:\n"), application)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("...", None),
        ("...", {"a": 1}),
        ("a...c", "a\nb\nc"),
        ("a.c", "a.c"),
        ({"a": 1, "...": "..."}, {"a": 1}),
        ({"a": 1, "...": "..."}, {"a": 1, "b": 2}),
        (["..."], []),
        ([1, "...", 3], [1, 3]),
        ([1, "...", 3], [1, 2, 2, 3]),
        (["...", 2, "..."], [1, 2, 3]),
    ],
)
def test_dots_match_anything(expected, actual):
    assert matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("a.c", "abc"),
        ("a...c", "ab"),
        (1, True),
        (1, 1.0),
        (0, None),
        ({}, {"a": 1}),
        ({"a": 1}, {}),
        ({"a": 1, "...": "..."}, {"b": 2}),
        ([], [1]),
        ([1], []),
        ([1, 2], [2, 1]),
        ([1, "...", 3], [1, 2]),
        ([[1, 2]], [[2, 1]]),
    ],
)
def test_different_values_do_not_match(expected, actual):
    assert not matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ([1, 2], [2, 1], True),
        ({"a": [[1, 2], [3]]}, {"a": [[3], [2, 1]]}, True),
        ([1, "..."], [3, 2, 1], True),
        ([1, 1], [1, 2], False),
        ([1, 2], [1, 2, 2], False),
        ([4, "..."], [1, 2], False),
    ],
)
def test_unordered_lists_match_if_their_elements_match_in_some_order(expected, actual, same):
    assert matches(expected, actual, ordered=False) is same
