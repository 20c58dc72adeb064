"""AsyncClient of placement_client with the interface of Client, so that each test of a client is written once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from placement_client import AsyncClient


class Loop:
    """An event loop in its own thread, so that tasks run while a test does something else."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, awaited: Awaitable[Any]) -> Any:
        """Run an awaitable, and return its result."""

        async def wait() -> Any:
            return await awaited

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """A client whose methods return the results of an AsyncClient's, and whose blocks are ``with``."""

    def __init__(self, client: AsyncClient, loop: Loop) -> None:
        self._client, self._loop = client, loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            if hasattr(result, "__aenter__"):
                return self._block(result)
            if hasattr(result, "__anext__"):
                return BlockingIterator(result, self._loop)
            return self._loop.run(result)

        return call

    @contextlib.contextmanager
    def _block(self, manager: Any) -> Iterator[Any]:
        entered = self._loop.run(manager.__aenter__())
        try:
            yield entered
        except BaseException as error:
            if not self._loop.run(manager.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._loop.run(manager.__aexit__(None, None, None))


class BlockingIterator:
    """An asynchronous iterator as an iterator, with its other attributes."""

    def __init__(self, iterator: AsyncIterator[Any], loop: Loop) -> None:
        self._iterator, self._loop = iterator, loop

    def __iter__(self) -> BlockingIterator:
        return self

    def __next__(self) -> Any:
        return self._loop.run(self._iterator.__anext__())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


@contextlib.contextmanager
def blocking(*args: Any, **options: Any) -> Iterator[Blocking]:
    """Provide an AsyncClient, created with these arguments, with the interface of Client."""
    loop = Loop()
    try:

        async def make() -> AsyncClient:
            return AsyncClient(*args, **options)

        client = loop.run(make())
        yield Blocking(client, loop)
        loop.run(client.close())
    finally:
        loop.close()
