"""placement-ask reports a service that refuses, is of another kind or unreachable: one sentence, and an exit code."""

from __future__ import annotations

import contextlib
import datetime
import http.server
import ipaddress
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from placement.extensions.terminal import client
from placement.extensions.terminal.address import ServiceAddress
from tests import children, closed, preloaded

ASK = [sys.executable, "-m", "placement.extensions.terminal.main"]
NOBODY = b'{"consumers": [], "next": null}'


@pytest.fixture
def environment():
    """An environment without settings of a client or a proxy, with buffered output."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "PYTHONUNBUFFERED"))}
    return {name: value for name, value in variables.items() if not name.lower().endswith("_proxy")}


@pytest.fixture
def ask(environment):
    """Return a function that lists the consumers of a service, and returns the completed process."""

    def run(url, *words, **variables):
        return preloaded.service().run([*ASK, "consumers", "--url", url, *words], environment | variables)

    return run


@contextlib.contextmanager
def answering(status, *bodies, tls=None, **headers):
    """Yield the URL of a server with these responses, and the paths and headers that it received."""
    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            received.append((self.path, dict(self.headers)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(bodies[len(received) - 1])

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            """Ignore the error of a client that does not trust the certificate and closes the connection."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}", received
        server.shutdown()


def check_failure(done, sentence):
    """Check that the command exited with 3, and printed this sentence only."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1), done
    assert done.stderr.startswith(f"placement-ask: {sentence}"), done.stderr


# --- responses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, b"<html>", "The response of {url} is not from a Placement service"),
        (200, b'{"versions": []}', "The response of {url} is not from a Placement service"),
        (200, b"[1, 2]", "The response of {url} is not from a Placement service"),
        (204, b"", "The response of {url} is not from a Placement service"),
        (200, b'{"consumers": ' + b"[" * 10**6, "The response of {url} is not from a Placement service"),
        (200, b'{"consumers": 5, "next": null}', "The response of {url} is not from a Placement service (TypeError"),
        (200, b'{"consumers": [[]], "next": null}', "The response of {url} is not from a Placement service (TypeError"),
        (200, b'{"consumers": [{}], "next": null}', "The response of {url} is not from a Placement service (KeyError"),
        (200, b'{"consumers": [], "next": 5}', "The response of {url} is not from a Placement service (AttributeError"),
        (
            200,
            b'{"consumers": [], "next": "/v1/consumers?limit=1000"}',
            "The response of {url} is not from a Placement service (",
        ),
        (500, b"{}", "500 Internal Server Error."),
        (502, b'{"errors": []}', "502 Bad Gateway."),
        (
            503,
            b'{"errors": [{"title": "Away", "detail": "In\\na \\u001b[2J while."}]}',
            "503 Away: In a \ufffd[2J while.",
        ),
        (404, b"<html>", "404 Not Found. {url} does not serve the v1 API"),
        (401, b"", "401 Unauthorized. No credentials were sent: use --token."),
        (403, b"", "403 Forbidden."),
    ],
)
def test_invalid_responses_and_errors_are_reported_in_one_sentence(ask, status, body, sentence):
    with answering(status, body) as (url, _):
        check_failure(ask(url), sentence.format(url=url))


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, b"<html>", "The response of {url}/v1/consumers?limit=1000 is not JSON."),
        (502, b"<html>", "Bad Gateway (HTTP 502)"),
    ],
)
def test_the_client_of_openstack_prints_a_sentence(openstack_command, status, body, sentence):
    with answering(status, body) as (url, _):
        done = openstack_command(f"--os-auth-type none --os-endpoint {url} resource provider consumers".split())
        assert (done.returncode, done.stderr) == (1, f"{sentence.format(url=url)}\n")


def test_missing_credentials_are_named(ask):
    with answering(401, b"", WWW_Authenticate='Basic realm="placement"') as (url, _):
        check_failure(ask(url), "401 Unauthorized. No credentials were sent: use --username.")
    with answering(401, b"") as (url, _):
        done = ask(url, "--token", "t")
        assert done.stderr == "placement-ask: 401 Unauthorized.\n"


def test_no_redirect_is_followed(ask):
    """The token would go to the host that the redirect names."""
    with answering(200, NOBODY) as (other_url, received), answering(302, b"", Location=other_url) as (url, _):
        check_failure(ask(url, "--token", "t"), f"302 Found. {url} redirects to {other_url}")
    assert received == []


def test_the_next_page_is_requested_from_the_same_service(ask):
    """The host in its link gets no request, which would contain the token."""
    page = b'{"consumers": [], "next": "http://127.0.0.1:1/v1/consumers?after=1"}'
    with answering(200, page, NOBODY) as (url, received):
        done = ask(url, "--token", "admin")
    assert (done.returncode, done.stdout) == (0, "No consumers.\n")
    assert [path for path, _ in received] == ["/v1/consumers?limit=1000", "/v1/consumers?after=1"]
    assert [headers["X-Auth-Token"] for _, headers in received] == ["admin", "admin"]


def test_events_that_do_not_continue_are_reported(environment):
    page = b'{"events": [{}], "position": "1-1"}'
    with answering(200, page, page) as (url, _):
        words = [*ASK, "events", "--json", "--after", "1-1", "--url", url]
        done = preloaded.service().run(words, environment)
    assert (done.returncode, done.stdout) == (3, "{}\n")
    assert "is not from a Placement service" in done.stderr


def test_a_response_above_the_maximum_size_is_refused(monkeypatch):
    monkeypatch.setattr(client, "MAX_BYTES", 50)
    for length, fits in ((50, True), (51, False)):
        with answering(200, NOBODY.ljust(length)) as (url, _):
            connection = client.Client(ServiceAddress(url, {}))
            if fits:
                assert connection.get("/consumers") == json.loads(NOBODY)
            else:
                with pytest.raises(client.ServiceError, match="more than 50 bytes"):
                    connection.get("/consumers")


CONSUMER = "7c1f0a52-0b5e-4a0f-8f6b-2d3e4f5a6b7c"
CLAIM = ["claim", "resources=VCPU:1", "--consumer", CONSUMER, "--project", "p", "--user", "u"]
UNKNOWN = (
    f"The claim may or may not have been made: repeat the command with --consumer {CONSUMER}, which claims once.\n"
)


@pytest.mark.parametrize(
    ("status", "options", "sentence"),
    [
        (502, [], f"502 Bad Gateway. {UNKNOWN}"),
        (502, ["--dry-run"], "502 Bad Gateway.\n"),
        (403, [], "403 Forbidden.\n"),
        (409, [], "409 Conflict.\n"),
    ],
)
def test_only_a_claim_with_an_unknown_outcome_explains_how_to_repeat_it(
    environment, openstack_command, status, options, sentence
):
    with answering(status, b"<html>", b"<html>") as (url, received):
        done = preloaded.service().run([*ASK, *CLAIM, *options, "--url", url], environment)
        by_openstack = openstack_command(
            ["--os-auth-type", "none", "--os-endpoint", url, "allocation", *CLAIM, *options]
        )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"placement-ask: {sentence}")
    assert (by_openstack.returncode, UNKNOWN in by_openstack.stderr) == (1, UNKNOWN in sentence)
    assert [path.partition("?")[0] for path, _ in received] == ["/v1/claims"] * 2


def test_a_claim_at_an_unreachable_service_explains_how_to_repeat_it(environment):
    done = preloaded.service().run([*ASK, *CLAIM, "--url", closed.URL], environment)
    assert done.stderr.endswith(f"Connection refused. {UNKNOWN}")


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("placement.v1.nothing_held", "404 Not Found: Nothing is held.\n"),
        ("placement.undefined_code", "404 Not Found: Nothing is held. {url} does not serve the v1 API"),
    ],
)
def test_a_consumer_without_claims_is_distinguished_from_a_foreign_service(environment, code, sentence):
    error = {"title": "Not Found", "detail": "Nothing is held.", "code": code}
    with answering(404, json.dumps({"errors": [error]}).encode()) as (url, _):
        done = preloaded.service().run([*ASK, "extend", CONSUMER, "1h", "--url", url], environment)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"placement-ask: {sentence.format(url=url)}")


# --- unreachable -----------------------------------------------------------------------------------------------------


def test_an_unreachable_service_is_reported(ask):
    check_failure(ask(closed.URL), f"{closed.URL} cannot be reached: Connection refused.")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "did not respond within 0.3 seconds."),
        (b"", "did not send a valid HTTP response: Remote end closed connection without response."),
        (b"SSH-2.0-server\r\n", "did not send a valid HTTP response: SSH-2.0-server"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}",
            "did not send a valid HTTP response: IncompleteRead",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            "did not send a valid HTTP response: IncompleteRead",
        ),
        *(
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}",
                "did not send a valid HTTP response: IncompleteRead",
            )
            for size in (b"40000000", b"F" * 20)
        ),
    ],
)
def test_a_missing_or_invalid_http_response_is_reported(ask, content, sentence):
    """None: the server accepts the connection, and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                if content is not None:
                    connection.sendall(content)
                    return
                connection.recv(1)  # until the client gives up

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        check_failure(ask(url, *(["--timeout", "0.3"] if content is None else [])), f"{url} {sentence}")
        thread.join()


