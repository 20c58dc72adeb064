"""Fixtures: the service with a small cloud, in this process."""

from __future__ import annotations

import pytest

from placement import deploy
from tests import web
from tests.extensions.console import fleet


@pytest.fixture(scope="module")
def app(module_database_url):
    """The application with ``noauth2``, so a request without a token is an administrator's."""
    return console(module_database_url)


@pytest.fixture
def app_for_readers(module_database_url, tmp_path):
    """The application with a policy that lets readers see the consumers of their own project."""
    path = tmp_path / "policy.yaml"
    path.write_text('"placement:v1:consumers:list": "rule:admin_or_project_reader_or_service_api"\n')
    return console(module_database_url, oslo_policy__policy_file=str(path))


def console(url, **options):
    """Return the application with the console and ``noauth2``, on this database."""
    database = {"placement_database__connection": url, "placement_database__sync_on_startup": True}
    return deploy.loadapp(web.configuration(console__enabled=True, **database, **options))


@pytest.fixture(scope="module")
def hour():
    """The whole hour at which the samples of the cloud end; the tests do not read the clock again."""
    return fleet.present_hour()


@pytest.fixture(scope="module")
def uuids(app, module_database_url, hour):
    """The uuids of the cloud's providers by name; the cloud has samples of a month."""
    uuids = fleet.fill(app)
    fleet.sample(module_database_url, hour)
    return uuids
