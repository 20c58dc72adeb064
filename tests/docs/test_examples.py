"""Every example in docs/api matches the replies of the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from placement import deploy
from tests import web
from tests.docs import examples

ROOT = Path(__file__).parents[2] / "docs/api"
PAGES = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.rglob("*.rst"))}


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", PAGES)
def test_the_examples_of_a_page_match_the_service(name, database):
    page = examples.parse(PAGES[name].read_text())
    examples.run(page, deploy.loadapp(web.configuration(), database))
