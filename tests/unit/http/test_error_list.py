"""Error documents of Placement: statuses, details, codes and media types."""

from __future__ import annotations

import inspect
import json
import re

import pytest

from placement import errors, routes
from placement import microversion as mv
from placement.http import failures
from placement.http.environ import API, REQUEST_ID, VERSION
from tests import web

BEFORE_CODES = mv.Version(1, 22)


def answer(failure, accept="application/json", version=mv.LATEST, method="GET", **environ):
    def app(environ, start_response):
        return failures.respond(failure, environ, start_response)

    request_environ = {
        API: routes.PLACEMENT,
        REQUEST_ID: web.REQUEST,
        VERSION: version,
        "HTTP_ACCEPT": accept,
        **environ,
    }
    return web.ask(app, method, "/x", environ=request_environ)


def failure_types(module):
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, errors.Failure) and kind is not errors.Failure
    ]


@pytest.mark.parametrize(
    ("failure", "status", "title", "detail"),
    [
        (
            errors.MalformedJSON(reason="why"),
            400,
            "Bad Request",
            "The server could not comply with the request since it is either malformed or otherwise incorrect."
            "\n\n Malformed JSON: why  ",
        ),
        (
            errors.PolicyForbids(rule="r"),
            403,
            "Forbidden",
            "Access was denied to this resource.\n\n Policy does not allow r to be performed.  ",
        ),
        (
            errors.ProviderNotFound(uuid="u"),
            404,
            "Not Found",
            "The resource could not be found.\n\n No resource provider with uuid u found  ",
        ),
        (failures.NoSuchRoute(), 404, "Not Found", "The resource could not be found.\n\n   "),
        (
            failures.MethodNotAllowed(allow="GET"),
            405,
            "Method Not Allowed",
            "The method GET is not allowed for this resource. \n\n "
            "The method specified is not allowed for this resource.",
        ),
        (
            failures.MethodNotAllowed(),
            405,
            "Method Not Allowed",
            "The method GET is not allowed for this resource. \n\n ",
        ),
        (
            failures.OnlyJSON(),
            406,
            "Not Acceptable",
            "The resource could not be generated that was acceptable to your browser "
            "(content of type application/json. \n\n Only application/json is provided",
        ),
        (
            errors.ProviderGenerationConflict(),
            409,
            "Conflict",
            "There was a conflict when trying to complete your request.\n\n resource provider generation conflict  ",
        ),
        (
            failures.UnsupportedMediaType(type="a/b"),
            415,
            "Unsupported Media Type",
            "The request media type a/b; c=d is not supported by this server. \n\n "
            "The media type a/b is not supported, use application/json",
        ),
        (
            errors.DatabaseUnavailable(),
            503,
            "Service Unavailable",
            "The server is currently unavailable. Please try again at a later time."
            "\n\n The database cannot be reached. Please try again.  ",
        ),
    ],
)
def test_a_failure_has_a_status_and_a_detail(failure, status, title, detail):
    """Clients read the last line, and know the format including its blanks."""
    reply = answer(failure, CONTENT_TYPE="a/b; c=d")
    assert reply.status == f"{status} {title}"
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {
        "errors": [
            {
                "status": status,
                "title": title,
                "detail": detail,
                "code": failure.code,
                "request_id": web.REQUEST,
            }
        ]
    }
    assert detail.split("\n")[-1].strip() == failure.sentence


@pytest.mark.parametrize("content_type", [None, ""])
def test_a_missing_media_type_is_reported_as_none(content_type):
    environ = {} if content_type is None else {"CONTENT_TYPE": content_type}
    problem = answer(failures.UnsupportedMediaType(type=None), **environ).json["errors"][0]
    assert problem["detail"].startswith("The request media type None is not supported by this server. ")


def test_an_internal_error_has_no_details():
    reply = answer(failures.InternalError())
    assert reply.status == "500 Internal Server Error"
    assert reply.json["errors"][0]["title"] == "Internal Server Error"
    assert "id of this request" in reply.json["errors"][0]["detail"]


@pytest.mark.parametrize("kind", failure_types(errors) + failure_types(failures))
def test_every_failure_has_an_error_status_and_only_an_internal_error_has_500(kind):
    failure = kind.__new__(kind)
    expected = 500 if kind is failures.InternalError else range(400, 504)
    assert failures.status_of(failure) in (expected if isinstance(expected, range) else [expected])
    assert (failures.status_of(failure) == 500) is (kind is failures.InternalError)


