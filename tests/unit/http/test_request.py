from __future__ import annotations

import io
import json
import re

import hypothesis
import pytest
import webob
from hypothesis import strategies as st
from oslo_context.context import RequestContext

from placement import errors
from placement import microversion as mv
from placement.http.request import CONTEXT, REQUEST_ID, VERSION, Request, Service, User, parse_json
from placement.schemas import provider as schema
from tests import json_strategies, web

#: As many bytes of a body are read at most.
MOST = 40
CONF = web.configuration(api__max_request_body_size=MOST)


def request(path="/", body=None, query_schema=None, body_schema=None, **environ):
    made = webob.Request.blank(path)
    if body is not None:
        made.body = body
    made.environ.update({VERSION: mv.LATEST, REQUEST_ID: "req-1"} | environ)
    req = Request(made.environ, Service(CONF, None, None))
    req.body_schema = body_schema
    req.query_schema = query_schema
    if body_schema is not None:
        req.receive()
    return req


# --- JSON ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": 1, "a": 2}', {"a": 2}),
        ('"\N{SNOWMAN}"'.encode(), "\N{SNOWMAN}"),
        (rb'"\ud83d\ude00"', "\N{GRINNING FACE}"),
        (rb'"\\u0000"', r"\u0000"),
        (b"[1e400]", [float("inf")]),
        (b"[]", []),
    ],
)
def test_json_is_read(text, value):
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b"{} {}",
        b"NaN",
        b'{"a": [Infinity]}',
        b"-Infinity",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        b"1" * 5000,
        rb'"\ud800"',
        rb'{"a": [{"b": "x\udfff"}]}',
        rb'{"\u0000": 1}',
        rb'["\u0000"]',
        b'"\0"',
    ],
)
def test_what_is_no_json_or_cannot_be_stored_is_refused(text):
    with pytest.raises(errors.MalformedJSON, match=r"^Malformed JSON: ."):
        parse_json(text)


@hypothesis.given(json_strategies.json_values())
def test_whatever_can_be_written_is_read(value):
    text = json.dumps(value)
    hypothesis.assume("\\u0000" not in text)
    assert parse_json(text.encode()) == value


@hypothesis.given(st.text(st.characters(categories=["Cs", "Ll"], include_characters="\0"), max_size=5))
def test_a_string_is_read_if_it_can_be_stored(text):
    meant = json.loads(json.dumps(text))  # two halves that meet are a pair
    if not re.search("[\0\ud800-\udfff]", meant):
        assert parse_json(json.dumps([text]).encode()) == [meant]
    else:
        with pytest.raises(errors.MalformedJSON):
            parse_json(json.dumps([text]).encode())


@pytest.mark.parametrize("depth", [800, 100_000])
def test_a_deep_body_is_the_clients_fault(depth):
    deep = b'{"name": ' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(errors.BadRequest):
        request(body=deep, body_schema=schema.CREATE).body  # noqa: B018


# --- body ---


def test_the_body_is_read_once():
    req = request(body=b'{"name": "a"}', body_schema=schema.CREATE)
    assert req.body == {"name": "a"}
    assert req.body is req.body


def test_what_is_wrong_with_the_body_is_told_whenever_it_is_looked_at():
    req = request(body=b'{"name": ', body_schema=schema.CREATE)
    for _ in range(2):
        with pytest.raises(errors.MalformedJSON, match="Expecting value: line 1 column 10"):
            req.body  # noqa: B018


def test_a_body_against_the_schema_is_refused():
    with pytest.raises(errors.InvalidBody, match="JSON does not validate: 'name' is a required property"):
        request(body=b"{}", body_schema=schema.CREATE).body  # noqa: B018


def test_the_body_ends_where_its_length_says():
    stream = io.BytesIO(b'{"name": "a"}garbage')
    req = request(body_schema=schema.CREATE, **{"wsgi.input": stream, "CONTENT_LENGTH": "13"})
    assert req.body == {"name": "a"}


def test_a_chunked_body_ends_where_the_server_says():
    stream = io.BytesIO(b'{"name": "a"}')
    req = request(body_schema=schema.CREATE, **{"wsgi.input": stream, "wsgi.input_terminated": True})
    assert req.body == {"name": "a"}


