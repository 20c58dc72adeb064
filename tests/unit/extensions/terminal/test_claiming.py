"""The body of POST /v1/claims, from options and a file."""

from __future__ import annotations

import argparse
import io
import json
import uuid

import pytest

from placement.extensions.terminal import claiming
from placement.extensions.terminal.address import UsageError
from placement.extensions.v1.pick.strategy import Preference

CONSUMER = "7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c"
OTHER = "5a8b0f0e-31a9-4f6a-9c2e-0d8a9f0f3c11"
OWNER = {"project_id": "red", "user_id": "ada"}
REQUEST = {"consumer": CONSUMER, "consumer_type": "JOB", **OWNER, "query": "resources=VCPU:1"}
HELD = {"consumer": CONSUMER, "consumer_type": "VOLUME", "project_id": "blue", "user_id": "bob"}
HELD |= {"consumer_generation": 3, "allocations": {}, "mappings": None, "expires_at": None}


def parse(add, *words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add(parser)
    return parser.parse_args(words)


def body(*words, owner=OWNER):
    return claiming.claim(parse(claiming.add_claim, *words), owner, lambda consumer: {**HELD, "consumer": consumer})


def test_a_claim_names_its_consumer_and_its_owner():
    assert body("resources=VCPU:1", "--consumer", CONSUMER) == {"requests": [REQUEST]}
    words = ("--resource", "VCPU=1", "--consumer", CONSUMER, "--type", "VM", "--project", "p", "--user", "u")
    (request,) = body(*words)["requests"]
    assert request == {**REQUEST, "consumer_type": "VM", "project_id": "p", "user_id": "u"}


def test_the_command_offers_the_strategies_of_the_service():
    """The command does not import the strategies of the service, so that it starts without numpy."""
    assert tuple(Preference) == claiming.STRATEGIES


def test_a_claim_without_a_consumer_gets_a_new_uuid():
    first, second = (body("resources=VCPU:1")["requests"][0]["consumer"] for _ in range(2))
    assert uuid.UUID(first) != uuid.UUID(second)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--strategy", "pack"], {"strategy": "pack"}),
        (["--spread-over", "CUSTOM_RACK_"], {"strategy": {"spread_over": "CUSTOM_RACK_"}}),
        (["--all-or-nothing"], {"all_or_nothing": True}),
        (["--expires-in", "90s"], {"expires_in": 90}),
        (["--expires-in", "2m"], {"expires_in": 120}),
        (["--expires-in", "2h"], {"expires_in": 7200}),
        (["--expires-in", "2d"], {"expires_in": 172800}),
        (["--expires-in", "1w"], {"expires_in": 604800}),
        (["--apart-from", OTHER, "--apart-from", CONSUMER], {"apart_from": [OTHER, CONSUMER]}),
        (["--together-with", OTHER], {"together_with": [OTHER]}),
        (["--dry-run"], {}),
    ],
)
def test_options_for_all_requests_are_fields_of_the_body(words, expected):
    assert body("resources=VCPU:1", "--consumer", CONSUMER, *words) == {"requests": [REQUEST], **expected}


def test_the_count_is_a_field_of_the_request():
    (request,) = body("resources=VCPU:1", "--consumer", CONSUMER, "--count", "4")["requests"]
    assert request == {**REQUEST, "count": 4}


def test_a_move_states_the_generation_and_keeps_the_owner():
    (request,) = body("resources=VCPU:1", "--move", CONSUMER)["requests"]
    assert request == {
        **{name: HELD[name] for name in ("consumer", "consumer_type", "project_id", "user_id", "consumer_generation")},
        "keep": False,
        "query": "resources=VCPU:1",
    }
    (request,) = body("resources=VCPU:1", "--move", CONSUMER, "--project", "p")["requests"]
    assert (request["project_id"], request["user_id"]) == ("p", "bob")


@pytest.mark.parametrize("content", [[{"consumer": CONSUMER}], {"requests": [{"consumer": CONSUMER}]}])
def test_options_supply_fields_that_a_file_omits(tmp_path, content):
    (tmp_path / "jobs.json").write_text(json.dumps(content))
    assert body("resources=VCPU:1", "--file", str(tmp_path / "jobs.json")) == {"requests": [REQUEST]}


def test_requests_in_a_file_override_options_which_override_other_fields_of_the_file(tmp_path, monkeypatch):
    request = {**REQUEST, "project_id": "blue", "query": {"groups": {"": {"resources": {"VCPU": 9}}}}, "count": 2}
    file_body = {"requests": [request, REQUEST], "strategy": "pack", "expires_in": None, "all_or_nothing": True}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(file_body)))
    sent_body = body("resources=VCPU:7", "--file", "-", "--count", "3", "--project", "p", "--strategy", "random")
    assert sent_body == {**file_body, "requests": [request, {**REQUEST, "count": 3}], "strategy": "random"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not JSON: "),
        (b"\xff", "is not JSON: "),
        (b"{}", "contains no entries"),
        (b"7", "contains no entries"),
        (b'{"requests": 7}', "contains no entries"),
        (b"[7]", "contains no entries"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path, content, sentence):
    (tmp_path / "jobs.json").write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        body("resources=VCPU:1", "--file", str(tmp_path / "jobs.json"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"jobs.json cannot be read: No such file or directory\."):
        body("resources=VCPU:1", "--file", str(tmp_path / "jobs.json"))


def test_missing_arguments_are_named():
    with pytest.raises(UsageError, match="The query is missing"):
        body("--consumer", CONSUMER)
    for owner in ({}, {"project_id": "red"}, {"user_id": "ada"}):
        with pytest.raises(UsageError, match="The owner of the consumer is missing"):
            body("resources=VCPU:1", owner=owner)


def test_a_dry_run_needs_no_owner():
    for owner in ({}, {"project_id": "red"}, {"project_id": "red", "user_id": "ada"}):
        (request,) = body("resources=VCPU:1", "--dry-run", owner=owner)["requests"]
        assert (request["project_id"], request["user_id"]) == (
            owner.get("project_id", "nobody"),
            owner.get("user_id", "nobody"),
        )


@pytest.mark.parametrize(
    "words",
    [
        ["--consumer", "x"],
        ["--expires-in", "1"],
        ["--expires-in", "h"],
        ["--expires-in", "1.5h"],
        ["--expires-in", "-1h"],
        ["--count", "0"],
        ["--strategy", "best"],
        ["--strategy", "pack", "--spread-over", "root"],
        ["--consumer", CONSUMER, "--move", CONSUMER],
        ["--move", CONSUMER, "--file", "-"],
    ],
)
def test_invalid_and_contradictory_arguments_are_refused(words):
    with pytest.raises(argparse.ArgumentError):
        body("resources=VCPU:1", *words)


def test_an_extension_has_a_duration_or_no_expiry():
    assert claiming.extend(parse(claiming.add_extend, CONSUMER, "90m")) == {"expires_in": 5400}
    assert claiming.extend(parse(claiming.add_extend, CONSUMER, "--forever")) == {"expires_in": None}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--consumer", CONSUMER], f"repeat the command with --consumer {CONSUMER},"),
        (["--move", CONSUMER], "use the command consumers to see"),
        (["--file", "-"], "repeat the command, which makes only the missing claims."),
    ],
)
def test_a_request_without_a_reply_is_reported_with_advice(words, expected):
    advice = claiming.retry_advice(parse(claiming.add_claim, *words), {"requests": [REQUEST]})
    assert advice.startswith(f"The claim may or may not have been made: {expected}")
