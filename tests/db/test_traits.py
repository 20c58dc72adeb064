"""Traits found by a prefix, which is a text and no pattern of SQL."""

from __future__ import annotations

import pytest

from tests.db.in_process import placement


@pytest.mark.parametrize(
    ("prefix", "found"), [("CUSTOM_A_", ["CUSTOM_A_B"]), ("CUSTOM_A", ["CUSTOM_AXB", "CUSTOM_A_B"]), ("CUSTOM%25", [])]
)
def test_a_prefix_has_no_wildcards(database, prefix, found):
    service = placement(database)
    for name in ("CUSTOM_A_B", "CUSTOM_AXB"):
        assert service("PUT", f"/traits/{name}").status == 201
    listed = service("GET", f"/traits?name=startswith:{prefix}").body["traits"]
    assert sorted(listed) == found
