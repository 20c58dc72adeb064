"""The rights of each kind of caller, written from the documentation (docs: policy) and not from the code.

The status of an allowed request without a body is known beforehand, so that "not 403" is never mistaken for "allowed".
A caller that creates a class or a trait can also delete it, so that all callers find the same state.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import NamedTuple

UUID = "5d2f2a3c-7d0b-4f3e-9d61-5f0f4c0b7a11"  # of no provider and no consumer

# The rule; the request; the status for allowed callers; the allowed callers; further ones with the legacy defaults.
# A reader has a token of the project in the request.
_TABLE = """
resource_classes:update               PUT    /resource_classes/CUSTOM_POLICY             201 admin,service        =
resource_classes:list                 GET    /resource_classes                           200 admin,service        =
resource_classes:create               POST   /resource_classes                           400 admin,service        =
resource_classes:show                 GET    /resource_classes/CUSTOM_POLICY             200 admin,service        =
resource_classes:delete               DELETE /resource_classes/CUSTOM_POLICY             204 admin,service        =
resource_providers:list               GET    /resource_providers                         200 admin,service        =
resource_providers:create             POST   /resource_providers                         400 admin,service        =
resource_providers:show               GET    /resource_providers/{uuid}                  404 admin,service        =
resource_providers:update             PUT    /resource_providers/{uuid}                  404 admin,service        =
resource_providers:delete             DELETE /resource_providers/{uuid}                  404 admin,service        =
resource_providers:inventories:list   GET    /resource_providers/{uuid}/inventories      404 admin,service        =
resource_providers:inventories:create POST   /resource_providers/{uuid}/inventories      404 admin,service        =
resource_providers:inventories:update PUT    /resource_providers/{uuid}/inventories      404 admin,service        =
resource_providers:inventories:delete DELETE /resource_providers/{uuid}/inventories      404 admin,service        =
resource_providers:inventories:show   GET    /resource_providers/{uuid}/inventories/VCPU 404 admin,service        =
resource_providers:inventories:update PUT    /resource_providers/{uuid}/inventories/VCPU 404 admin,service        =
resource_providers:inventories:delete DELETE /resource_providers/{uuid}/inventories/VCPU 404 admin,service        =
resource_providers:aggregates:list    GET    /resource_providers/{uuid}/aggregates       404 admin,service        =
resource_providers:aggregates:update  PUT    /resource_providers/{uuid}/aggregates       404 admin,service        =
resource_providers:usages             GET    /resource_providers/{uuid}/usages           404 admin,service        =
resource_providers:allocations:list   GET    /resource_providers/{uuid}/allocations      404 admin,service        =
resource_providers:traits:list        GET    /resource_providers/{uuid}/traits           404 admin,service        =
resource_providers:traits:update      PUT    /resource_providers/{uuid}/traits           400 admin,service        =
resource_providers:traits:delete      DELETE /resource_providers/{uuid}/traits           404 admin,service        =
traits:update                         PUT    /traits/CUSTOM_POLICY                       201 admin,service        =
traits:list                           GET    /traits                                     200 admin,service        =
traits:show                           GET    /traits/CUSTOM_POLICY                       204 admin,service        =
traits:delete                         DELETE /traits/CUSTOM_POLICY                       204 admin,service        =
allocations:manage                    POST   /allocations                                400 admin,service        =
allocations:list                      GET    /allocations/{uuid}                         200 admin,service        =
allocations:update                    PUT    /allocations/{uuid}                         400 admin,service        =
allocations:delete                    DELETE /allocations/{uuid}                         404 admin,service        =
allocation_candidates:list            GET    /allocation_candidates                      400 admin,service        =
usages                                GET    /usages?project_id={project}                200 admin,service,reader =
reshaper:reshape                      POST   /reshaper                                   400 service              +admin
"""


class Operation(NamedTuple):
    """A policy rule, and a request that it guards."""

    rule: str
    method: str
    path: str
    status: int  # for permitted callers
    secure: frozenset[str]
    legacy: frozenset[str]

    def allows(self, caller: str, *, legacy: bool) -> bool:
        """Whether this kind of caller is allowed; kinds missing from the table are not."""
        return caller in (self.legacy if legacy else self.secure)


def _operation(line: str) -> Operation:
    rule, method, path, status, secure, legacy = line.split()
    allowed = frozenset(secure.split(","))
    return Operation(
        f"placement:{rule}", method, path, int(status), allowed, allowed | set(legacy.strip("=+").split(","))
    )


OPERATIONS = [_operation(line) for line in _TABLE.strip().splitlines()]


class Answer(NamedTuple):
    """The response to a request; ``reason`` is the last line of a refusal."""

    status: int
    reason: str


@contextlib.contextmanager
def calling(port: int, headers: dict[str, str], project: str) -> Iterator[Caller]:
    """Provide a caller with these headers; requests about a project name this one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    with contextlib.closing(connection):
        yield Caller(connection, headers, project)


class Caller:
    """A caller that sends requests over one connection."""

    def __init__(self, connection: http.client.HTTPConnection, headers: dict[str, str], project: str) -> None:
        self._connection = connection
        self._headers = {"Content-Type": "application/json", "OpenStack-API-Version": "placement 1.39", **headers}
        self._project = project

    def send(self, operation: Operation) -> Answer:
        """Return the response to the request of an operation."""
        path = operation.path.format(uuid=UUID, project=self._project)
        self._connection.request(operation.method, path, headers=self._headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if answer.status < 400:
            return Answer(answer.status, "")
        [error] = json.loads(text)["errors"]
        return Answer(answer.status, error["detail"].splitlines()[-1].strip())

    def send_all(self) -> dict[Operation, Answer]:
        """Return the responses of all operations, in the order of the table."""
        return {operation: self.send(operation) for operation in OPERATIONS}


def check(answers: dict[Operation, Answer], kind: str, *, legacy: bool, scope: str = "project") -> None:
    """Raise unless each request is allowed, or refused with the reason, as in the table for this kind of caller."""
    for operation, answer in answers.items():
        if scope == "project" and operation.allows(kind, legacy=legacy):
            assert answer.status == operation.status, (operation, answer)
        else:
            # The refusal of a token with the wrong scope names only the rule.
            expected = (
                f"Policy does not allow {operation.rule} to be performed." if scope == "project" else operation.rule
            )
            assert answer == (403, expected), operation
        assert answer.reason or answer.status < 400, (operation, "the service has no such route")
