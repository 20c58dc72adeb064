"""Requests that schemathesis draws from the documents get no 5xx, and only responses that the document describes.

Half of the requests name existing objects.  ``Described`` is stricter than schemathesis: it refuses headers that are
not described, and fields that a document leaves open to later releases.  It does not see failures before the routing,
such as 401.
"""

from __future__ import annotations

import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from placement import deploy
from tests import caller, web
from tests.db.test_never_5xx import furnish
from tests.nonsense.strategies import ABOUT, VALUES, familiar
from tests.reply_conformance import Described
from tests.strategies import scale

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
PLACEMENT = "/v1/openapi-placement.json?version="
#: The documents, and the percentage of the profile's examples drawn for each operation.
DOCUMENTS = {"/v1/openapi.json": 20, f"{PLACEMENT}1.39": 12, f"{PLACEMENT}1.27": 4, f"{PLACEMENT}1.11": 4}
ADMIN = {"X-Auth-Token": "admin", "X-Roles": caller.ROLES}
#: The headers of requests: mostly the token of an administrator, with any media type in the response.
HEADERS = st.sampled_from(
    [*[ADMIN] * 8, ADMIN | {"Accept": "text/html"}, ADMIN | {"Accept": "text/plain"}, {"X-Auth-Token": "user"}, {}]
)
#: The methods in the documents.
METHODS = {path: ("get", "post", "delete", *(("put",) if path.startswith(PLACEMENT) else ())) for path in DOCUMENTS}


@pytest.fixture
def service(database):
    """The service with a few objects."""
    # Requests with ``wait`` get their response at once.
    application = deploy.loadapp(web.configuration(history__max_waiting_requests=0), database)
    furnish(caller.inside(application))
    return Described(application)


each_document = pytest.mark.parametrize("path", DOCUMENTS)
on_sqlite = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


def operations(path, service):
    """Return the operations of a document."""
    return [result.ok() for result in schemathesis.openapi.from_wsgi(path, service).get_all_operations()]


@on_sqlite
@pytest.mark.parametrize(("path", "method"), [(path, method) for path in DOCUMENTS for method in METHODS[path]])
def test_the_responses_of_the_service_conform_to_the_description(path, method, service):
    chosen = [operation for operation in operations(path, service) if operation.method == method]
    assert chosen
    for operation in chosen:
        check_operation(operation, DOCUMENTS[path])


def check_operation(operation, percentage):
    """Send requests to an operation, and check that each response conforms to the description."""
    version = version_of(operation)

    @hypothesis.settings(max_examples=scale(percentage), database=None)
    @hypothesis.given(
        case=operation.as_strategy(GenerationMode.POSITIVE, headers=version)
        | operation.as_strategy(GenerationMode.NEGATIVE, headers=version),
        data=st.data(),
    )
    def holds(case, data):
        if data.draw(st.booleans()):
            name_existing_objects(case, data.draw)
        reply = ask(case, version | data.draw(HEADERS))
        hypothesis.event(f"{operation.label} {reply.status_code}")

    holds()


def version_of(operation):
    """Return the header that requests the document's version, or no header for an API without versions."""
    schemas = {header.name: header.definition["schema"] for header in operation.headers}
    return {name: schema["default"] for name, schema in schemas.items() if "default" in schema}


def ask(case, headers):
    """Send a request with these headers; return the response after checking it against the description."""
    case.headers.pop("X-Auth-Token", None)
    return case.call_and_validate(headers=headers, checks=CHECKS)


@on_sqlite
@each_document
def test_the_examples_of_a_document_get_the_described_responses(path, service):
    """The examples are read from the document, as by tools; tests/docs sends them in the order of their pages."""
    count = sum(len(statuses_of_examples(operation)) for operation in operations(path, service))
    assert count >= (20 if path.startswith(PLACEMENT) else 1)


def statuses_of_examples(operation):
    """Send the examples of an operation, and return the statuses of the responses."""
    statuses = []

    @hypothesis.settings(max_examples=1, database=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(cases=st.tuples(*operation.get_strategies_from_examples()))
    def holds(cases):
        statuses.extend(ask(case, version_of(operation) | ADMIN).status_code for case in cases)

    holds()
    return statuses


def name_existing_objects(case, draw):
    """Change the request so that it mostly names existing objects."""
    case.path_parameters = {name: draw(VALUES.get(name, st.just(old))) for name, old in case.path_parameters.items()}
    if isinstance(case.query, dict):
        case.query = {name: draw(ABOUT.get(name, st.just(old))) for name, old in case.query.items()}
    if isinstance(case.body, dict | list):
        case.body = familiar(draw, case.body)
