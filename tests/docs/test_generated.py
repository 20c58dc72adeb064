"""The generated parts of the reference match the code."""

from __future__ import annotations

import pytest

from tools import generate_examples, generate_reference


def test_the_generated_files_are_up_to_date():
    generated = {path.name: path.read_text() for path in generate_reference.GENERATED.iterdir()}
    if generated != generate_reference.reference():
        pytest.fail("docs/api/generated is stale: regenerate it with `python tools/generate_reference.py`")


def test_the_examples_of_the_openapi_documents_are_those_of_the_pages():
    stored = {path.name: path.read_text() for path in generate_examples.EXAMPLES.glob("*.json")}
    if stored != generate_examples.render_files():
        pytest.fail(
            "placement/extensions/v1/openapi/examples is stale: regenerate it with `python tools/generate_reference.py`"
        )
