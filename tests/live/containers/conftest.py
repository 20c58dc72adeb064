"""Fixtures: one engine with its images for all tests of containers, which therefore run in one process."""

from __future__ import annotations

import shutil

import pytest

from tests import children, containers, web_servers
from tests.docs.blocks import ROOT


@pytest.fixture(scope="session")
def engine():
    """The engine, with the image of the service and the images of compose.yaml."""
    engine = containers.Engine(children.run_directory() / "containers")
    try:
        engine.build()
        yield engine
    finally:
        engine.close()


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files of a checkout that compose.yaml needs; the commands of the page add more."""
    directory = tmp_path_factory.mktemp("checkout")
    shutil.copy(ROOT / "compose.yaml", directory)
    (directory / "etc/haproxy").mkdir(parents=True)
    # On a busy machine a service may respond to a check late.
    timeouts = {"    timeout queue 60s\n": "    timeout queue 60s\n    timeout check 10s\n"}
    (directory / "etc/haproxy/placement.cfg").write_text(web_servers.fill_sample("haproxy/placement.cfg", timeouts))
    return directory
