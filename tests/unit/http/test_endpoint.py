"""The order of the checks (docs: api-order-of-checks): a request that fails several of them is refused by the first."""

from __future__ import annotations

import dataclasses

import pytest

from placement import errors, routes
from placement import microversion as mv
from placement.http.application import Application
from placement.http.endpoint import endpoint, media_type, preferred_type
from placement.http.failures import MethodNotAllowed, OnlyJSON
from placement.http.response import no_content, ok
from placement.http.service import Service
from placement.policy import Policy
from placement.schemas import provider as schema
from tests import web

BEFORE_TRAITS = mv.Version(1, 5)
TEXT = {"accept": "text/plain", "content-type": "text/plain"}
JSON = {"content-type": "application/json"}
RULE = "placement:traits:list"


@endpoint(since=mv.TRAITS, policy=RULE, body=schema.CREATE)
def usual(req):
    return ok(req.document)


@endpoint(since=mv.TRAITS, policy=RULE, body=schema.CREATE, gate=MethodNotAllowed)
def gated_by_method(req):
    return ok(req.document)


@endpoint(since=mv.TRAITS, policy=RULE, body=schema.CREATE, media_types_first=True)
def gated_late(req):
    return ok(req.document)


class TooOld(errors.Conflict):
    template = "too old"


@endpoint(since=mv.TRAITS, policy=RULE, body=schema.CREATE, gate=TooOld)
def gated_by_a_failure(req):
    return ok(req.document)


@endpoint(body=schema.CREATE)
def position_in_the_body(req):
    return ok(req.environ["wsgi.input"].tell())


@endpoint(negotiates=False)
def accept_any_type(_req):
    return no_content()


@endpoint(policy="placement:usages", target=lambda req: {"project_id": req.unchecked_parameter("project_id")})
def show_project(_req):
    return no_content()


@endpoint(until=mv.TRAITS)
def before_traits(_req):
    return ok("before")


@endpoint(since=mv.TRAITS)
def since_traits(_req):
    return ok("after")


@endpoint(query=schema.LIST)
def with_a_query(req):
    return ok([*req.parameters.items()])


@endpoint()
def without_a_query(req):
    return ok([*req.parameters.items()])


def find_there(_db, name):
    if name != "there":
        raise errors.ProviderNotFound(uuid=name)


def no_digits(_req, name):
    if name.isdigit():
        raise errors.BadTraitName(value=name)


@endpoint(
    check_path=no_digits,
    query=schema.LIST,
    body=schema.CREATE,
    limits={"traits": lambda document: len(document["name"])},
    find_first=find_there,
)
def looked_up(req, name):
    return ok([name, req.document["name"]])


TABLE = {
    "/usual": {"GET": usual, "PUT": usual},
    "/read": {"PUT": position_in_the_body},
    "/method": {"PUT": gated_by_method},
    "/failure": {"PUT": gated_by_a_failure},
    "/late": {"GET": gated_late, "PUT": gated_late},
    "/any": {"GET": accept_any_type},
    "/of_project": {"GET": show_project},
    "/two": {"GET": (before_traits, since_traits)},
    "/query": {"GET": with_a_query},
    "/no_query": {"GET": without_a_query},
    "/looked_up/{name}": {"PUT": looked_up},
}


@pytest.fixture(scope="module")
def app():
    return web.application(TABLE)


def ask(app, method, path, headers=None, body=None, version=mv.LATEST, roles="admin"):
    return web.ask_inside(app, method, path, headers, body, version=version, roles=roles)


def detail(answer):
    return answer.json["errors"][0]["detail"].split("\n")[-1].strip()


def test_the_gate_is_checked_first(app):
    answer = ask(app, "GET", "/usual", TEXT, b"{", BEFORE_TRAITS, roles="none")
    assert answer.status_int == 404
    assert ask(app, "GET", "/usual", JSON, b'{"name": "a"}', mv.TRAITS).status_int == 200


def test_the_gate_may_refuse_with_method_not_allowed(app):
    answer = ask(app, "PUT", "/method", TEXT, b"{", BEFORE_TRAITS, roles="none")
    assert answer.status_int == 405
    assert "allow" not in answer.headers


def test_the_gate_may_be_a_failure(app):
    answer = ask(app, "PUT", "/failure", TEXT, b"{", BEFORE_TRAITS, roles="none")
    assert answer.status_int == 409
    assert "too old" in answer.text
    assert ask(app, "PUT", "/failure", JSON, b'{"name": "a"}', mv.TRAITS).json == {"name": "a"}


def test_the_gate_may_be_checked_after_the_media_types_but_before_the_policy(app):
    assert ask(app, "GET", "/late", TEXT, b"{", BEFORE_TRAITS).status_int == 406
    assert ask(app, "PUT", "/late", TEXT, b"{", BEFORE_TRAITS).status_int == 415
    assert ask(app, "PUT", "/late", JSON, b"{", BEFORE_TRAITS, roles="none").status_int == 404
    assert ask(app, "PUT", "/late", JSON, b"{", mv.TRAITS, roles="none").status_int == 403


def test_accept_is_checked_before_the_content_type(app):
    answer = ask(app, "GET", "/usual", TEXT, b"{", roles="none")
    assert answer.status_int == 406
    assert "Only application/json is provided" in answer.text


def test_only_get_checks_accept(app):
    answer = ask(app, "PUT", "/usual", {"accept": "image/png"} | JSON, b'{"name": "a"}')
    assert answer.json == {"name": "a"}


def test_the_content_type_is_checked_before_the_policy(app):
    answer = ask(app, "PUT", "/usual", {"content-type": "text/plain; charset=utf-8"}, b"{", roles="none")
    assert answer.status_int == 415
    assert detail(answer) == "The media type text/plain is not supported, use application/json"


