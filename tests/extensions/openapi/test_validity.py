"""The documents are OpenAPI 3.1."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from placement import microversion as mv
from placement.extensions.v1.api import V1
from placement.extensions.v1.openapi.document import describe
from placement.routes import PLACEMENT
from placement.version_history import OLDEST

DOCUMENTS = [(PLACEMENT, change.version) for change in mv.HISTORY] + [(V1, OLDEST)]


@pytest.mark.parametrize(("api", "version"), DOCUMENTS, ids=lambda part: getattr(part, "name", str(part)))
def test_a_document_conforms_to_the_meta_schema(api, version):
    document = {**describe(api, version, label=str(version)), "servers": [{"url": "/"}]}
    OpenAPIV31SpecValidator(document).validate()
