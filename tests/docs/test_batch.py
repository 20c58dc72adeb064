"""The requests of docs/extensions/batch.rst, whose cluster is loaded, get the documented replies."""

from __future__ import annotations

import pytest

from placement import deploy
from placement.extensions.loading.description import described
from placement.extensions.loading.writing import load
from placement.extensions.loading.yaml_source import YamlSource
from tests import web
from tests.docs import examples
from tests.docs.blocks import PAGES, captioned
from tests.reply_conformance import Described

PAGE = "docs/extensions/batch.rst"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_requests_of_a_controller_are_answered_as_shown(database):
    application = Described(deploy.loadapp(web.configuration(), database))
    load(database, described(YamlSource(captioned(PAGE, "cluster.yaml"))))
    examples.run(examples.parse(PAGES[PAGE]), application)