@pytest.mark.parametrize("headers", [{}, {"content-type": ""}])
def test_a_missing_content_type_is_reported_as_none(app, headers):
    answer = ask(app, "PUT", "/usual", headers)
    assert answer.status_int == 415
    assert detail(answer) == "The media type None is not supported, use application/json"


def test_the_policy_is_checked_before_the_body(app):
    answer = ask(app, "PUT", "/usual", JSON, b"{", roles="none")
    assert answer.status_int == 403
    assert detail(answer) == f"Policy does not allow {RULE} to be performed."


def test_the_body_is_checked_last(app):
    assert detail(ask(app, "PUT", "/usual", JSON, b"{")).startswith("Malformed JSON: ")
    assert detail(ask(app, "PUT", "/usual", JSON)) == "Malformed JSON: Expecting value: line 1 column 1 (char 0)"
    assert detail(ask(app, "PUT", "/usual", JSON, b"{}")).startswith("JSON does not validate: ")
    assert ask(app, "PUT", "/usual", {"content-type": "Application/JSON ; x=y"}, b'{"name": "a"}').status_int == 200


def test_the_body_is_read_before_the_handler_begins(app):
    """Otherwise a handler could wait for a slow client inside a transaction, with the row of a provider locked."""
    body = b'{"name": "a"}'
    assert ask(app, "PUT", "/read", JSON, body).json == len(body)
    assert ask(app, "PUT", "/read", JSON, b"{").status_int == 400


def test_an_endpoint_may_ignore_accept(app):
    assert ask(app, "GET", "/any", {"accept": "image/png"}).status_int == 204


def test_the_policy_may_have_a_target_other_than_the_caller(app):
    assert ask(app, "GET", "/of_project?project_id=p", roles="reader").status_int == 204
    assert ask(app, "GET", "/of_project?project_id=q", roles="reader").status_int == 403
    assert ask(app, "GET", "/of_project?project_id=p&project_id=q", roles="reader").status_int == 403
    assert ask(app, "GET", "/of_project", roles="reader").status_int == 403
    assert ask(app, "GET", "/of_project?project_id=%88", roles="reader").status_int == 403


def test_a_method_may_have_an_endpoint_for_each_range_of_versions(app):
    assert ask(app, "GET", "/two", version=BEFORE_TRAITS).json == "before"
    assert ask(app, "GET", "/two", version=mv.TRAITS).json == "after"


def test_the_query_is_validated_before_the_handler_runs(app):
    assert ask(app, "GET", "/query?name=a").json == [["name", "a"]]
    assert detail(ask(app, "GET", "/query?bogus=1")).startswith("Invalid query string parameters: ")


def test_an_endpoint_without_a_query_schema_ignores_the_query(app):
    assert ask(app, "GET", "/no_query?limit=%88&x=y").json == []


class Reads:
    """A database that counts its reads."""

    def __init__(self):
        self.count = 0

    def read(self, work, **arguments):
        self.count += 1
        return work(self, **arguments)


@pytest.fixture
def reads():
    return Reads()


@pytest.fixture
def put_looked_up(reads):
    conf = web.configuration(placement__max_traits_per_request=3)
    api = dataclasses.replace(routes.PLACEMENT, routes=TABLE)
    app = Application(api, Service(conf, reads, Policy(conf, api.rules), None, (api,)))
    return lambda name, body: ask(app, "PUT", f"/looked_up/{name}", JSON, body)


@pytest.mark.parametrize(
    ("name", "body", "sentence"),
    [
        ("1?bogus=1", b"{", "Badly formatted name parameter"),
        ("missing?bogus=1", b"{", "Invalid query string parameters"),
        ("missing", b"{", "No resource provider with uuid missing found"),
        ("missing", b"{}", "No resource provider with uuid missing found"),
        ("missing", b'{"name": "long"}', "No resource provider with uuid missing found"),
        ("there", b"{", "Malformed JSON"),
        ("there", b"{}", "JSON does not validate"),
        ("there", b'{"name": "long"}', "names 4 traits; the limit is 3"),
    ],
)
def test_the_path_is_checked_before_the_query_then_the_lookup_then_the_body(put_looked_up, name, body, sentence):
    assert sentence in detail(put_looked_up(name, body))


def test_the_lookup_runs_only_for_a_refused_body(put_looked_up, reads):
    """For a valid body the handler itself looks up the object, in its transaction: no extra statement is needed."""
    assert put_looked_up("missing", b'{"name": "ab"}').json == ["missing", "ab"]
    assert reads.count == 0
    put_looked_up("there", b"{}")
    assert reads.count == 1


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        (None, True),
        ("*/*", True),
        ("application/*", True),
        ("text/html,application/xhtml+xml,*/*;q=0.8", True),
        ("application/json;q=0", False),
        ("text/plain", False),
        ("text/html, image/png", False),
    ],
)
def test_a_client_may_refuse_json(accept, accepted):
    if accepted:
        assert preferred_type(accept) == "application/json"
    else:
        with pytest.raises(OnlyJSON):
            preferred_type(accept)


@pytest.mark.parametrize(
    ("accept", "preferred"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("text/event-stream, application/json;q=0.5", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
    ],
)
def test_a_client_chooses_among_the_types_of_an_endpoint(accept, preferred):
    assert preferred_type(accept, ("text/event-stream",)) == preferred


@pytest.mark.parametrize(
    ("content_type", "media"),
    [(None, None), ("", None), (";", None), ("a/b", "a/b"), (" a/b ; charset=utf-8", "a/b")],
)
def test_media_type_drops_parameters(content_type, media):
    assert media_type(content_type) == media
