"""The spellings of a path (docs: baremetal-paths)."""

from __future__ import annotations

import pytest

from placement.extensions.baremetal.api import BAREMETAL
from placement.extensions.baremetal.spellings import Spellings
from placement.http.environ import API, PATH

VERSION = "HTTP_X_OPENSTACK_IRONIC_API_VERSION"


def served_path(path, version="1.115"):
    """Return the path that the application behind the layer receives."""
    paths = []

    def application(environ, _start_response):
        paths.append(environ[PATH])
        return []

    Spellings(application, None)({"PATH_INFO": path, API: BAREMETAL, VERSION: version}, None)
    return paths[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "/"),
        ("/", "/"),
        ("/v1", "/v1"),
        ("/v1/", "/v1"),
        ("/v1/nodes", "/v1/nodes"),
        ("/v1/nodes/", "/v1/nodes"),
        ("/nodes", "/v1/nodes"),
        ("/nodes/", "/v1/nodes"),
        ("/nodes/n/states/power/", "/v1/nodes/n/states/power"),
        ("/v1nodes", "/v1/v1nodes"),
        ("/v2/nodes", "/v1/v2/nodes"),
        ("//", "/v1/"),
        ("//v1/nodes", "/v1//v1/nodes"),
        ("/v1/nodes//", "/v1/nodes/"),
        ("/v1/v1", "/v1/v1"),
    ],
)
def test_v1_is_added_and_one_slash_at_the_end_is_removed(path, expected):
    assert served_path(path) == expected


@pytest.mark.parametrize("path", ["/v1/allocations/a.json", "/allocations/a.json", "/v1/allocations/a.json/"])
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.1", "/v1/allocations/a"),
        ("1.90", "/v1/allocations/a"),
        ("1.91", "/v1/allocations/a.json"),
        ("latest", "/v1/allocations/a.json"),
        ("none", "/v1/allocations/a.json"),  # the router refuses it
    ],
)
def test_a_suffix_is_removed_in_old_versions(path, version, expected):
    assert served_path(path, version) == expected


def test_only_one_suffix_is_removed():
    assert served_path("/v1/allocations/a.json.json", "1.1") == "/v1/allocations/a.json"
    assert served_path("/v1/allocations/a.com", "1.1") == "/v1/allocations/a.com"
