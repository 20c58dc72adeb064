"""Reading and parsing of request bodies: JSON, forms, and bytes up to a limit."""

from __future__ import annotations

import io
import json
import re

import hypothesis
import pytest
import webob
from hypothesis import strategies as st

from placement import errors
from placement.http import body
from tests import json_strategies

#: The largest number of bytes read from a body, and of values in a form.
LIMIT = 40


def parse_json(text):
    return body.parse_json(text, 500_000)


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
def test_json_is_parsed(text, value):
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
def test_malformed_json_and_text_that_cannot_be_stored_are_refused(text):
    with pytest.raises(errors.MalformedJSON, match=r"^Malformed JSON: ."):
        parse_json(text)


def test_a_byte_order_mark_is_named_in_the_refusal():
    with pytest.raises(errors.MalformedJSON, match="BOM"):
        parse_json(b"\xef\xbb\xbf{}")


@hypothesis.given(json_strategies.json_values())
def test_any_encoded_json_value_is_parsed(value):
    text = json.dumps(value)
    hypothesis.assume("\\u0000" not in text)
    assert parse_json(text.encode()) == value


@hypothesis.given(st.text(st.characters(categories=["Cs", "Ll"], include_characters="\0"), max_size=5))
def test_a_string_is_accepted_if_it_can_be_stored(text):
    decoded = json.loads(json.dumps(text))  # adjacent surrogates become a pair
    if not re.search("[\0\ud800-\udfff]", decoded):
        assert parse_json(json.dumps([text]).encode()) == [decoded]
    else:
        with pytest.raises(errors.MalformedJSON):
            parse_json(json.dumps([text]).encode())


@pytest.mark.parametrize("opened", [b"[", b'{"a": '])
@pytest.mark.parametrize("depth", [body.MAX_DEPTH, 500, 100_000])
def test_a_deeply_nested_body_is_refused(depth, opened):
    deep = b'{"name": ' + opened * depth + b"1" + (b"]" if opened == b"[" else b"}") * depth + b"}"
    with pytest.raises(errors.MalformedJSON, match="nested too deeply"):
        parse_json(deep)


def test_a_body_may_be_as_deep_as_the_limit_and_much_wider():
    deep = b"[" * body.MAX_DEPTH + b"]" * body.MAX_DEPTH
    assert json.dumps(parse_json(b"[" * (body.MAX_DEPTH - 1) + b"[]," * 500 + b"[]" + b"]" * (body.MAX_DEPTH - 1)))
    assert parse_json(deep) == json.loads(deep)


# --- forms ---


def test_a_form_is_parsed_as_names_and_values_in_order():
    assert body.parse_form(b"b=1&a=x+y&b=%E2%98%83&c", LIMIT) == [
        ("b", "1"),
        ("a", "x y"),
        ("b", "\N{SNOWMAN}"),
        ("c", ""),
    ]


@pytest.mark.parametrize("sign", [b"&a", b"%41"])
def test_a_form_has_a_maximum_number_of_fields_and_escapes(sign):
    assert body.parse_form(b"a" + sign * LIMIT, LIMIT)
    with pytest.raises(errors.TooManyValues, match=f"contains more than {LIMIT} values"):
        body.parse_form(b"a" + sign * (LIMIT + 1), LIMIT)


# --- bytes ---


def read_body(content=None, **environ):
    request = webob.Request.blank("/")
    if content is not None:
        request.body = content
    return body.read(request.environ | environ, LIMIT)


def test_a_body_is_read_up_to_its_content_length():
    stream = io.BytesIO(b'{"name": "a"}garbage')
    assert read_body(**{"wsgi.input": stream, "CONTENT_LENGTH": "13"}) == b'{"name": "a"}'


def test_a_chunked_body_is_read_to_the_end_of_the_input():
    stream = io.BytesIO(b'{"name": "a"}')
    assert read_body(**{"wsgi.input": stream, "wsgi.input_terminated": True}) == b'{"name": "a"}'


@pytest.mark.parametrize(("length", "fits"), [(LIMIT, True), (LIMIT + 1, False), (10**6, False)])
def test_a_chunked_body_is_read_up_to_the_limit(length, fits):
    stream = io.BytesIO(b" " * length)
    environ = {"wsgi.input": stream, "wsgi.input_terminated": True}
    if fits:
        assert read_body(**environ) == b" " * length
    else:
        with pytest.raises(errors.TooLarge, match=f"exceeds {LIMIT} bytes"):
            read_body(**environ)
    assert stream.tell() <= LIMIT + 1


class Input(io.RawIOBase):
    """A ``wsgi.input`` whose reads raise an error."""

    def __init__(self, error):
        self.error = error

    def readable(self):
        return True

    def readinto(self, _buffer):
        raise self.error


def test_a_request_without_a_length_or_terminated_input_has_no_body():
    """Reading would block until the client sends more."""
    assert read_body(**{"wsgi.input": io.BufferedReader(Input(AssertionError("the body is read")))}) == b""


def test_a_read_error_of_the_body_is_malformed_json():
    stream = io.BufferedReader(Input(OSError("timeout during read")))
    with pytest.raises(errors.MalformedJSON, match="timeout during read"):
        read_body(**{"wsgi.input": stream, "CONTENT_LENGTH": "13"})