def test_error_codes_are_sent_from_1_23_on():
    failure = errors.ProviderNameTaken(name="n")
    assert answer(failure).json["errors"][0]["code"] == "placement.duplicate_name"
    assert (
        answer(failures.NoSuchRoute(), version=mv.ERROR_CODES).json["errors"][0]["code"] == "placement.undefined_code"
    )
    assert "code" not in answer(failure, version=BEFORE_CODES).json["errors"][0]


def test_an_unacceptable_version_is_reported_with_the_range_and_without_a_code():
    problem = answer(errors.UnacceptableVersion(version="9.9"), version=mv.LATEST).json["errors"][0]
    assert problem["max_version"] == str(mv.LATEST)
    assert problem["min_version"] == "1.0"
    assert "code" not in problem
    [problem] = answer(errors.UnacceptableVersion(version="9.9"), accept="").json["errors"]
    assert "(content of type application/json." in problem["detail"]


def test_allowed_methods_are_sent_in_the_allow_header():
    assert answer(failures.MethodNotAllowed(allow="GET, PUT")).headers["allow"] == "GET, PUT"
    assert "allow" not in answer(failures.MethodNotAllowed()).headers


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
        ("application/*", "application/json"),
        ("text/html", "text/html; charset=UTF-8"),
        ("text/*;q=0.5, application/json", "application/json"),
        ("text/html, application/json", "text/html; charset=UTF-8"),
        ("text/plain", "text/plain; charset=UTF-8"),
        ("image/png", "text/plain; charset=UTF-8"),
    ],
)
def test_the_media_type_of_an_error_document_is_negotiated(accept, content_type):
    reply = answer(errors.ProviderNotFound(uuid="\N{SNOWMAN}"), accept)
    assert reply.headers["content-type"] == content_type
    assert "The resource could not be found." in reply.text
    assert "404" in reply.text
    if content_type == "application/json":
        assert json.loads(reply.text)["errors"][0]["detail"].endswith("No resource provider with uuid \u2603 found  ")
    else:
        assert "No resource provider with uuid \u2603 found" in reply.text


def test_an_html_error_document_escapes_text_of_the_client():
    text = answer(errors.ProviderNotFound(uuid="<b>&"), "text/html").text
    assert text.startswith("<html>")
    assert "<h1>404 Not Found</h1>" in text
    assert "uuid &lt;b&gt;&amp; found" in text
    text = answer(failures.UnsupportedMediaType(type="x"), "text/html", CONTENT_TYPE="<b>").text
    assert "media type &lt;b&gt; is not supported" in text


@pytest.mark.parametrize("accept", ["application/json", "text/plain"])
def test_tags_are_removed_from_json_and_text(accept):
    text = answer(errors.ProviderNotFound(uuid="a<script>b</script>c"), accept).text
    assert "uuid abc found" in text


@pytest.mark.parametrize("accept", ["application/json", "text/plain"])
def test_unclosed_tags_take_linear_time(accept):
    """A pattern that searches for the end of each tag would take quadratic time."""
    tags = "<" * 200_000
    text = answer(errors.ProviderNotFound(uuid=tags), accept).text
    assert re.search(r"uuid <+ \.\.\. <+ found", text)


@pytest.mark.parametrize("accept", ["application/json", "text/plain", "text/html"])
def test_a_long_message_is_shortened_in_the_middle(accept):
    for length in (20_000, 40_000, 4_000_000):
        reply = answer(errors.ProviderNotFound(uuid="\N{SNOWMAN}" * length), accept)
        assert "No resource provider with uuid " in reply.text
        assert " found" in reply.text
        assert (" ... " in reply.text) == (length > 24_000)
        assert len(reply.body) < 200_000


def test_a_message_of_several_lines_is_joined_into_one():
    reply = answer(errors.InvalidBody(reason="x\n\nFailed validating 'y' in schema:\n    {}"))
    assert reply.json["errors"][0]["detail"].split("\n")[-1].strip() == (
        "JSON does not validate: x  Failed validating 'y' in schema:     {}"
    )


@pytest.mark.parametrize("accept", ["application/json", "text/plain", "text/html"])
@pytest.mark.parametrize("name", ["{status} {0} {", "%s %(a)s", "\ud800", "$x ${y}"])
def test_a_name_with_format_characters_does_not_break_a_response(accept, name):
    reply = answer(errors.ProviderNotFound(uuid=name), accept)
    assert reply.status_int == 404
    assert len(reply.body) == int(reply.headers["content-length"])


def test_an_error_response_to_head_has_no_body():
    reply = answer(errors.ProviderNotFound(uuid="u"), method="HEAD")
    assert reply.status_int == 404
    assert reply.body == b""
