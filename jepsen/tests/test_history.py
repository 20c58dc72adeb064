"""The outcome of an operation, known or unknown from its response."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest

from jepsen.history import is_outcome_known
from placement import errors
from placement.http.environ import VERSION
from placement.http.error_list import ErrorList
from placement.version_history import Version


@pytest.mark.parametrize(
    ("error", "is_known"),
    [
        (errors.DatabaseUnavailable(), True),
        (errors.DatabaseRefuses(), True),
        (errors.DatabaseBusy(), True),
        (errors.TablesMissing(), True),
        (errors.OutcomeUnknown(), False),
    ],
)
def test_the_outcome_is_known_if_the_service_guarantees_no_change(error, is_known):
    version = Version(1, 39)
    environ = {"REQUEST_METHOD": "PUT", VERSION: version}
    _, content = ErrorList(version, version, version).render(error, HTTPStatus.SERVICE_UNAVAILABLE, environ)
    assert is_outcome_known("/allocations", 503, json.loads(content)) is is_known
    # Some transactions of a call may be committed before one finds the database unavailable.
    assert not is_outcome_known("/v1/claims", 503, json.loads(content))


@pytest.mark.parametrize(("status", "is_known"), [(0, False), (200, True), (409, True), (500, False), (502, False)])
def test_the_outcome_is_known_from_responses_of_the_service_itself(status, is_known):
    assert is_outcome_known("/v1/claims", status, None) is is_known