def test_a_proxy_is_not_used_for_a_service_of_this_machine(ask):
    proxy = dict.fromkeys(("http_proxy", "HTTP_PROXY", "all_proxy"), closed.URL)
    with answering(200, NOBODY, NOBODY) as (url, received):
        assert ask(url, **proxy).returncode == 0
        assert ask(url.replace("127.0.0.1", "localhost"), **proxy).returncode == 0
    assert [path for path, _ in received] == ["/v1/consumers?limit=1000"] * 2
    with answering(200, NOBODY) as (url, received):
        assert ask("http://placement.example.org", http_proxy=url).returncode == 0
    assert [path for path, _ in received] == ["http://placement.example.org/v1/consumers?limit=1000"]


def test_an_interrupt_is_quiet(environment):
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [*ASK, "overview", "--url", f"http://127.0.0.1:{server.getsockname()[1]}"]
        with subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                process.send_signal(signal.SIGINT)
                assert (process.wait(children.PATIENCE), process.stdout.read(), process.stderr.read()) == (130, "", "")


def test_a_closed_pipe_is_not_a_failure(environment):
    reading, writing = os.pipe()
    os.close(reading)
    with answering(200, NOBODY) as (url, _), open(writing, "w") as pipe:
        words = [*ASK, "consumers", "--url", url]
        done = subprocess.run(words, env=environment, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_full_disk_is_reported(environment):
    with answering(200, NOBODY) as (url, _), open("/dev/full", "w") as full:
        words = [*ASK, "consumers", "--url", url]
        done = subprocess.run(words, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "placement-ask: The output cannot be written: No space left on device.\n"


def test_characters_that_the_terminal_cannot_show_are_replaced(ask):
    body = (
        '{"providers": [{"uuid": "u", "name": "r\u00e4ck", "parent": null, "traits": [], "inventories": {}}]}'.encode()
    )
    with answering(200, body) as (url, _):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        words = [*ASK, "overview", "--url", url]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, ["r?ck"], "")


# --- TLS -------------------------------------------------------------------------------------------------------------


def issue(subject, issuer=None, **extensions):
    """Return a key, and a certificate signed by the issuer, or self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
    by_key, by_name = (key, name) if issuer is None else (issuer[0], issuer[1].subject)
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        by_name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(1)
    )
    builder = builder.add_extension(x509.BasicConstraints(issuer is None, None), critical=True)
    for extension in extensions.values():
        builder = builder.add_extension(extension, critical=False)
    return key, builder.sign(by_key, hashes.SHA256())


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """The file of a private certificate authority, and a context with its certificate for a server at 127.0.0.1."""
    directory = tmp_path_factory.mktemp("tls")
    authority = issue("authority")
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    key, certificate = issue("server", authority, names=names)
    pem = serialization.Encoding.PEM
    cacert, chain, secret = directory / "ca.pem", directory / "server.pem", directory / "server.key"
    cacert.write_bytes(authority[1].public_bytes(pem))
    chain.write_bytes(certificate.public_bytes(pem))
    unencrypted = serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, unencrypted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, secret)
    return str(cacert), context


def test_a_private_authority_is_trusted_if_it_is_named(ask, private):
    cacert, context = private
    with answering(200, NOBODY, NOBODY, tls=context) as (url, received):
        assert ask(url, "--cacert", cacert).returncode == 0
        assert ask(url, OS_CACERT=cacert).returncode == 0
        check_failure(ask(url), f"The certificate of {url} is not trusted: ")
    assert len(received) == 2


def test_a_certificate_for_another_host_is_not_trusted(ask, private):
    cacert, context = private
    with answering(200, NOBODY, NOBODY, tls=context) as (url, received):
        url = url.replace("127.0.0.1", "localhost")
        check_failure(ask(url, "--cacert", cacert), f"The certificate of {url} is not trusted: Hostname mismatch")
        assert received == []
        assert ask(url, "--insecure").returncode == 0


def test_insecure_trusts_any_certificate(ask, private):
    _, context = private
    with answering(200, NOBODY, tls=context) as (url, _):
        assert ask(url, "--insecure").returncode == 0


def test_a_service_without_tls_is_reported(ask):
    with answering(200) as (url, _):
        url = url.replace("http://", "https://")
        check_failure(ask(url, "--timeout", "300"), f"{url} cannot be reached over TLS: ")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read_are_named(ask, tmp_path, content):
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    done = ask(f"https://{closed.ADDRESS}", "--cacert", str(tmp_path / "ca.pem"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"placement-ask: The certificates in {tmp_path}/ca.pem cannot be used: ")
