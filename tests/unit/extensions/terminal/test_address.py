"""The address of the service, and the credentials of the caller."""

from __future__ import annotations

import argparse
import base64

import pytest

from placement.extensions.terminal import address
from placement.extensions.terminal.address import UsageError

URL = "http://placement.example.com"


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def find_address(*words, **environment):
    parser = argparse.ArgumentParser()
    address.add_arguments(parser)
    service_address = address.find(parser.parse_args(words), environment)
    return service_address.url, dict(service_address.headers)


def basic(name, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_options_take_precedence_over_the_environment():
    environment = {"OS_ENDPOINT": "http://other", "OS_TOKEN": "other"}
    assert find_address("--url", f"{URL}/", "--token", "t", **environment) == (URL, {"X-Auth-Token": "t"})
    assert find_address(**environment) == ("http://other", {"X-Auth-Token": "other"})


def test_without_a_token_no_credentials_are_sent():
    assert find_address("--url", URL) == (URL, {})


def test_a_service_of_this_directory_is_found(directory):
    (directory / "var").mkdir()
    (directory / address.ADDRESS_FILE).write_text(f"{URL}\n")
    assert find_address() == (URL, {})
    assert find_address("--token", "t") == (URL, {"X-Auth-Token": "t"})
    assert find_address("--url", "http://other") == ("http://other", {})


def test_a_user_name_selects_http_basic():
    assert find_address("--url", URL, "--username", "me", OS_PASSWORD="s\u00e9") == (URL, basic("me", "s\u00e9"))
    # Bytes that are not UTF-8 are sent unchanged.
    assert find_address("--url", URL, "--username", "me", OS_PASSWORD="\udcff") == (
        URL,
        {"Authorization": "Basic bWU6/w=="},
    )
    environment = {"OS_AUTH_TYPE": "http_basic", "OS_USERNAME": "me", "OS_PASSWORD": "s", "OS_ENDPOINT": URL}
    assert find_address(**environment) == (URL, basic("me", "s"))
    assert find_address("--token", "t", **environment) == (URL, {"X-Auth-Token": "t"})
    # The user name of another type of authentication is not sent.
    assert find_address(**{**environment, "OS_AUTH_TYPE": "password"}) == (URL, {})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "The URL of the service is missing"),
        (["--url", "placement.example.com"], "is not the URL of a service"),
        (["--url", "file:///etc/passwd"], "is not the URL of a service"),
        (["--url", "http://"], "is not the URL of a service"),
        (["--url", f"{URL}?a=b"], "is not the URL of a service"),
        (["--url", f"{URL}#a"], "is not the URL of a service"),
        (["--url", f"{URL}/a b"], "is not the URL of a service"),
        (["--url", "http://host:99999"], "The URL of the service is invalid: Port out of range"),
        (["--url", "http://[::1"], "The URL of the service is invalid: Invalid IPv6 URL"),
        (
            ["--url", "http://me:s3cret@host"],
            "^The URL of the service contains a user name: use --username and .OS_PASSWORD instead.$",
        ),
        (["--url", URL, "--token", "a\nb"], "^The token is invalid: it may contain only printable ASCII"),
        (
            ["--url", URL, "--token", "\u00e9"],
            "^The token is invalid: it may contain only printable ASCII",
        ),
        (["--url", URL, "--username", "me"], "The password of me is missing"),
        (["--url", URL, "--username", "me", "--token", "t"], "--token and --username cannot be combined"),
    ],
)
def test_missing_and_invalid_settings_are_reported(words, sentence):
    with pytest.raises(UsageError, match=sentence):
        find_address(*words)


def test_the_options_of_the_openstack_client_are_supported():
    """An empty variable counts as unset, an option precedes its variable, and a token may end with a line break."""
    parser = argparse.ArgumentParser()
    address.add_arguments(parser)

    def place(*words, **environment):
        return address.find(parser.parse_args(["--url", URL, *words]), environment)

    assert (place().cacert, place().verified, place().timeout) == (None, True, 60)
    assert (place(OS_CACERT="/b").cacert, place("--cacert", "/a", OS_CACERT="/b").cacert) == ("/b", "/a")
    assert (place(OS_CACERT="").cacert, place("--insecure").verified) == (None, False)
    assert place("--timeout", "2.5").timeout == 2.5
    assert place(OS_TOKEN="t\n").headers == {"X-Auth-Token": "t"}


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "inf", "1e9"])
def test_a_timeout_is_a_number_of_seconds(seconds, capsys):
    with pytest.raises(SystemExit):
        find_address("--url", URL, "--timeout", seconds)
    assert "use a number of seconds" in capsys.readouterr().err
