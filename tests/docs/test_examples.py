"""Every example in docs/api and docs/extensions/explain.rst matches the service and its OpenAPI documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from placement import deploy
from tests import web
from tests.docs import examples
from tests.reply_conformance import Described

ROOT = Path(__file__).parents[2] / "docs"
PAGES = {
    str(path.relative_to(ROOT)): path for path in sorted([*ROOT.glob("api/**/*.rst"), ROOT / "extensions/explain.rst"])
}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_match_the_service(name, database):
    page = examples.parse(PAGES[name].read_text())
    examples.run(page, Described(deploy.loadapp(web.configuration(baremetal__enabled=True), database)))
