"""The requests of the command release: uuids in batches, or conditions, repeated until the release is complete."""

from __future__ import annotations

import argparse
import contextlib
import io
import uuid

import pytest

from placement.extensions.terminal import releasing
from placement.extensions.terminal.address import UsageError
from placement.extensions.terminal.style import Style

CONSUMERS = [str(uuid.UUID(int=number)) for number in range(1, 400)]
HELD = {"type": "JOB", "project": "red", "user": "ada", "since": None, "expires_at": None}
HELD |= {"allocations": {"p": {"name": "host1", "resources": {"VCPU": 1}}}}


class Service:
    """A service that releases one group of consumers for each request; the last response is complete."""

    def __init__(self, *released, consumers=()):
        self.queries = []
        self._released = list(released)
        self._consumers = consumers

    def delete(self, query):
        self.queries.append(query)
        reply = {"released": self._released.pop(0), "missing": [], "complete": not self._released}
        return {"dry_run": {"status": 200, "body": reply}, "room": {}} if ("dry_run", "true") in query else reply

    def pages(self, path, query):
        self.queries.append((path, query))
        yield {"consumers": [{"uuid": consumer, **HELD} for consumer in self._consumers], "next": None}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def release(service, *words):
    parser = argparse.ArgumentParser()
    releasing.add_release(parser)
    return releasing.release(service.delete, service.pages, parser.parse_args(words), Style())


def test_uuids_are_sent_in_batches():
    service = Service()
    sizes = []

    def delete(query):
        sizes.append(len(query))
        return {"released": [consumer for _, consumer in query], "missing": [], "complete": True}

    service.delete = delete
    result = release(service, *CONSUMERS)
    assert sizes == [150, 150, 99]
    assert result == {"released": CONSUMERS, "missing": [], "complete": True, "dry_run": False}


def test_a_request_is_repeated_until_the_release_is_complete():
    service = Service(CONSUMERS[:2], CONSUMERS[2:3])
    result = release(service, "--project", "red", "--older-than", "1d", "--ends-within", "2h", "--yes")
    assert service.queries == [[("project", "red"), ("older_than", "1d"), ("ends_within", "2h")]] * 2
    assert (result["released"], result["complete"]) == (CONSUMERS[:3], True)


def test_a_repeated_request_names_the_remaining_consumers():
    service = Service(CONSUMERS[1:2], [CONSUMERS[0], CONSUMERS[2]])
    result = release(service, *CONSUMERS[:3])
    assert service.queries[1] == [("consumer", CONSUMERS[0]), ("consumer", CONSUMERS[2])]
    assert sorted(result["released"]) == CONSUMERS[:3]


def test_a_request_that_releases_nothing_is_not_repeated():
    service = Service([], [])
    assert not release(service, "--project", "red", "--yes")["complete"]
    assert len(service.queries) == 1


@pytest.mark.parametrize(
    ("words", "pair"),
    [(["--dry-run"], ("dry_run", "true")), (["--limit", "7", "--yes"], ("limit", "7"))],
)
def test_a_dry_run_and_a_limited_release_are_sent_once(words, pair):
    service = Service(CONSUMERS[:2], CONSUMERS[2:])
    result = release(service, "--user", "ada", *words)
    assert service.queries == [[("user", "ada"), pair]]
    assert (result["released"], result["complete"], result["dry_run"]) == (CONSUMERS[:2], False, "--dry-run" in words)


@pytest.mark.parametrize(
    ("answer", "agreed"), [("y\n", True), ("Yes\n", True), ("n\n", False), ("\n", False), ("", False)]
)
def test_only_the_consumers_in_the_question_are_released(monkeypatch, capsys, answer, agreed):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    service = Service(CONSUMERS[:2], consumers=CONSUMERS[:2])
    with contextlib.nullcontext() if agreed else pytest.raises(releasing.Declined):
        assert release(service, "--project", "red")["released"] == CONSUMERS[:2]
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith("Release these 2 consumers? [y/N] ")
    assert output.err.count("host1") == 2
    assert service.queries[0] == ("/consumers", [("project", "red"), ("limit", "1000")])
    assert service.queries[1:] == ([[("consumer", consumer) for consumer in CONSUMERS[:2]]] if agreed else [])


def test_an_empty_selection_asks_no_question(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", Terminal())
    assert release(Service(), "--project", "red")["released"] == []
    assert capsys.readouterr().err == ""


def test_without_a_terminal_there_is_no_question(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    service = Service(CONSUMERS)
    with pytest.raises(UsageError, match="no terminal"):
        release(service, "--project", "red")
    assert service.queries == []


@pytest.mark.parametrize("words", [[], [CONSUMERS[0], "--project", "red"]])
def test_consumers_are_either_named_or_selected(words):
    with pytest.raises(UsageError, match="Select consumers either by uuid or by options"):
        release(Service(), *words)
