"""Error documents in the form that clients read (docs: baremetal-errors)."""

from __future__ import annotations

import json

import pytest

from placement import errors
from placement.extensions.baremetal import failures, versions
from placement.extensions.baremetal.error_documents import Envelope
from placement.extensions.baremetal.versioning import VersionUnknown, VersionUnreadable
from placement.http.failures import InternalError, MethodNotAllowed, NoSuchRoute, Unauthenticated, status_of


def render(failure):
    """Return the inner document of a rendered failure."""
    content_type, content = Envelope().render(failure, status_of(failure), {"HTTP_ACCEPT": "text/html"})
    assert content_type == "application/json"
    outer = json.loads(content)
    assert list(outer) == ["error_message"]
    assert isinstance(outer["error_message"], str)  # a client passes the value to a JSON decoder
    return json.loads(outer["error_message"])


@pytest.mark.parametrize(
    ("failure", "fault", "sentence"),
    [
        (failures.NodeNotFound(node="n1"), "Client", "Node n1 could not be found."),
        (errors.InvalidBody(reason='"x" is wrong'), "Client", '"x" is wrong'),
        (Unauthenticated(), "Client", "The request has no credentials, or they are not accepted."),
        (errors.Unavailable(reason="later"), "Server", "later"),
        (InternalError(), "Server", InternalError.template),
    ],
)
def test_a_failure_of_an_endpoint_has_a_fault_code(failure, fault, sentence):
    document = render(failure)
    assert document == {"faultcode": fault, "faultstring": document["faultstring"], "debuginfo": None}
    assert sentence in document["faultstring"]


@pytest.mark.parametrize(
    ("failure", "code", "title", "description"),
    [
        (NoSuchRoute(), 404, "Not Found", ""),
        (MethodNotAllowed(), 405, "Method Not Allowed", ""),
        (VersionUnknown(version=versions.Version(2, 1)), 406, "Not Acceptable", "Version 2.1 was requested"),
        (VersionUnreadable(), 406, "Not Acceptable", "Invalid value"),
    ],
)
def test_failures_of_routes_and_versions_have_a_code_a_title_and_a_description(failure, code, title, description):
    document = render(failure)
    assert document == {"code": code, "title": title, "description": document["description"]}
    assert document["description"].startswith(description)


class TooOld(MethodNotAllowed):
    template = "Not in this version."


def test_the_gate_of_an_endpoint_is_reported_like_its_other_failures():
    assert status_of(TooOld()) == 405
    assert render(TooOld()) == {"faultcode": "Client", "faultstring": "Not in this version.", "debuginfo": None}


def test_a_long_sentence_is_truncated():
    assert len(render(errors.InvalidBody(reason="x" * 10**6))["faultstring"]) < 25_000
