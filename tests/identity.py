"""A real Keystone for the tests: SQLite, fernet tokens, a free port of 127.0.0.1.

Run as a program with the directory of a Keystone, it serves that; it creates the database first if it is missing.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import secrets
import signal
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import children
from tests.servers import Missing

PASSWORD = "not-a-secret-of-anybody"
REGION = "here"

_CONFIGURATION = """\
[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///{directory}/keystone.sqlite
[fernet_tokens]
key_repository = {directory}/keys
[fernet_receipts]
key_repository = {directory}/keys
[identity]
password_hash_rounds = 4
# A token takes 60 queries.  Keystone is one process here, so what it keeps in memory is never stale.
[cache]
enabled = true
backend = dogpile.cache.memory
"""


class Refused(Exception):
    """Keystone refused a request; the text has the reason."""


class Keystone:
    """A running Keystone: `url` is the URL of its v3 API, and all its users have the same `PASSWORD`.

    It contains the user "admin" with all rights, the projects "admin" and "service", and the user "placement", with
    which the service validates tokens.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = children.free_port()
        self.url = f"http://127.0.0.1:{self.port}/v3"
        self._admin = ""

    @staticmethod
    def check_installed() -> None:
        """Raise Missing if Keystone cannot be started here."""
        if importlib.util.find_spec("keystone") is None:
            raise Missing("keystone is not installed: pip install keystone")

    def start(self) -> None:
        """Start Keystone, with a new database the first time; return once it responds."""
        fresh = not self.directory.exists()
        if fresh:
            self._initialise()
        argv = [sys.executable, "-W", "ignore", __file__, str(self.directory), str(self.port)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
        environment["PYTHONPATH"] = str(Path(__file__).parent.parent)
        self._child = children.Child(argv, self.directory / "log", signal.SIGTERM, env=environment)
        self._child.wait_until(self._answers)
        if fresh:
            self.create_project("service")
            self.create_user("placement", {"service": ["service"]})

    def stop(self) -> None:
        """Shut Keystone down; `start` starts it again on the same port, with the same data."""
        self._child.stop()

    # --- projects, users and services ---

    def create_project(self, name: str) -> None:
        """Create a project."""
        self._administer("POST", "/projects", {"project": {"name": name, "domain_id": "default"}})

    def project_id(self, name: str) -> str:
        """Return the id of the project."""
        return self._id("projects", name)

    def create_user(self, name: str, roles: Mapping[str, list[str]]) -> None:
        """Create a user with roles by project, or in "system" or "domain"."""
        body = {"user": {"name": name, "domain_id": "default", "password": PASSWORD}}
        user_id = str(self._administer("POST", "/users", body)["user"]["id"])
        for place, names in roles.items():
            for role in names:
                self._administer("PUT", f"{self._place(place)}/users/{user_id}/roles/{self._id('roles', role)}")

    def create_service(self, kind: str, url: str) -> None:
        """Create a service in the catalog."""
        service_id = self._administer("POST", "/services", {"service": {"type": kind, "name": kind}})["service"]["id"]
        for interface in ("internal", "public"):
            endpoint = {"service_id": service_id, "interface": interface, "url": url, "region_id": REGION}
            self._administer("POST", "/endpoints", {"endpoint": endpoint})

    def restrict(self, user: str, project: str, rules: list[dict[str, str]]) -> str:
        """Return a token of an application credential of the user, valid for these requests only."""
        token = self.token(user, project)
        user_id = self._id("users", user)
        body = {"application_credential": {"name": secrets.token_hex(4), "access_rules": rules}}
        _, document = self.ask("POST", f"/users/{user_id}/application_credentials", body, token)
        credential = {
            "id": document["application_credential"]["id"],
            "secret": document["application_credential"]["secret"],
        }
        return self._issue({"methods": ["application_credential"], "application_credential": credential})

    # --- tokens ---

    def token(self, user: str, scope: str | None = None) -> str:
        """Return a new token of the user for a project, for "system" or "domain", or without a scope."""
        user_identity = {"name": user, "domain": {"id": "default"}, "password": PASSWORD}
        identity = {"methods": ["password"], "password": {"user": user_identity}}
        scopes: dict[str | None, Any] = {
            None: "unscoped",
            "system": {"system": {"all": True}},
            "domain": {"domain": {"id": "default"}},
        }
        return self._issue(identity, scopes.get(scope, {"project": {"name": scope, "domain": {"id": "default"}}}))

    def revoke(self, token: str) -> None:
        """Revoke the token."""
        self.ask("DELETE", "/auth/tokens", token=self._admin_token, subject=token)

    def with_expiry(self, token: str, seconds: float) -> str:
        """Return the token with its expiry changed to ``seconds`` from now, which may be negative."""
        import msgpack
        from cryptography.fernet import Fernet

        primary = max((self.directory / "keys").iterdir(), key=lambda path: int(path.name))
        fernet = Fernet(primary.read_bytes())
        padded = token + "=" * (-len(token) % 4)
        payload = msgpack.unpackb(fernet.decrypt(padded.encode()))
        # Its expiry is the only number of the payload that is not an integer.
        [place] = [index for index, part in enumerate(payload) if isinstance(part, float)]
        payload[place] = float(int(time.time() + seconds))
        issued = int(time.time() + min(seconds, 0)) - 60
        return fernet.encrypt_at_time(msgpack.packb(payload), issued).decode().rstrip("=")

    # --- requests ---

    def ask(
        self, method: str, path: str, body: Any = None, token: str = "", subject: str = ""
    ) -> tuple[http.client.HTTPResponse, Any]:
        """Return the response and its body; raise Refused for an error."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=children.PATIENCE)
        headers = {"Content-Type": "application/json", "X-Auth-Token": token, "X-Subject-Token": subject}
        with contextlib.closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(method, "/v3" + path, content, {name: value for name, value in headers.items() if value})
            answer = connection.getresponse()
            text = answer.read().decode()
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {text}")
        return answer, json.loads(text) if text else None

    @property
    def _admin_token(self) -> str:
        self._admin = self._admin or self.token("admin", "admin")
        return self._admin

    def _administer(self, method: str, path: str, body: Any = None) -> Any:
        return self.ask(method, path, body, self._admin_token)[1]

    def _issue(self, identity: dict[str, Any], scope: Any = None) -> str:
        body = {"auth": {"identity": identity} | ({"scope": scope} if scope else {})}
        answer, _ = self.ask("POST", "/auth/tokens", body)
        return str(answer.headers["X-Subject-Token"])

    def _id(self, nouns: str, name: str) -> str:
        [record] = self._administer("GET", f"/{nouns}?name={urllib.parse.quote(name)}")[nouns]
        return str(record["id"])

    def _place(self, name: str) -> str:
        if name in ("system", "domain"):
            return {"system": "/system", "domain": "/domains/default"}[name]
        return f"/projects/{self.project_id(name)}"

    def _answers(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, Refused):
            return self.ask("GET", "")[0].status == 200
        return False

    def _initialise(self) -> None:
        from cryptography.fernet import Fernet

        keys = self.directory / "keys"
        keys.mkdir(parents=True, mode=0o700)
        for name in ("0", "1"):
            (keys / name).write_bytes(Fernet.generate_key())
            (keys / name).chmod(0o600)
        (self.directory / "keystone.conf").write_text(_CONFIGURATION.format(directory=self.directory))


@contextlib.contextmanager
def keystone() -> Iterator[Keystone]:
    """Provide a Keystone exclusive to the caller; raise Missing if it is not installed."""
    Keystone.check_installed()
    server = Keystone(children.run_directory() / f"keystone-{secrets.token_hex(4)}")
    server.start()
    try:
        yield server
    finally:
        server.stop()


def serve(directory: Path, port: int) -> None:
    """Serve the Keystone of the directory until a signal ends it."""
    import waitress
    from keystone.server import wsgi

    url = f"http://127.0.0.1:{port}/v3"
    configuration = str(directory / "keystone.conf")
    if not (directory / "keystone.sqlite").exists():
        _manage(configuration, "db_sync")
        places = [f"--bootstrap-{interface}-url={url}" for interface in ("internal", "public")]
        _manage(
            configuration, "bootstrap", f"--bootstrap-password={PASSWORD}", f"--bootstrap-region-id={REGION}", *places
        )
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = configuration
    sys.argv[1:] = []  # Keystone would parse the arguments
    waitress.serve(wsgi.initialize_public_application(), host="127.0.0.1", port=port, threads=4)


def _manage(configuration: str, *words: str) -> None:
    """Run a command of keystone-manage in a separate process, which need not import everything again."""
    from keystone.cmd import cli

    child = os.fork()
    if child == 0:
        code = 1
        try:
            cli.main(["keystone-manage", "--config-file", configuration, *words])
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        raise SystemExit(f"keystone-manage {words[0]} failed")


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
