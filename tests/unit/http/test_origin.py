"""Which requests are taken for those of a page of another origin."""

from __future__ import annotations

import pytest

from placement.http import origin


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, True),  # no browser
        ({"HTTP_SEC_FETCH_SITE": "same-origin"}, True),
        ({"HTTP_SEC_FETCH_SITE": "none"}, True),
        ({"HTTP_SEC_FETCH_SITE": "cross-site"}, False),
        ({"HTTP_SEC_FETCH_SITE": "same-site"}, False),
        ({"HTTP_SEC_FETCH_SITE": ""}, False),
        ({"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": "http://here:8778"}, False),
        ({"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_ORIGIN": "null"}, True),
        ({"HTTP_ORIGIN": "http://here:8778"}, True),
        ({"HTTP_ORIGIN": "https://here:8778"}, True),  # a proxy ends TLS
        ({"HTTP_ORIGIN": "http://here"}, False),
        ({"HTTP_ORIGIN": "http://here:8778.example.org"}, False),
        ({"HTTP_ORIGIN": "http://elsewhere:8778"}, False),
        ({"HTTP_ORIGIN": "null"}, False),
        ({"HTTP_ORIGIN": ""}, False),
        ({"HTTP_ORIGIN": "http://[here:8778"}, False),
    ],
)
def test_a_browser_tells_whose_page_sends_a_request(headers, own):
    assert origin.is_own({"HTTP_HOST": "here:8778", **headers}) is own


@pytest.mark.parametrize("given", ["null", "file://", "http://here"])
def test_a_request_that_names_no_host_comes_from_no_page_of_it(given):
    assert not origin.is_own({"HTTP_ORIGIN": given})
