"""The identity of a request, as the log shows it."""

from __future__ import annotations

import pytest
from oslo_context import context
from webob import Request

from placement.http.environ import API, GLOBAL_REQUEST_ID, REQUEST_ID
from placement.middleware.identity import Identity
from placement.routes import PLACEMENT


@pytest.mark.parametrize(
    "name", ["X-User-Id", "X-Project-Id", "X-Domain-Id", "X-User-Domain-Id", "X-Project-Domain-Id"]
)
@pytest.mark.parametrize("odd", ["a\tb", "a\x9b2Jb"])
def test_ids_that_cannot_be_printed_are_refused_and_not_in_the_log(name, odd):
    request = Request.blank("/traits", headers={"X-User-Id": "u", name: odd})
    request.environ |= {REQUEST_ID: "req-1", GLOBAL_REQUEST_ID: None, API: PLACEMENT}
    assert request.get_response(Identity(None)).status_code == 401
    logged = context.get_current().get_logging_values()
    assert logged["request_id"] == "req-1"
    assert not [value for value in logged.values() if odd in str(value)]
