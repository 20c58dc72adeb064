"""One engine with its images for all tests of containers, which one process runs for this reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import children, containers
from tests.docs.blocks import ROOT

PAGE = "docs/containers.rst"


@pytest.fixture(scope="session")
def engine():
    """The engine, with the image of the service and those of compose.yaml."""
    found = containers.Engine(children.run_directory() / "containers")
    try:
        found.build()
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What compose.yaml needs of a checkout; the commands of the page put more files there."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "compose.yaml", directory)
    (directory / "etc/haproxy").mkdir(parents=True)
    shutil.copy(ROOT / "etc/haproxy/placement.cfg", directory / "etc/haproxy")
    return Path(directory)
