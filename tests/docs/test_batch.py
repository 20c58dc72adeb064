"""The requests of docs/extensions/batch.rst, on its cluster, get the responses that the page shows."""

from __future__ import annotations

import pytest

from placement import deploy
from placement.extensions.loading.description import read_entries
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import YamlSource
from tests import web
from tests.docs import examples
from tests.docs.blocks import PAGES, text_of
from tests.reply_conformance import Described

PAGE = "docs/extensions/batch.rst"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_requests_of_a_controller_get_the_responses_shown(database):
    application = Described(deploy.loadapp(web.configuration(), database))
    load(database, read_entries(YamlSource(text_of(PAGE, "cluster.yaml"))))
    examples.run(examples.parse(PAGES[PAGE]), application)
