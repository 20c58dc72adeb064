"""Responses: bodies, headers, dates, streams, and encoded JSON."""

from __future__ import annotations

import datetime
import json
import math

import pytest

from placement.http.response import NOW, UNDATED, created, encode, json_list, newest_date, no_content, ok, page, stream

NOON = datetime.datetime(2026, 6, 9, 12, 0, 0, 500)


def headers(reply):
    reply.add_cache_headers()
    return dict(reply.headerlist)


def test_a_json_response_has_its_content_type_and_length():
    reply = ok({"a": [1, None]})
    assert reply.status == "200 OK"
    assert json.loads(reply.body) == {"a": [1, None]}
    assert headers(reply) == {"content-type": "application/json", "content-length": str(len(reply.body))}


@pytest.mark.parametrize("reply", [no_content(), created("http://h/x")])
def test_a_response_without_a_body_has_no_content_type(reply):
    assert reply.body == b""
    assert "content-type" not in headers(reply)
    assert headers(reply)["content-length"] == "0"


def test_an_empty_document_is_sent_as_a_body():
    assert ok({}).body == b"{}"
    assert headers(ok([]))["content-type"] == "application/json"


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 1001, 2500])
def test_a_long_list_is_encoded_in_pieces_of_at_most_1000_items(count):
    items = [{"name": f"h\u00f6st{number}"} for number in range(count)]
    pieces = json_list("hosts", iter(items)).app_iter
    assert json.loads(b"".join(pieces)) == {"hosts": items}
    assert all(piece.count(b"name") <= 1000 for piece in pieces)


def test_a_response_may_have_a_location():
    assert created("http://h/x").status == "201 Created"
    assert headers(created("http://h/x"))["location"] == "http://h/x"
    assert headers(no_content("http://h/x"))["location"] == "http://h/x"
    assert "location" not in headers(no_content())


def test_a_dated_response_must_be_revalidated():
    assert headers(ok({}, NOON)) == {
        "content-type": "application/json",
        "content-length": "2",
        "last-modified": "Tue, 09 Jun 2026 12:00:00 GMT",
        "cache-control": "no-cache",
    }


def test_now_is_sent_as_the_current_date():
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    header = headers(no_content(modified=NOW))["last-modified"]
    date = datetime.datetime.strptime(header, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=datetime.UTC)
    assert before <= date <= datetime.datetime.now(datetime.UTC)


def test_an_undated_response_must_be_revalidated_too():
    assert "last-modified" not in headers(ok({}, UNDATED))
    assert headers(ok({}, UNDATED))["cache-control"] == "no-cache"


def test_newest_returns_the_latest_date_or_now():
    later = NOON + datetime.timedelta(hours=1)
    assert newest_date([NOON, later, None, NOON]) == later
    assert newest_date([None]) is NOW
    assert newest_date([]) is NOW


def test_a_response_without_a_date_has_no_cache_headers():
    assert set(headers(ok({}))) == {"content-type", "content-length"}


def test_a_page_has_the_given_content_type():
    assert page(b"<p>").headers["content-type"] == "text/html; charset=UTF-8"
    assert headers(page(b"body {}", "text/css")) == {"content-type": "text/css", "content-length": "7"}


def body_pieces(reply):
    """Return the body in pieces, as a server iterates over it."""
    return reply({"REQUEST_METHOD": "GET"}, lambda *_: None)


def test_a_stream_is_produced_while_it_is_sent():
    produced = []

    def pieces():
        for number in range(3):
            produced.append(number)
            yield b"%d" % number

    reply = stream(pieces(), "text/plain")
    body = iter(body_pieces(reply))
    assert headers(reply) == {"content-type": "text/plain"}
    assert produced == []
    assert next(body) == b"0"
    assert produced == [0]


def test_a_failing_stream_is_aborted_and_logged(caplog):
    def pieces():
        yield b"x"
        raise KeyError("broken")

    body = iter(body_pieces(stream(pieces(), "text/plain")))
    next(body)
    with pytest.raises(KeyError, match="broken"):
        next(body)
    assert "cut off" in caplog.text


def test_a_stream_is_closed_when_the_client_goes_away():
    closed = []

    def pieces():
        try:
            yield b"x"
            yield b"y"
        finally:
            closed.append(True)

    body = body_pieces(stream(pieces(), "text/plain"))
    next(iter(body))
    body.close()
    assert closed == [True]


def test_a_stream_is_closed_when_the_client_goes_away_before_the_first_piece():
    class Pieces:
        closed = False

        def __iter__(self):
            return iter([b"x"])

        def close(self):
            self.closed = True

    pieces = Pieces()
    body_pieces(stream(pieces, "text/plain")).close()
    assert pieces.closed


@pytest.mark.parametrize(
    "document",
    [
        {"name": "\N{SNOWMAN}"},
        {"\N{SNOWMAN}": 1},
        {"name": "\ud800"},
        {"total": 2**70},
        [1.5, True, None, "a\n\0"],
    ],
)
def test_encoded_json_is_ascii_and_decodes_to_the_document(document):
    content = encode(document)
    assert content.isascii()
    assert json.loads(content) == document


@pytest.mark.parametrize("other_value", [1, "\N{SNOWMAN}", 2**70])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_have_is_null(number, other_value):
    content = encode({"a": [{"b": number}, (number, 1.5)], "c": other_value})
    assert json.loads(content, parse_constant=pytest.fail) == {"a": [{"b": None}, [None, 1.5]], "c": other_value}
