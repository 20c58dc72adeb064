"""Every web server answers queries and paths of any length completely, or refuses them."""

from __future__ import annotations

import contextlib
import json
import uuid

import pytest

from tests import raw_requests, running, servers, web_servers
from tests.load.storm import Storm
from tests.run_length import LONG

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("web servers"),
]
SERVERS = ("uwsgi", "mod_wsgi", "mod_proxy_uwsgi", "haproxy", "embedded")
#: The longest query that each sample forwards: [api]max_query_length.
LIMIT = 28 * 1024
LENGTHS = [1, 100, 4000, 8150, 8192, 16384, 20000, LIMIT - 1, LIMIT, LIMIT + 1, 29000, 30000, 32500, 32600, 32700]
LENGTHS += [32715, 32716, 32717, 32768, 40000, 50000, 60000, 65000, 65300, 65500, 65535, 65536, 66000, 70000]
#: Lengths of a query, in bytes, for which uWSGI closes the connection without a response: the query leaves no space for
#: the headers, or the request exceeds the buffer.  Between these, uWSGI omits the query, and the service returns 414.
DROPPED_LENGTHS = frozenset((*range(32500, 32716), *range(65001, 70001)))
NAMES = ["n" * length for length in range(1, 40)]
AGGREGATE = str(uuid.UUID(int=1))
HEADERS = b"HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: admin\r\n"
HEADERS += b"OpenStack-API-Version: placement 1.39\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def service_under(backend):
    """Return a function that returns the service under a web server, started on first use, with a provider per name."""
    url, services = backend.create_database(), {}
    with contextlib.ExitStack() as stack:

        def start(name):
            if name not in services:
                if name == "embedded":
                    service_context = running.embedded(url)
                elif name in ("mod_proxy_uwsgi", "haproxy"):
                    service_context = getattr(web_servers, name)(start("uwsgi"))
                else:
                    service_context = getattr(web_servers, name)(url, processes=1)
                services[name] = stack.enter_context(service_context)
            return services[name]

        with running.embedded(url) as service:
            storm = Storm(service.url)
            for name in NAMES:
                assert storm.ask("POST", "/resource_providers", {"name": name}).status == 200
        yield start
    backend.drop_database(url)


def question(length):
    """Return a query of ``length`` bytes, and the name of the only provider that it matches."""
    for name in NAMES:
        aggregates, remainder = divmod(length - len(f"member_of=!in:{AGGREGATE}&name={name}"), len(AGGREGATE) + 1)
        if aggregates >= 0 and not remainder:
            return f"member_of=!in:{','.join([AGGREGATE] * (aggregates + 1))}&name={name}", name
    return "n" * length, None  # not a parameter


def get(service, target):
    return raw_requests.send(service.port, f"GET {service.prefix}{target} ".encode() + HEADERS)


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_query_is_answered_completely_or_refused(service, request):
    drops = request.node.callspec.params["service"] == "uwsgi"
    for length in [*LENGTHS, *range(1, 70000, 97)] if LONG else LENGTHS:
        query, name = question(length)
        assert len(query) == length
        reply = get(service, f"/resource_providers?{query}")
        if length > LIMIT:
            assert reply.status == 414 or (drops and length in DROPPED_LENGTHS and reply.status == 0), (length, reply)
        elif name is None:
            assert reply.status == 400, (length, reply)
        else:
            assert reply.status == 200, (length, reply)
            assert [provider["name"] for provider in json.loads(reply.body)["resource_providers"]] == [name], length


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_a_path_is_not_found_or_refused(service, request):
    drops = request.node.callspec.params["service"] == "uwsgi"
    for length in LENGTHS:
        reply = get(service, f"/traits/{'C' * length}")
        refused = reply.status in (404, 414) or (drops and length > 32500 and reply.status == 0)
        assert refused, (length, reply)


@pytest.mark.parametrize("service", SERVERS, indirect=True)
def test_the_longest_query_leaves_room_for_headers(service):
    query, name = question(LIMIT)
    long_headers = "".join(f"X-Long-{number}: {'x' * 1000}\r\n" for number in range(6))
    request = f"GET {service.prefix}/resource_providers?{query} HTTP/1.1\r\n{long_headers}".encode()
    reply = raw_requests.send(service.port, request + HEADERS.partition(b"\r\n")[2])
    assert [provider["name"] for provider in json.loads(reply.body)["resource_providers"]] == [name]
