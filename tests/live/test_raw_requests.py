"""Malformed HTTP requests at every web server: no request forges a log line or a header."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections import Counter

import pytest

from tests import children, raw_requests, running, servers, web_servers
from tests.run_length import LONG

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("web servers"),
]
SERVERS = ("uwsgi", "mod_wsgi", "mod_proxy_uwsgi", "embedded")
#: The beginning of each line of the log, and the line of an answered request, which may lack a method or a path.
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ [A-Z]+ [\w.]+ \[[^]]*\] .*")
ANSWERED = re.compile(r'placement\.middleware\.request_log \[.*\] \S+ "[!#-~]* [!#-~]*" status: (\d{3}) len: (\d+|-) ')
FORGED = b'2026-01-01 00:00:00.000 1 INFO placement.middleware.request_log [-] 1.1.1.1 "GET /" status: 200 len: 0 '
HOSTILE = [
    b"GET /resource_providers?name=a\n" + FORGED.replace(b" ", b"+") + b" HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b"GET /resource_providers?name=a\r" + FORGED.replace(b" ", b"+") + b" HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b"GET /resource_providers?name=\x1b[2J\x9b2J HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b"GET /resource_providers?name=%%0a%%1b HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b'GET /resource_providers?name=x"status:+200 HTTP/1.1\r\nHost: localhost\r\n%s\r\n',
    b"GET /\x9b2J%%0a%%1b[2J HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b"GE\nT\x1b /resource_providers HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b'GET" /resource_providers HTTP/1.1\r\nHost: localhost\r\n%s\r\n',
    b"G\xc3\xa9T / HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-User-Id: a\n" + FORGED + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-User-Id: \x1b[2J\x9b\r\nX-Project-Id: b\rc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-User-Id: mallory\r\n\r\n",
    b"GET /traits HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin\n" + FORGED + b"\r\n\r\n",
    b"GET /traits HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: \x1b[2J\x9b2J\r\nX-Roles: admin\r\n\r\n",
    b"GET /traits HTTP/1.1\r\nHost: localhost\r\nX-Openstack-Request-Id: req-\n\r\n%s\r\n",
    b"GET /traits HTTP/1.1\r\nHost: localhost\r\nOpenStack-API-Version: placement 1.\n39\r\n%s\r\n",
    b"GET /traits HTTP/1.1\r\nHost: localhost\r\nAccept: text/\nplain\x1b\r\n%s\r\n",
    b"PUT /traits/CUSTOM_A HTTP/1.1\r\nHost: localhost\nSet-Cookie: e=1\r\n%s\r\n",
    b"PUT /traits/CUSTOM_B HTTP/1.1\r\nHost: localhost\rSet-Cookie: e=1\r\n%s\r\n",
    b"PUT /traits/CUSTOM_C HTTP/1.1\r\nHost: localhost\x1b[2J\x9b\r\n%s\r\n",
    b'PUT /traits/CUSTOM_D HTTP/1.1\r\nHost: a"><script>\r\n%s\r\n',
    b"PUT /traits/CUSTOM_E HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: b\nSet-Cookie: e=1\r\n%s\r\n",
    b"PUT /traits/CUSTOM_F HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: b\n: c\r\n%s\r\n",
    b'PUT /traits/CUSTOM_G HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: b\x1b"\r\n%s\r\n',
]
ADMIN = b"X-Auth-Token: admin\r\nOpenStack-API-Version: placement 1.39\r\nConnection: close\r\n"


@pytest.fixture(scope="module")
def service_under(backend):
    """Return a function that starts the service under a web server on first use, and returns it with its log file."""
    url, services = backend.create_database(), {}
    with contextlib.ExitStack() as stack:

        def start(name):
            if name not in services:
                if name == "mod_proxy_uwsgi":
                    uwsgi, log = start("uwsgi")
                    service = stack.enter_context(web_servers.mod_proxy_uwsgi(uwsgi))
                else:
                    log = children.run_directory() / f"log-of-{name}"
                    options = {
                        "DEFAULT": {"log_file": log, "use_stderr": False},
                        "oslo_middleware": {"enable_proxy_headers_parsing": True},
                    }
                    if name == "embedded":
                        service_context = running.embedded(url, options)
                    else:
                        service_context = getattr(web_servers, name)(url, options, processes=1)
                    service = stack.enter_context(service_context)
                services[name] = service, log
            return services[name]

        yield start
    backend.drop_database(url)


def with_prefix(service, request):
    """Return the request with the prefix of the service."""
    method, _, target = request.partition(b" ")
    return b"%s %s%s" % (method, service.prefix.encode(), target)


def count_statuses(log, start):
    """Count the statuses in the lines of the log from an offset on."""
    lines = log.read_bytes()[start:].decode(errors="replace").splitlines()
    return Counter(match[1] for match in map(ANSWERED.search, lines) if match)


def status_of(document):
    """Return the status of a response according to its document."""
    return document["errors"][0]["status"] if "errors" in document else 200


def check(service, log, requests):
    """Return the responses; raise unless the log has one line for each response of the service, and no forged line."""
    before = len(log.read_bytes())
    replies = [raw_requests.send(service.port, with_prefix(service, request)) for request in requests]
    responses_of_service = [reply for reply in replies if "x-openstack-request-id" in reply.names]
    # The response to a request without a version is a document without a head, as in HTTP/0.9.
    headless = [reply for reply in replies if not reply.status and reply.body.startswith(b"{")]
    expected = Counter(str(reply.status) for reply in responses_of_service)
    expected += Counter(str(status_of(json.loads(reply.body))) for reply in headless)
    children.until(lambda: expected <= count_statuses(log, before))  # the response may arrive before the line
    content = log.read_bytes()[before:]
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", content), content
    lines = content.decode().splitlines()
    assert all(map(LINE.fullmatch, lines)), [line for line in lines if not LINE.fullmatch(line)]
    unexplained = count_statuses(log, before) - expected
    # Other lines belong to connections closed without a response.
    hung_up = [reply for reply in replies if not reply.status and reply not in headless]
    assert {*unexplained} <= {"400"}
    assert unexplained.total() <= len(hung_up)
    assert {reply.body[:9] for reply in hung_up} <= {b"", b"<!DOCTYPE"}  # Apache's response to what may be HTTP/0.9
    # The web server has a log, too.
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|^2026-01-01", service.log.read_bytes(), re.MULTILINE)
    assert not any("set-cookie" in reply.names for reply in replies)
    return replies


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_client_forges_no_line_and_no_header(service):
    service, log = service
    replies = check(service, log, [request.replace(b"%s", ADMIN).replace(b"%%", b"%") for request in HOSTILE])
    assert {reply.status for reply in replies} <= {0, 200, 201, 204, 400, 401, 403, 404, 405, 501}
    places = [reply.header("location") for reply in replies if "location" in reply.names]
    assert all(re.fullmatch(r"https?://[\w.:-]+(/placement)?/traits/CUSTOM_[A-Z]", place) for place in places), places
    assert "mallory" not in log.read_text()


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_no_noise_forges_a_line_or_a_header(service):
    service, log = service
    chance = random.Random(service.port if LONG else 8)
    requests = [mutate(chance, chance.choice(HOSTILE).replace(b"%s", ADMIN)) for _ in range(5000 if LONG else 150)]
    replies = check(service, log, requests)
    assert not [reply for reply in replies if reply.status >= 500 and reply.status not in (501, 505)]


def mutate(chance, request):
    """Return the request with some bytes changed, added or removed, except the end of its head."""
    head = bytearray(request.removesuffix(b"\r\n\r\n"))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(head))
        noise = bytes([chance.choice((chance.randrange(256), 10, 13, 27, 0, 9, 32, 34, 58))])
        head[at : at + chance.randint(0, 2)] = noise * chance.randint(0, 3)
    return bytes(head) + b"\r\n\r\n"
