"""Slow clients without a token do not affect others behind a proxy."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from tests import children, raw_requests, servers, web_servers

pytestmark = [
    # Web servers do not depend on the kind of database.
    pytest.mark.parametrize("backend", [servers.SQLite.kind], indirect=True, scope="session"),
    pytest.mark.xdist_group("web servers"),
]
#: Far more than the threads of all workers.
CLIENTS = 24
HEAD = b"GET /placement/ HTTP/1.1\r\nHost: a\r\n"
BODY = b"POST /placement/resource_providers HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
BODY += b"Content-Length: 60000\r\n"
TOKEN = b"X-Auth-Token: admin\r\n"


@pytest.fixture(scope="module")
def uwsgi(backend):
    url = backend.create_database()
    with web_servers.uwsgi(url, processes=1) as service:
        yield service
    backend.drop_database(url)


@pytest.fixture(params=["haproxy", "mod_proxy_uwsgi"])
def proxy(uwsgi, request):
    with getattr(web_servers, request.param)(uwsgi) as service:
        yield service


@contextlib.contextmanager
def dripping(port, begin, drop):
    """Run clients that send the beginning of a request, and then a byte every half second, until the block ends."""
    done = threading.Event()
    with contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), children.PATIENCE))
            for _ in range(CLIENTS)
        ]
        for client in clients:
            client.sendall(begin)

        def drip():
            while not done.wait(0.5):
                for client in clients:
                    with contextlib.suppress(OSError):
                        client.sendall(drop)

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    ("begin", "drop"),
    [(HEAD + b"X-Long: ", b"x"), (BODY + b"\r\n", b" "), (BODY + TOKEN + b"\r\n", b" ")],
    ids=["head", "body", "body of a client with a token"],
)
def test_slow_clients_do_not_delay_other_clients(proxy, begin, drop, request):
    if "haproxy" in request.node.name:
        begin = begin.replace(b"/placement/", b"/", 1)
    elif TOKEN in begin:
        pytest.skip("Apache forwards a body as it arrives: it protects only from clients without a token")
    fast_request = f"GET {proxy.prefix}/resource_providers HTTP/1.1\r\n".encode()
    fast_request += b"Host: a\r\nX-Auth-Token: admin\r\nConnection: close\r\n\r\n"
    with dripping(proxy.port, begin, drop):
        # Without the proxy each request waits until the slow clients give up, which they never do.
        assert [raw_requests.send(proxy.port, fast_request).status for _ in range(5)] == [200] * 5
