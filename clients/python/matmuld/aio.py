"""The client for asyncio.

    async with matmuld.AsyncClient("http://gpu-host:8080") as client:
        c = await client.matmul(a, b)
        W = await client.put(w, "weights")
        first = await (a @ W).get(rows=slice(0, 4))

The classes call the methods of Client, Stored and Product, which describe them, in threads. If the awaiting task
is cancelled, or asyncio.wait_for times out, the request's connection is closed, so the server cancels the work.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Dict, Generator, List, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from ._cancellation import Cancellation, current
from ._client import Client
from ._handles import Product, Stored
from ._http import Progress
from ._parameters import Parameters, Part
from ._replies import Benchmark, Reply

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Unpack

Result = TypeVar("Result")


def _unwrap(operand: Any) -> Any:
    return operand._wrapped if isinstance(operand, (AsyncStored, AsyncProduct)) else operand


def _unwrap_all(parameters: Parameters) -> Dict[str, Any]:
    return {name: _unwrap(value) for name, value in parameters.items()}


class AsyncClient:
    """A Client whose methods are awaited. At most `connections` requests are under way; others wait. `progress`
    is called in the event loop's thread. The other arguments are those of Client."""

    def __init__(
        self,
        url: Union[str, Sequence[str], None] = None,
        *,
        key: Optional[str] = None,
        timeout_s: float = 120.0,
        retry_s: float = 30.0,
        context: Optional[ssl.SSLContext] = None,
        affinity: Optional[str] = None,
        progress: Optional[Progress] = None,
        connections: int = 64,
    ) -> None:
        def report(*facts: Any) -> None:
            if progress and self._loop:
                self._loop.call_soon_threadsafe(progress, *facts)

        self._wrapped = Client(url, key=key, timeout_s=timeout_s, retry_s=retry_s, context=context, affinity=affinity,
                               progress=report if progress else None)  # fmt: skip
        self._threads = ThreadPoolExecutor(connections, "matmuld")
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._last: ContextVar[Optional[Reply]] = ContextVar("last", default=None)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"matmuld.AsyncClient({self.url!r})"

    async def close(self) -> None:
        """Ends the client: closes the idle connections, and ends the threads when their requests end."""
        self._threads.shutdown(wait=False)
        self._wrapped.close()

    @property
    def url(self) -> str:
        """The server that gets the next request."""
        return self._wrapped.url

    @property
    def last(self) -> Optional[Reply]:
        """Facts about the last product that this task awaited, or None."""
        return self._last.get()

    async def _run(self, call: Callable[[], Result]) -> Result:
        cancellation = Cancellation()

        def work() -> Tuple[Result, Optional[Reply]]:
            current.cancellation = cancellation
            self._wrapped._local.last = None
            return call(), self._wrapped.last

        self._loop = asyncio.get_running_loop()
        try:
            result, last = await self._loop.run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        if last:
            self._last.set(last)
        return result

    def product(self, a: Any, b: Any) -> AsyncProduct:
        return AsyncProduct(self, Product(self._wrapped, _unwrap(a), _unwrap(b)))

    async def matmul(self, a: Any, b: Any, *, dtype: Optional[DTypeLike] = None, **parameters: Unpack[Parameters]) -> Any:
        return await self._run(lambda: self._wrapped.matmul(_unwrap(a), _unwrap(b), dtype=dtype, **_unwrap_all(parameters)))

    async def put(self, array: Any, name: str, *, ttl_s: Optional[int] = None) -> AsyncStored:
        return AsyncStored(self, await self._run(lambda: self._wrapped.put(array, name, ttl_s=ttl_s)))

    async def put_file(
        self, path: Union[str, os.PathLike[str]], *, prefix: str = "", ttl_s: Optional[int] = None
    ) -> Dict[str, AsyncStored]:
        handles = await self._run(lambda: self._wrapped.put_file(path, prefix=prefix, ttl_s=ttl_s))
        return {name: AsyncStored(self, handle) for name, handle in handles.items()}

    async def stored(self, name: str) -> AsyncStored:
        return AsyncStored(self, await self._run(lambda: self._wrapped.stored(name)))

    async def list(self) -> List[AsyncStored]:
        return [AsyncStored(self, handle) for handle in await self._run(self._wrapped.list)]

    async def delete(self, matrix: Union[str, AsyncStored]) -> None:
        await self._run(lambda: self._wrapped.delete(_unwrap(matrix)))

    async def variants(self) -> List[Dict[str, Any]]:
        return await self._run(self._wrapped.variants)

    async def benchmark(self, m: int = 512, k: int = 512, n: int = 512, **members: Any) -> Benchmark:
        return await self._run(lambda: self._wrapped.benchmark(m, k, n, **members))


class _Operand:
    """What a handle and a product have in common."""

    __array_ufunc__ = None  # NumPy then calls __rmatmul__ and __radd__ for an array on the left

    def __init__(self, client: AsyncClient, wrapped: Any) -> None:
        self.client, self._wrapped = client, wrapped

    def __repr__(self) -> str:
        return repr(self._wrapped).replace("matmuld.", "matmuld.Async", 1)

    @property
    def ndim(self) -> int:
        return int(self._wrapped.ndim)

    if not TYPE_CHECKING:  # else type checkers believe that `array @ handle` is an array

        def __array__(self, *_: Any, **__: Any) -> NoReturn:
            raise TypeError("the matrix is on the server: write await x.get()")

    def __matmul__(self, other: Any) -> AsyncProduct:
        return self.client.product(self, other)

    def __rmatmul__(self, other: Any) -> AsyncProduct:
        return self.client.product(other, self)


class AsyncStored(_Operand):
    """A handle of a matrix on the server, as Stored describes it."""

    _wrapped: Stored

    @property
    def name(self) -> str:
        return self._wrapped.name

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._wrapped.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._wrapped.dtype

    @property
    def nbytes(self) -> int:
        return self._wrapped.nbytes

    @property
    def etag(self) -> Optional[str]:
        return self._wrapped.etag

    @property
    def T(self) -> AsyncStored:
        return AsyncStored(self.client, self._wrapped.T)

    async def sync(self) -> bool:
        return await self.client._run(self._wrapped.sync)

    async def get(self, *, rows: Part = None, cols: Part = None, dtype: Optional[DTypeLike] = None) -> Any:
        return await self.client._run(lambda: self._wrapped.get(rows=rows, cols=cols, dtype=dtype))

    async def delete(self) -> None:
        await self.client._run(self._wrapped.delete)


class AsyncProduct(_Operand):
    """A product that is not computed yet, as Product describes it."""

    _wrapped: Product

    def __add__(self, other: Any) -> AsyncProduct:
        return AsyncProduct(self.client, self._wrapped + _unwrap(other))

    __radd__ = __add__

    def __await__(self) -> Generator[Any, None, Any]:
        return self.get().__await__()

    async def get(self, *, dtype: Optional[DTypeLike] = None, **parameters: Unpack[Parameters]) -> Any:
        return await self.client._run(lambda: self._wrapped.get(dtype=dtype, **_unwrap_all(parameters)))

    async def store(self, name: str, *, ttl_s: Optional[int] = None, **parameters: Unpack[Parameters]) -> AsyncStored:
        handle = await self.client._run(lambda: self._wrapped.store(name, ttl_s=ttl_s, **_unwrap_all(parameters)))
        return AsyncStored(self.client, handle)

    async def reduce(self, *figures: str, **parameters: Unpack[Parameters]) -> Dict[str, Any]:
        return await self.client._run(lambda: self._wrapped.reduce(*figures, **_unwrap_all(parameters)))
