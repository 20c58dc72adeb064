"""The clients: they perform the steps of operations, one of them with threads, the other one with asyncio."""

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
from placement_client.operations import Following, Operations
from placement_client.records import Event
from placement_client.steps import Call, Reply, Steps

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound="_Service[Any]")
Http = TypeVar("Http", httpx.Client, httpx.AsyncClient)

_AGENT = f"placement-client/{metadata.version('placement-client')}"
#: The longest wait for a connection, in seconds.
_CONNECT = 10.0
#: No limit on connections: with one, the extension of a lease could have to wait until a request for events has ended.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


class _Service(Generic[Http]):
    """What both clients have: where the service is, and what identifies the caller."""

    def __init__(self, url: str | None, auth: httpx.Auth | None, patience: float, timeout: float, http: Http) -> None:
        if url is None and not isinstance(auth, Keystone):
            raise TypeError("the URL of the service is missing, and only Keystone has a catalog")
        if url is not None and (parsed := httpx.URL(url)).userinfo:
            # A password stays out of exceptions, and of what httpx logs.
            auth = auth or Basic(parsed.username, parsed.password)
            url = str(parsed.copy_with(userinfo=b""))
        self._url, self._auth, self._timeout = url, auth, timeout
        self._http: Http = http
        self._operations = Operations(patience)

    def _endpoint(self) -> str:
        """Return the URL of the service; it may take a request to the Identity service."""
        if self._url is None:
            assert isinstance(self._auth, Keystone)
            self._url = self._auth.endpoint()
        return self._url

    def _request(self, call: Call) -> httpx.Request:
        """Return a call as the request of httpx."""
        wait = call.timeout or self._timeout
        request: httpx.Request = self._http.build_request(
            call.method,
            self._endpoint().rstrip("/") + call.path,
            content=call.content,
            headers={**call.headers, "User-Agent": _AGENT},
            timeout=httpx.Timeout(wait, connect=min(wait, _CONNECT)),
        )
        return request


def _method(
    operation: Callable[Concatenate[Operations, P], S], perform: Callable[[C, S], R]
) -> Callable[Concatenate[C, P], R]:
    """Return the method of a client that performs an operation."""

    @functools.wraps(operation)
    def method(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return perform(self, operation(self._operations, *args, **kwargs))

    return method


@contextlib.contextmanager
def _reporting(call: Call) -> Iterator[None]:
    """Raise NoReply where httpx has no reply."""
    try:
        yield
    except httpx.UnsupportedProtocol:  # a wrong URL
        raise
    except asyncio.TimeoutError as error:
        raise NoReply(f"no reply to {call.method} {call.path} in time ({call.request_id})") from error
    except httpx.RequestError as error:
        reason = str(error) or type(error).__name__
        raise NoReply(f"no reply to {call.method} {error.request.url}: {reason} ({call.request_id})") from error


def _reply(response: httpx.Response, sent: float) -> Reply:
    return Reply(response.status_code, response.headers, response.content, sent)


class Events:
    """Iterates over the events after a position, for as long as the caller does.

    Attributes:
        position: What to go on from: the events before it were handed out, or are not asked for.
    """

    def __init__(self, following: Following, run: Callable[[Steps[Event]], Event]) -> None:
        self._following, self._run = following, run

    @property
    def position(self) -> str | None:
        return self._following.position

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Event:
        return self._run(self._following.next())


class AsyncEvents:
    """The same for ``async for``."""

    def __init__(self, following: Following, run: Callable[[Steps[Event]], Coroutine[Any, Any, Event]]) -> None:
        self._following, self._run = following, run

    @property
    def position(self) -> str | None:
        return self._following.position

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Event:
        return await self._run(self._following.next())


class Client(_Service[httpx.Client]):
    """A client of one service.

    Threads may share it.  A process that forks makes a new one in each child, because the child inherits the
    connections of its parent, and each would get replies to requests of the other.

    Args:
        url: The URL of the service, with its prefix; None for that of the catalog of a ``Keystone``.
        auth: What identifies the caller: ``Token``, ``Basic``, ``Keystone``, or any other of httpx; None for that of
            ``http``, or for none.
        patience: Seconds for which a request is repeated while it gets no reply, or 5xx.  If it is not longer than
            ``timeout``, a request whose reply is lost is not repeated.
        timeout: Seconds for which one attempt waits for the network each time: for a connection, and for each part of
            the reply.  ``AsyncClient`` ends the whole attempt after so long.
        http: A client of httpx with other settings, such as ``verify`` and ``proxy``, which the caller closes.  Its
            limit of connections, 100 by default, counts for the extensions of leases, too.
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
        self._closes = http is None

    def close(self) -> None:
        """Close the connections."""
        if self._closes:
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
        with _reporting(call):
            return _reply(self._http.send(self._request(call), auth=self._auth or httpx.USE_CLIENT_DEFAULT), sent)

    @contextlib.contextmanager
    def _keep(self, lease: Lease) -> Iterator[Lease]:
        """Renew a lease in a thread while a block runs, and watch its end in another one."""
        ended = threading.Event()
        try:
            self._run(lease.begin())
            for steps in (lease.renew(), lease.watch()):
                threading.Thread(target=self._run, args=(steps, ended.wait), name="lease", daemon=True).start()
            yield lease
        finally:
            lease.close()
            ended.set()  # the threads are not waited for: a reply may be long in coming, and changes nothing any more
            self._run(lease.end())
        lease.check()

    def _follow(self, following: Following) -> Events:
        return Events(following, self._run)

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
    """A client of one service for asyncio, with the arguments of ``Client``."""

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
        self._closes = http is None

    async def close(self) -> None:
        """Close the connections."""
        if self._closes:
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
        with _reporting(call):
            return _reply(await asyncio.wait_for(self._attempt(call), call.timeout or self._timeout), sent)

    async def _attempt(self, call: Call) -> httpx.Response:
        if self._url is None:
            await asyncio.to_thread(self._endpoint)
        return await self._http.send(self._request(call), auth=self._auth or httpx.USE_CLIENT_DEFAULT)

    @contextlib.asynccontextmanager
    async def _keep(self, lease: Lease) -> AsyncIterator[Lease]:
        """Renew a lease in a task while a block runs, and watch its end in another one."""
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

    def _follow(self, following: Following) -> AsyncEvents:
        return AsyncEvents(following, self._run)

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
