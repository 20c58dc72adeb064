"""The documents are OpenAPI 3.1."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from placement import microversion as mv
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi.document import describe
from placement.routes import PLACEMENT
from placement.version_history import OLDEST
from tests.run_length import LONG

VERSIONS = [change.version for change in mv.HISTORY]
#: A short run checks the oldest version, the newest, and one in between.
CHOSEN = VERSIONS if LONG else [VERSIONS[0], VERSIONS[len(VERSIONS) // 2], VERSIONS[-1]]
DOCUMENTS = [*((PLACEMENT, version) for version in CHOSEN), (V1, OLDEST)]


@pytest.mark.parametrize(("api", "version"), DOCUMENTS, ids=lambda part: getattr(part, "name", str(part)))
def test_a_document_conforms_to_the_meta_schema(api, version):
    document = {**describe(api, version, label=str(version)), "servers": [{"url": "/"}]}
    OpenAPIV31SpecValidator(document).validate()
