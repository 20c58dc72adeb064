"""The clients, which perform the steps of operations, with threads or with asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from importlib import metadata
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from placement_client.auth import Basic, Keystone
from placement_client.errors import NoReply
from placement_client.lease import Lease, lease
from placement_client.operations import EventCursor, Operations
from placement_client.records import Event
from placement_client.steps import Call, Reply, Steps

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound="_Service[Any]")
Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)

_AGENT = f"placement-client/{metadata.version('placement-client')}"
#: Maximum wait for a connection, in seconds.
_CONNECT_TIMEOUT = 10.0
#: No limit of connections, which could delay the extension of a lease until a request for events ends.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


class _Service(Generic[Http]):
    """The base of both clients: URL, credentials, timeouts and operations."""

    def __init__(self, url: str | None, auth: httpx.Auth | None, patience: float, timeout: float, http: Http) -> None:
        if url is None and not isinstance(auth, Keystone):
            raise TypeError("the URL of the service is missing: only Keystone can find it in a catalog")
        if url is not None and (parsed := httpx.URL(url)).userinfo:
            # Keep the password out of exceptions and the log of httpx.
            auth = auth or Basic(parsed.username, parsed.password)
            url = str(parsed.copy_with(userinfo=b""))
        self._url, self._auth, self._timeout = url, auth, timeout
        self._http: Http = http
        self._operations = Operations(patience)

    def _endpoint(self) -> str:
        """Return the URL of the service; this may send a request to the Identity service."""
        if self._url is None:
            assert isinstance(self._auth, Keystone)
            self._url = self._auth.endpoint()
        return self._url

    def _request(self, call: Call) -> httpx.Request:
        """Return the httpx request for a call."""
        timeout = call.timeout or self._timeout
        request: httpx.Request = self._http.build_request(
            call.method,
            self._endpoint().rstrip("/") + call.path,
            content=call.content,
            headers={**call.headers, "User-Agent": _AGENT},
            timeout=httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT)),
        )
        return request


def _method(
    operation: Callable[Concatenate[Operations, P], S], perform: Callable[[C, S], R]
) -> Callable[Concatenate[C, P], R]:
    """Return a method that performs an operation."""

    @functools.wraps(operation)
    def method(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return perform(self, operation(self._operations, *args, **kwargs))

    return method


@contextlib.contextmanager
def _translate_errors(call: Call) -> Iterator[None]:
    """Raise NoReply if httpx receives no response."""
    try:
        yield
    except httpx.UnsupportedProtocol:  # a wrong URL
        raise
    except asyncio.TimeoutError as error:
        raise NoReply(f"no response to {call.method} {call.path} in time ({call.request_id})") from error
    except httpx.RequestError as error:
        reason = str(error) or type(error).__name__
        raise NoReply(f"no response to {call.method} {error.request.url}: {reason} ({call.request_id})") from error


def _reply(response: httpx.Response, sent: float) -> Reply:
    return Reply(response.status_code, response.headers, response.content, sent)


class Events:
    """An endless iterator over the events after a position.

    Attributes:
        position: The position to continue from: all matching events before it have been returned.
    """

    def __init__(self, cursor: EventCursor, run: Callable[[Steps[Event]], Event]) -> None:
        self._cursor, self._run = cursor, run

    @property
    def position(self) -> str | None:
        return self._cursor.position

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Event:
        return self._run(self._cursor.next())


class AsyncEvents:
    """An endless asynchronous iterator over the events after a position, like ``Events``."""

    def __init__(self, cursor: EventCursor, run: Callable[[Steps[Event]], Coroutine[Any, Any, Event]]) -> None:
        self._cursor, self._run = cursor, run

    @property
    def position(self) -> str | None:
        return self._cursor.position

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Event:
        return await self._run(self._cursor.next())


class Client(_Service[httpx.Client]):
    """A client of one service.

    Threads can share it.  After a fork, create a new client in the child: it inherits the connections of its parent,
    and each process could read responses to the other's requests.

    Args:
        url: The URL of the service, including its prefix; None to look it up in the catalog of a ``Keystone``.
        auth: Credentials: ``Token``, ``Basic``, ``Keystone``, or any other ``httpx.Auth``; None for the credentials of
            ``http``, if any.
        patience: Seconds for which to retry a request without a response, or with 5xx or 429.  Unless it is longer
            than ``timeout``, a request whose response is lost is not retried.
        timeout: Seconds to wait for each part of a response, and for a connection, which may take 10 at most.
            ``AsyncClient`` limits the whole attempt to this time.
        http: An httpx client with other settings, such as ``verify`` and ``proxy``, which the caller closes.  Its limit
            of connections, 100 by default, also applies to the extensions of leases.
    """

    def __init__(
        self,
        url: str | None = None,
        auth: httpx.Auth | None = None,
        *,
        patience: float = 180.0,
        timeout: float = 60.0,
        http: httpx.Client | None = None,
    ) -> None:
        super().__init__(url, auth, patience, timeout, http or httpx.Client(limits=_LIMITS))
        self._owns_http = http is None

    def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, operation: Steps[T], pause: Callable[[float], object] = time.sleep) -> T:
        """Perform the steps of an operation, and return its result."""
        try:
            step = next(operation)
            while True:
                try:
                    reply: Any = self._send(step) if isinstance(step, Call) else pause(step.seconds)
                except Exception as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    def _send(self, call: Call) -> Reply:
        sent = time.monotonic()
        with _translate_errors(call):
            return _reply(self._http.send(self._request(call), auth=self._auth or httpx.USE_CLIENT_DEFAULT), sent)

    @contextlib.contextmanager
    def _keep(self, lease: Lease) -> Iterator[Lease]:
        """Renew a lease in one thread and watch its expiry in another while a block runs."""
        ended = threading.Event()
        try:
            self._run(lease.begin())
            for steps in (lease.renew(), lease.watch()):
                threading.Thread(target=self._run, args=(steps, ended.wait), name="lease", daemon=True).start()
            yield lease
        finally:
            lease.close()
            ended.set()  # without join: a response may take long, and has no effect
            self._run(lease.end())
        lease.check()

    def _follow(self, cursor: EventCursor) -> Events:
        return Events(cursor, self._run)

    request = _method(Operations.request, _run)
    claim = _method(Operations.claim, _run)
    claims = _method(Operations.claims, _run)
    lease = _method(lease, _keep)
    take = _method(Operations.take, _run)
    show = _method(Operations.show, _run)
    extend = _method(Operations.extend, _run)
    release = _method(Operations.release, _run)
    candidates = _method(Operations.candidates, _run)
    capacity = _method(Operations.capacity, _run)
    explain = _method(Operations.explain, _run)
    consumers = _method(Operations.consumers, _run)
    position = _method(Operations.position, _run)
    follow = _method(Operations.follow, _follow)


class AsyncClient(_Service[httpx.AsyncClient]):
    """A client of one service for asyncio, with the same arguments as ``Client``."""

    def __init__(
        self,
        url: str | None = None,
        auth: httpx.Auth | None = None,
        *,
        patience: float = 180.0,
        timeout: float = 60.0,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        super().__init__(url, auth, patience, timeout, http or httpx.AsyncClient(limits=_LIMITS))
        self._owns_http = http is None

    async def close(self) -> None:
        """Close the connections."""
        if self._owns_http:
            await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _run(self, operation: Steps[T]) -> T:
        """Perform the steps of an operation, and return its result."""
        try:
            step = next(operation)
            while True:
                try:
                    reply: Any = await (self._send(step) if isinstance(step, Call) else asyncio.sleep(step.seconds))
                except Exception as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(reply)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _send(self, call: Call) -> Reply:
        sent = time.monotonic()
        with _translate_errors(call):
            return _reply(await asyncio.wait_for(self._attempt(call), call.timeout or self._timeout), sent)

    async def _attempt(self, call: Call) -> httpx.Response:
        if self._url is None:
            await asyncio.to_thread(self._endpoint)
        return await self._http.send(self._request(call), auth=self._auth or httpx.USE_CLIENT_DEFAULT)

    @contextlib.asynccontextmanager
    async def _keep(self, lease: Lease) -> AsyncIterator[Lease]:
        """Renew a lease in one task and watch its expiry in another while a block runs."""
        tasks: list[asyncio.Task[None]] = []
        try:
            await self._run(lease.begin())
            tasks = [asyncio.create_task(self._run(steps)) for steps in (lease.renew(), lease.watch())]
            yield lease
        finally:
            lease.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._run(lease.end())
        lease.check()

    def _follow(self, cursor: EventCursor) -> AsyncEvents:
        return AsyncEvents(cursor, self._run)

    request = _method(Operations.request, _run)
    claim = _method(Operations.claim, _run)
    claims = _method(Operations.claims, _run)
    lease = _method(lease, _keep)
    take = _method(Operations.take, _run)
    show = _method(Operations.show, _run)
    extend = _method(Operations.extend, _run)
    release = _method(Operations.release, _run)
    candidates = _method(Operations.candidates, _run)
    capacity = _method(Operations.capacity, _run)
    explain = _method(Operations.explain, _run)
    consumers = _method(Operations.consumers, _run)
    position = _method(Operations.position, _run)
    follow = _method(Operations.follow, _follow)
