"""Requests: parameters, attributes, and the URLs at which an application is mounted."""

from __future__ import annotations

import pytest
import webob

from placement import errors
from placement import microversion as mv
from placement.http.endpoint import endpoint
from placement.http.environ import REQUEST_ID, VERSION
from placement.http.request import Request
from placement.http.response import Reply, ok
from placement.schemas import provider as schema
from tests import web


def request(path="/", **environ):
    blank = webob.Request.blank(path)
    blank.environ.update({VERSION: mv.LATEST, REQUEST_ID: "req-1"} | environ)
    return Request(blank.environ)


def parameters(path="/", **environ):
    return schema.LIST.validate(request(path, **environ).pairs(), mv.LATEST)


def test_a_request_is_a_webob_request():
    req = request("/a/b?c=d", HTTP_ACCEPT="text/html")
    assert isinstance(req, webob.Request)
    assert (req.method, req.path_qs, req.GET["c"]) == ("GET", "/a/b?c=d", "d")
    assert req.accept.acceptable_offers(["text/plain", "text/html"]) == [("text/html", 1.0)]


@pytest.mark.parametrize(("extended_class", "base_class"), [(Request, webob.Request), (Reply, webob.Response)])
def test_no_attribute_of_webob_is_redefined(extended_class, base_class):
    assert not [name for name in vars(extended_class) if not name.startswith("__") and hasattr(base_class, name)]
    assert "GET /a?b=c" in str(Request(webob.Request.blank("/a?b=c").environ))


def test_attributes_are_not_stored_in_the_environ():
    """A layer may keep the environ after the request, and a copy of it would share the attributes."""
    req = request()
    req.service, req.document = "service", {"a": 1}
    assert req.service == "service"
    assert req.document == {"a": 1}
    assert request().document is None
    assert not any(name.startswith("webob") for name in req.environ)


def test_parameters_are_decoded():
    values = parameters("/?name=%e2%98%83+x&resources=VCPU:1&required=A&required=B")
    assert values.get("name") == "\N{SNOWMAN} x"
    assert values.all("required") == ["A", "B"]
    assert "member_of" not in values
    assert values.get("member_of") is None


def test_raw_bytes_in_a_query_are_read_as_utf_8():
    values = parameters(QUERY_STRING="name=" + "\N{SNOWMAN}".encode().decode("latin-1"))
    assert values.get("name") == "\N{SNOWMAN}"


@pytest.mark.parametrize("query", ["name=%88", "%88=1", "name=\xff", "name=%00", "%00=1", "bogus=1", "name=a&bogus="])
def test_a_query_that_is_undecodable_or_unknown_is_refused(query):
    with pytest.raises(errors.InvalidQuery, match=r"^Invalid query string parameters: ."):
        parameters(QUERY_STRING=query)


def test_an_unchecked_parameter_is_read_without_validation():
    assert request("/?bogus=1&project_id=a&project_id=b").unchecked_parameter("project_id") == "b"
    assert request("/").unchecked_parameter("project_id") is None
    assert request("/?project_id=%88").unchecked_parameter("project_id") is None


# --- URLs ---


@endpoint()
def place(req):
    return ok([req.absolute_url("/a/b"), req.mount_path])


@pytest.mark.parametrize(
    ("environ", "url", "mount_path"),
    [
        ({"HTTP_HOST": "h:8"}, "http://h:8/a/b", ""),
        ({"HTTP_HOST": "h", "wsgi.url_scheme": "https"}, "https://h/a/b", ""),
        ({"HTTP_HOST": "", "SERVER_NAME": "h", "SERVER_PORT": "8"}, "http://h:8/a/b", ""),
        ({"HTTP_HOST": "h", "SCRIPT_NAME": "/placement"}, "http://h/placement/a/b", "/placement"),
        ({"HTTP_HOST": "h", "SCRIPT_NAME": "/a b\xe2\x98\x83"}, "http://h/a%20b%E2%98%83/a/b", "/a%20b%E2%98%83"),
    ],
)
def test_urls_are_absolute_and_links_prefixed(environ, url, mount_path):
    app = web.application({"/": {"GET": place}})
    assert web.ask(app, "GET", "/", environ=web.inner_environ() | environ).json == [url, mount_path]


@pytest.mark.parametrize(
    ("host", "repeated"), [("[::1]:8", True), ("h/a", False), ("h:b", False), ("u@h", False), ("h\x80", False)]
)
def test_a_host_header_is_repeated_only_if_it_is_a_host(host, repeated):
    url = request(HTTP_HOST=host, SERVER_NAME="own", SERVER_PORT="8").absolute_url("/a")
    assert url == (f"http://{host}/a" if repeated else "http://own:8/a")


def test_a_name_outside_ascii_is_quoted_in_a_url():
    assert request(HTTP_HOST="h").absolute_url("/traits/\N{SNOWMAN}") == "http://h/traits/%E2%98%83"
