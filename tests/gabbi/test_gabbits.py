"""Every story under gabbits/ is true, of the service in this process on SQLite and over HTTP on each kind of database.

A test is a story, a subtest is a request.  In process a story finds a clean database; over HTTP all stories share one,
so that each names its own things.

With GABBI_URL in the environment the stories are told to that service instead, whoever wrote it; its database has to be
new, because what one telling wrote is in the way of the next.  GABBI_REFERENCE=1 says that it is the reference
implementation: the requests in divergences.yaml, where we mean to answer better, are left out.
"""

import collections
import itertools
import os
import pathlib
import re
import unittest
import urllib.parse
import uuid

import pytest
import yaml
from gabbi import handlers, suitemaker
from oslo_config import cfg

from placement import conf, deploy
from tests import running, servers
from tests.conftest import missing

HERE = pathlib.Path(__file__).parent
GABBITS = HERE.parent.parent / "gabbits"
STORIES = sorted(GABBITS.glob("*/*.yaml"))
URL = os.environ.get("GABBI_URL")
DIVERGENCES = yaml.safe_load((HERE / "divergences.yaml").read_text())


def name_of(story):
    """The story as people speak of it: inventory/replace_sets_the_whole."""
    return f"{story.parent.name}/{story.stem}"


each_story = pytest.mark.parametrize("story", STORIES, ids=name_of)


def told(story, host, port=None, application=None):
    """The requests of the story as gabbi's test cases, in order, for a server or for an application in this process."""
    suite = yaml.safe_load(story.read_text())
    # Nobody speaks TLS here; left alone, every request would load the certificates of the world.
    suite.setdefault("defaults", {})["cert_validate"] = False
    intercept = (lambda: application) if application else None
    known = [handler() for handler in handlers.RESPONSE_HANDLERS]
    loader = unittest.TestLoader()
    return suitemaker.test_suite_from_dict(
        loader, name_of(story), suite, str(story.parent), host, port, None, intercept, handlers=known
    )


def tell(requests, subtests, left_out=()):
    """Send one request after the other; whichever is answered otherwise than told fails its subtest."""
    for request in requests:
        sentence = request.test_data["name"]
        with subtests.test(sentence):
            if sentence in left_out:
                request.has_run = True  # else the next request would send it first
                pytest.skip(left_out[sentence])
            result = unittest.TestResult()
            request.run(result)
            request.http.client.close()
            for _, trace in result.failures:
                pytest.fail(trace[trace.find("AssertionError: ") :], pytrace=False)
            assert (result.testsRun, result.errors, result.skipped) == (1, [], [])


def tell_over_http(story, url, subtests, left_out=()):
    address = urllib.parse.urlsplit(url)
    tell(told(story, address.hostname, address.port), subtests, left_out)


if URL:

    @each_story
    def test_story_at_url(story, subtests):
        left_out = DIVERGENCES.get(name_of(story), {}) if os.environ.get("GABBI_REFERENCE") else {}
        tell_over_http(story, URL, subtests, left_out)

else:

    @each_story
    @pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session")
    def test_story_in_process(story, application, subtests):
        tell(told(story, uuid.uuid4().hex, application=application), subtests)

    @each_story
    def test_story_over_http(story, service, subtests):
        tell_over_http(story, service.url, subtests)


@pytest.fixture
def application(database):
    """The service on a clean database."""
    configuration = cfg.ConfigOpts()
    conf.register(configuration)
    configuration.set_override("auth_strategy", "noauth2", group="api")
    configuration.set_override("connection", str(database.engine.url), group="placement_database")
    configuration.set_override("sync_on_startup", True, group="placement_database")
    configuration([], project=conf.PROJECT, default_config_files=[])
    return deploy.loadapp(configuration, database)


@pytest.fixture(scope="session")
def service(backend):
    """The service in processes of its own, on a database that all stories share."""
    url = backend.create_database()
    try:
        with running.uwsgi(url) as running_service:
            yield running_service
    except servers.Missing as reason:
        missing(reason)
    finally:
        backend.drop_database(url)


# --- what stories owe each other -------------------------------------------------------------------------------------

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
CUSTOM = re.compile(r"\bCUSTOM_[A-Z0-9_]+\b")
ANYBODYS = {"00000000-0000-0000-0000-000000000000", "CUSTOM_MAGIC"}  # the owner of old claims, and a trait in messages


def test_no_two_stories_name_the_same_things():
    owners = collections.defaultdict(set)
    for story in STORIES:
        text = story.read_text()
        for thing in itertools.chain(map(str.lower, UUID.findall(text)), CUSTOM.findall(text)):
            owners[thing].add(name_of(story))
    shared = {thing: stories for thing, stories in owners.items() if len(stories) > 1}
    assert {thing: stories for thing, stories in shared.items() if thing not in ANYBODYS} == {}


@each_story
def test_story_has_a_claim_a_head_and_sentences(story):
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", story.stem)
    assert story.read_text().startswith("# ")
    assert [sentence for sentence, count in collections.Counter(sentences_of(story)).items() if count > 1] == []


def test_divergences_are_requests_of_stories():
    for name, divergences in DIVERGENCES.items():
        assert divergences.keys() <= set(sentences_of(GABBITS / f"{name}.yaml"))


def sentences_of(story):
    return [request["name"] for request in yaml.safe_load(story.read_text())["tests"]]
