"""Where the service is, and who asks."""

from __future__ import annotations

import argparse
import base64

import pytest

from placement.ask import address
from placement.ask.address import UsageError

URL = "http://placement.example.com"


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*words, **environment):
    parser = argparse.ArgumentParser()
    address.add_arguments(parser)
    place = address.find(parser.parse_args(words), environment)
    return place.url, dict(place.headers)


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_options_go_before_the_environment():
    environment = {"OS_ENDPOINT": "http://other", "OS_TOKEN": "other"}
    assert found("--url", f"{URL}/", "--token", "t", **environment) == (URL, {"X-Auth-Token": "t"})
    assert found(**environment) == ("http://other", {"X-Auth-Token": "other"})


def test_without_a_token_none_is_sent():
    assert found("--url", URL) == (URL, {})


def test_a_service_of_this_directory_is_found(directory):
    (directory / "var").mkdir()
    (directory / address.ADDRESS_FILE).write_text(f"{URL}\n")
    assert found() == (URL, {})
    assert found("--token", "t") == (URL, {"X-Auth-Token": "t"})
    assert found("--url", "http://other") == ("http://other", {})


def test_a_user_name_is_for_http_basic():
    assert found("--url", URL, "--username", "me", OS_PASSWORD="s\u00e9") == (URL, basic("me", "s\u00e9"))
    environment = {"OS_AUTH_TYPE": "http_basic", "OS_USERNAME": "me", "OS_PASSWORD": "s", "OS_ENDPOINT": URL}
    assert found(**environment) == (URL, basic("me", "s"))
    assert found("--token", "t", **environment) == (URL, {"X-Auth-Token": "t"})
    # The name of another kind of authentication is not sent.
    assert found(**{**environment, "OS_AUTH_TYPE": "password"}) == (URL, {})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "No service is named"),
        (["--url", "placement.example.com"], "is no URL of a service"),
        (["--url", "file:///etc/passwd"], "is no URL of a service"),
        (["--url", URL, "--username", "me"], "The password of me is missing"),
        (["--url", URL, "--username", "me", "--token", "t"], "--token does not go with --username"),
    ],
)
def test_what_is_missing_is_named(words, sentence):
    with pytest.raises(UsageError, match=sentence):
        found(*words)
