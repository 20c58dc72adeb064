"""The generated parts of the reference are what the code says."""

from __future__ import annotations

import pytest

from tools import generate_reference


def test_no_generated_file_is_stale():
    generated = {path.name: path.read_text() for path in generate_reference.GENERATED.iterdir()}
    if generated != generate_reference.reference():
        pytest.fail("docs/api/generated is stale: write it anew with `python tools/generate_reference.py`")
