"""Routes of extensions that support dry runs (tests/db/test_dry_runs.py tests their responses)."""

from __future__ import annotations

from placement.extensions.baremetal.api import BAREMETAL
from placement.extensions.v1.api import V1
from tests.db.in_process import placement


def test_routes_that_claim_extend_or_release_support_dry_runs():
    routes = {
        (method, path)
        for api in (BAREMETAL, V1)
        for path, methods in api.routes.items()
        for method, endpoint in methods.items()
        if getattr(endpoint, "dry_run", None) is not None
    }
    assert routes == {("POST", "/claims"), ("DELETE", "/claims"), ("POST", "/claims/{consumer}/extend")}


def test_a_bare_metal_write_refuses_a_dry_run(database):
    answer = placement(database)("POST", "/baremetal/v1/nodes?dry_run=true", None, {"resource_class": "gold"})
    assert answer.status == 400
    assert "This request does not support dry runs." in str(answer.body)
