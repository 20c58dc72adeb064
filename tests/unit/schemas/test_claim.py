"""Claims from request bodies of all versions, and the limit of allocations per request."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from placement import errors
from placement.objects.claims.claim import ANY_GENERATION, Claim
from placement.objects.consumer import Owner
from placement.schemas.claim import claims

SETTINGS = SimpleNamespace(
    max_allocations_per_request=3, incomplete_consumer_project_id="no-project", incomplete_consumer_user_id="no-user"
)


def test_a_claim_of_the_newest_version_has_the_owner_and_generation_of_its_body():
    body = {
        "allocations": {"host": {"generation": 7, "resources": {"VCPU": 1, "DISK_GB": 5}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
        "mappings": {"": ["host"]},
    }
    assert claims({"c": body}, SETTINGS) == [
        Claim("c", {"host": {"VCPU": 1, "DISK_GB": 5}}, Owner("p", "u", "INSTANCE"), None)
    ]


def test_a_claim_of_the_first_version_has_the_configured_owner_and_any_generation():
    body = {"allocations": [{"resource_provider": {"uuid": "host"}, "resources": {"VCPU": 1}}]}
    (claim,) = claims({"c": body}, SETTINGS)
    assert claim == Claim("c", {"host": {"VCPU": 1}}, Owner("no-project", "no-user"), ANY_GENERATION)
    assert claim.generation is ANY_GENERATION


def bodies(*classes_of_consumers):
    return {
        str(number): {"allocations": {"host": {"resources": dict.fromkeys(classes, 1)}} if classes else {}}
        for number, classes in enumerate(classes_of_consumers)
    }


@pytest.mark.parametrize("classes", [("ABC",), ("AB", "A"), ("A", "", ""), ("", "", "")])
def test_a_request_may_write_as_many_allocations_as_the_limit(classes):
    assert len(claims(bodies(*classes), SETTINGS)) == len(classes)


@pytest.mark.parametrize("classes", [("ABCD",), ("ABC", ""), ("", "", "", "")])
def test_a_request_above_the_limit_is_refused_and_a_consumer_without_allocations_counts_as_one(classes):
    with pytest.raises(errors.TooManyAllocations) as raised:
        claims(bodies(*classes), SETTINGS)
    assert raised.value.facts == {"count": 4, "limit": 3}
