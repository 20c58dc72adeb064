"""Every story under gabbits/, told to a service: a test is a story, a subtest is a request.

Without further ado the service runs in this process, on a SQLite file made for each story.  With ``GABBI_URL`` set to the
root of a running service, whoever wrote it, the stories are told to that one over HTTP; all of them share it, so each story
names its own things, and a story can be told once to one database.  ``GABBI_REFERENCE=1`` says that the service is the
reference implementation: then the requests in ``divergences.yaml``, where we mean to answer better, are left out.
"""

from __future__ import annotations

import collections
import itertools
import os
import pathlib
import re
import unittest
import uuid

import pytest
import yaml
from gabbi import handlers, suitemaker

HERE = pathlib.Path(__file__).parent
GABBITS = HERE.parent.parent / "gabbits"
STORIES = sorted(GABBITS.glob("*/*.yaml"))
URL = os.environ.get("GABBI_URL")
DIVERGENCES = yaml.safe_load((HERE / "divergences.yaml").read_text()) or {}
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
CUSTOM = re.compile(r"\bCUSTOM_[A-Z0-9_]+\b")
NIL = "00000000-0000-0000-0000-000000000000"


def name_of(story):
    """The story as people speak of it: inventory/replacing_all_moves_the_generation."""
    return f"{story.parent.name}/{story.stem}"


def requests_of(story, *, application=None, url=None):
    """The requests of the story as gabbi's test cases, in order, to be sent to the application or to the URL."""
    told = yaml.safe_load(story.read_text())
    told.setdefault("defaults", {})["cert_validate"] = False  # nobody speaks TLS here; without this each client loads the CAs
    host, port = (uuid.uuid4().hex, None) if url is None else url.removeprefix("http://").rstrip("/").split(":")
    return suitemaker.test_suite_from_dict(
        unittest.TestLoader(), name_of(story), told, str(story.parent), host, port, None,
        None if application is None else lambda: application,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )  # fmt: skip


def tell(story, subtests, **target):
    """Send the requests of the story one after the other; each that is answered otherwise than told fails its subtest."""
    differing = DIVERGENCES.get(name_of(story), {}) if os.environ.get("GABBI_REFERENCE") else {}
    for request in requests_of(story, **target):
        sentence = request.test_data["name"]
        with subtests.test(msg=sentence):
            if sentence in differing:
                pytest.skip(differing[sentence])
            result = unittest.TestResult()
            request.run(result)
            request.http.client.close()
            for _, trace in result.failures + result.errors:
                pytest.fail(trace, pytrace=False)
            assert result.testsRun == 1 and not result.skipped


@pytest.mark.parametrize("story", STORIES, ids=name_of)
def test_story(story, subtests, request):
    if URL:
        tell(story, subtests, url=URL)
    else:
        tell(story, subtests, application=request.getfixturevalue("application"))


# --- what the stories promise each other --------------------------------------------------------------------------------


def test_no_two_stories_name_the_same_things():
    """Over HTTP all stories share one database, so what one writes must not be what another looks at."""
    owners = collections.defaultdict(set)
    for story in STORIES:
        text = story.read_text()
        for thing in itertools.chain(map(str.lower, UUID.findall(text)), CUSTOM.findall(text)):
            owners[thing].add(name_of(story))
    shared = {thing: sorted(stories) for thing, stories in owners.items() if len(stories) > 1 and thing != NIL}
    assert not shared


@pytest.mark.parametrize("story", STORIES, ids=name_of)
def test_story_is_told_well(story):
    """The file name is the claim, the head tells the story, and every request has a name of its own."""
    text = story.read_text()
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", story.stem), "the file name is a claim, its words joined by underscores"
    assert text.startswith("# "), "the head tells the story"
    names = [request["name"] for request in yaml.safe_load(text)["tests"]]
    assert [name for name, count in collections.Counter(names).items() if count > 1] == []


def test_divergences_name_requests_that_exist():
    known = {name_of(story): {test["name"] for test in yaml.safe_load(story.read_text())["tests"]} for story in STORIES}
    unknown = [(story, name) for story, names in DIVERGENCES.items() for name in names if name not in known.get(story, ())]
    assert not unknown
