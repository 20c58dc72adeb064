from __future__ import annotations

import datetime
import json

import pytest

from placement import microversion as mv
from placement.http.response import NOW, UNDATED, Listed, Reply, created, encode, newest, no_content, ok

BEFORE_CACHE_HEADERS = mv.Version(1, 14)
NOON = datetime.datetime(2026, 6, 9, 12, 0, 0, 500)


def content(reply):
    return b"".join(reply.content())


def headers(reply, version=mv.LATEST):
    return dict(reply.headers(version, len(content(reply))))


def test_a_body_is_json_and_says_its_length():
    reply = ok({"a": [1, None]})
    assert reply.status_line == "200 OK"
    assert json.loads(content(reply)) == {"a": [1, None]}
    assert headers(reply) == {"content-type": "application/json", "content-length": str(len(content(reply)))}


@pytest.mark.parametrize("reply", [no_content(), created("http://h/x"), Reply(204)])
def test_without_a_body_there_is_no_content_type(reply):
    assert content(reply) == b""
    assert "content-type" not in headers(reply)
    assert headers(reply)["content-length"] == "0"


def test_an_empty_body_is_a_body():
    assert content(ok({})) == b"{}"
    assert headers(ok([]))["content-type"] == "application/json"


@pytest.mark.parametrize("count", [0, 1, 2, 999, 1000, 1001, 2500])
def test_a_long_list_is_encoded_in_pieces_of_some_items(count):
    items = [{"name": f"h\u00f6st{number}"} for number in range(count)]
    pieces = ok(Listed("hosts", iter(items))).content()
    assert json.loads(b"".join(pieces)) == {"hosts": items}
    assert all(piece.count(b"name") <= 1000 for piece in pieces)


def test_what_is_made_has_a_place():
    assert created("http://h/x").status_line == "201 Created"
    assert headers(created("http://h/x"))["location"] == "http://h/x"
    assert headers(no_content("http://h/x"))["location"] == "http://h/x"
    assert "location" not in headers(no_content())


def test_a_dated_reply_is_not_to_be_cached():
    assert headers(ok({}, NOON)) == {
        "content-type": "application/json",
        "content-length": "2",
        "last-modified": "Tue, 09 Jun 2026 12:00:00 GMT",
        "cache-control": "no-cache",
    }


def test_now_is_a_date():
    when = headers(no_content(modified=NOW))["last-modified"]
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.strptime(when, "%a, %d %b %Y %H:%M:%S GMT").replace(
        tzinfo=datetime.UTC
    )
    assert abs(age) < datetime.timedelta(minutes=1)


def test_an_undated_reply_is_not_to_be_cached_either():
    assert "last-modified" not in headers(ok({}, UNDATED))
    assert headers(ok({}, UNDATED))["cache-control"] == "no-cache"


def test_a_reply_is_as_old_as_the_newest_of_what_it_shows():
    later = NOON + datetime.timedelta(hours=1)
    assert newest([NOON, later, None, NOON]) == later
    assert newest([None]) is NOW
    assert newest([]) is NOW


@pytest.mark.parametrize("modified", [NOW, UNDATED, NOON])
def test_cache_headers_begin_with_1_15(modified):
    assert headers(ok({}, modified), mv.CACHE_HEADERS)["cache-control"] == "no-cache"
    assert set(headers(ok({}, modified), BEFORE_CACHE_HEADERS)) == {"content-type", "content-length"}


@pytest.mark.parametrize(
    "body",
    [
        {"name": "\N{SNOWMAN}"},
        {"\N{SNOWMAN}": 1},
        {"name": "\ud800"},
        {"total": 2**70},
        [1.5, True, None, "a\n\0"],
    ],
)
def test_json_is_ascii_and_reads_back(body):
    content = encode(body)
    assert content.isascii()
    assert json.loads(content) == body
