"""The version that the headers of a request select (docs: baremetal-versions)."""

from __future__ import annotations

import pytest

from placement.extensions.baremetal import versions
from placement.extensions.baremetal.versioning import IronicVersions, VersionUnknown, VersionUnreadable

CLASSIC, COMMON = "HTTP_X_OPENSTACK_IRONIC_API_VERSION", "HTTP_OPENSTACK_API_VERSION"


def negotiate(classic=None, common=None):
    environ = {name: value for name, value in ((CLASSIC, classic), (COMMON, common)) if value is not None}
    return str(IronicVersions().negotiate(environ))


@pytest.mark.parametrize(
    ("classic", "common", "version"),
    [
        (None, None, "1.1"),
        ("", "", "1.1"),
        (None, "compute 2.90", "1.1"),
        (None, "baremetal", "1.1"),
        ("1.1", None, "1.1"),
        (" 1.60 ", None, "1.60"),
        ("1.53", None, "1.53"),
        ("1.115", None, "1.115"),
        ("latest", None, "1.115"),
        ("Latest", None, "1.115"),
        (None, "baremetal 1.60", "1.60"),
        (None, "Baremetal  1.60", "1.60"),
        (None, "baremetal latest", "1.115"),
        ("1.50", "baremetal 1.60", "1.60"),
        ("1.50", "compute 2.1", "1.50"),
        ("1.50", "compute 2.1, baremetal 1.30", "1.30"),
        ("2.1", "baremetal 1.30", "1.30"),
    ],
)
def test_the_headers_select_the_version_and_the_common_one_takes_precedence(classic, common, version):
    assert negotiate(classic, common) == version


@pytest.mark.parametrize("requested", ["1.0", "1.116", "1.999999999", "0.1", "2.1", "2.0"])
@pytest.mark.parametrize("header", ["classic", "common"])
def test_a_version_outside_of_the_range_is_refused_with_the_range(requested, header):
    value = requested if header == "classic" else f"baremetal {requested}"
    with pytest.raises(VersionUnknown) as raised:
        negotiate(**{header: value})
    assert f"Version {requested} was requested" in raised.value.sentence
    assert "[1.1, 1.115]" in raised.value.sentence
    assert dict(raised.value.headers) == {
        "x-openstack-ironic-api-minimum-version": "1.1",
        "x-openstack-ironic-api-maximum-version": "1.115",
    }


@pytest.mark.parametrize(
    "requested", ["abc", "1", "1.", ".5", "1.x", "1.5.1", "-1.5", "1.5\n1.6", "1.9999999999", "1.\u0665"]
)
@pytest.mark.parametrize("header", ["classic", "common"])
def test_a_malformed_version_is_refused_without_the_range(requested, header):
    with pytest.raises(VersionUnreadable) as raised:
        negotiate(**{header: requested if header == "classic" else f"baremetal {requested}"})
    assert raised.value.headers == ()


def test_a_response_states_the_range_and_its_version():
    assert dict(IronicVersions().headers(versions.ALLOCATIONS)) == {
        "x-openstack-ironic-api-minimum-version": "1.1",
        "x-openstack-ironic-api-maximum-version": "1.115",
        "x-openstack-ironic-api-version": "1.52",
    }
