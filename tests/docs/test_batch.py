"""The protocol of docs/batch.rst: its cluster is loaded, and its requests are answered as it shows."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from placement import deploy
from placement.loading.description import described
from placement.loading.writing import load
from placement.loading.yaml_source import YamlSource
from tests import web
from tests.docs import examples
from tests.reply_conformance import Described

PAGE = (Path(__file__).parents[2] / "docs/batch.rst").read_text()
CLUSTER = re.compile(r"^\.\. code-block:: yaml\n   :caption: cluster.yaml\n\n((?:   .*\n|\n)+)", re.MULTILINE)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_the_requests_of_a_controller_are_answered_as_shown(database):
    application = Described(deploy.loadapp(web.configuration(), database))
    load(database, described(YamlSource(textwrap.dedent(CLUSTER.search(PAGE)[1]))))
    examples.run(examples.parse(PAGE), application)