@pytest.mark.parametrize(("length", "kind"), [(MOST, dict), (MOST + 1, errors.TooLarge), (10**6, errors.TooLarge)])
def test_a_chunked_body_is_read_up_to_the_limit_and_no_further(length, kind):
    content = b'{"name": "a"}'
    stream = io.BytesIO(content + b" " * (length - len(content)))
    req = request(body_schema=schema.CREATE, **{"wsgi.input": stream, "wsgi.input_terminated": True})
    if kind is dict:
        assert req.body == {"name": "a"}
    else:
        with pytest.raises(kind, match=f"may have {MOST} bytes at most"):
            req.body  # noqa: B018
    assert stream.tell() <= MOST + 1


def test_where_nothing_says_that_a_body_ends_there_is_none():
    """To read on would be to wait for the client."""

    class Waiting(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _buffer):
            raise AssertionError("the body is read")

    req = request(body_schema=schema.CREATE, **{"wsgi.input": io.BufferedReader(Waiting())})
    with pytest.raises(errors.MalformedJSON, match="Expecting value"):
        req.body  # noqa: B018


def test_a_client_that_goes_away_has_sent_no_json():
    class Gone(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, _buffer):
            raise OSError("timeout during read")

    req = request(body_schema=schema.CREATE, **{"wsgi.input": io.BufferedReader(Gone()), "CONTENT_LENGTH": "13"})
    with pytest.raises(errors.MalformedJSON, match="timeout during read"):
        req.body  # noqa: B018


# --- query ---


def test_parameters_are_read():
    req = request("/?name=%e2%98%83+x&resources=VCPU:1&required=A&required=B", query_schema=schema.LIST)
    assert req.query.get("name") == "\N{SNOWMAN} x"
    assert req.query.all("required") == ["A", "B"]
    assert "member_of" not in req.query
    assert req.query.get("member_of") is None


def test_raw_bytes_in_a_query_are_utf8():
    req = request(query_schema=schema.LIST, QUERY_STRING="name=" + "\N{SNOWMAN}".encode().decode("latin-1"))
    assert req.query.get("name") == "\N{SNOWMAN}"


@pytest.mark.parametrize("query", ["name=%88", "%88=1", "name=\xff", "name=%00", "%00=1", "bogus=1", "name=a&bogus="])
def test_a_query_that_is_undecodable_or_unknown_is_refused(query):
    with pytest.raises(errors.InvalidQuery, match=r"^Invalid query string parameters: ."):
        request(query_schema=schema.LIST, QUERY_STRING=query).query  # noqa: B018


def test_without_a_schema_every_query_is_ignored():
    assert list(request("/?limit=%88&x=y").query) == []


def test_a_parameter_can_be_seen_unchecked():
    assert request("/?bogus=1&project_id=a&project_id=b").parameter("project_id") == "b"
    assert request("/").parameter("project_id") is None
    assert request("/?project_id=%88").parameter("project_id") is None


# --- place and caller ---


@pytest.mark.parametrize(
    ("environ", "url", "prefix"),
    [
        ({"HTTP_HOST": "h:8"}, "http://h:8/a/b", ""),
        ({"HTTP_HOST": "h", "wsgi.url_scheme": "https"}, "https://h/a/b", ""),
        ({"HTTP_HOST": "", "SERVER_NAME": "h", "SERVER_PORT": "8"}, "http://h:8/a/b", ""),
        ({"HTTP_HOST": "h", "SCRIPT_NAME": "/placement"}, "http://h/placement/a/b", "/placement"),
        ({"HTTP_HOST": "h", "SCRIPT_NAME": "/a b\xe2\x98\x83"}, "http://h/a%20b%E2%98%83/a/b", "/a%20b%E2%98%83"),
    ],
)
def test_urls_are_absolute_and_links_prefixed(environ, url, prefix):
    req = request(**environ)
    assert req.url("/a/b") == url
    assert req.prefix == prefix


def test_a_name_outside_ascii_is_quoted_in_a_url():
    assert request(HTTP_HOST="h").url("/traits/\N{SNOWMAN}") == "http://h/traits/%E2%98%83"


def test_the_caller_is_who_the_context_names():
    context = RequestContext(user_id="u", project_id="p", roles=["a", "b"], overwrite=False)
    assert request(**{CONTEXT: context}).user == User("u", "p", ("a", "b"), None)
