"""What the API below /v1 adds to the service."""

from __future__ import annotations

from oslo_config import cfg

from placement.extension import Extension
from placement.http.api import Api

_OPTIONS = [
    cfg.IntOpt(
        "max_claims_per_request",
        default=10000,
        min=1,
        max=16000,  # a statement names each consumer twice, and SQLite takes 32,766 parameters
        help="The largest number of places in one call of POST /v1/claims: requests, each times its count. Consumers "
        "that places are apart from or together with are added. More are answered with 400.",
    ),
    cfg.ListOpt(
        "avoid_traits",
        default=["COMPUTE_STATUS_DISABLED"],
        help="Traits that the root of a tree must not have where the service chooses the place: POST /v1/claims, and "
        "what GET /v1/explain and /v1/capacity say about it. A query that names such a trait in root_required is read "
        "as it stands. GET /allocation_candidates is not concerned: nova forbids the trait of disabled hosts itself.",
    ),
]


def _api() -> Api:
    from placement.extensions.v1.api import V1

    return V1


EXTENSION = Extension(name="v1", requires=("doctor",), options={"placement": _OPTIONS}, api=_api)
