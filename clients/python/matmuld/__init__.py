"""Client of matmuld, an HTTP service that multiplies matrices. It needs only NumPy.

    import matmuld
    c = matmuld.matmul(a, b)                       # one product, by the server at $MATMULD_URL or 127.0.0.1:8080

    client = matmuld.Client("http://gpu-host:8080", key="...")
    c = client.matmul(a, b, variant="tiled_32", verify=True)
    print(client.last.variant, client.last.timing["kernel"])

    W = client.put(w, "weights")                   # w stays on the server
    first = (a @ W).get(rows=slice(0, 4))          # only four rows come back
    C = (a @ W @ W.T + bias).store("product")      # nothing comes back

    d = matmuld.gemm(a, b, c, 0.5, bias=v, activation="relu")   # relu(0.5·a·b + c + v)

Operands multiply as numpy.matmul multiplies them: matrices, vectors, and stacks that broadcast. The element
types are float64, float32, float16, int64, int32, int8, uint8 and bool, and with the package ml_dtypes
bfloat16, float8_e4m3fn and float8_e5m2. If the types of two arrays differ, both are converted as NumPy would.
Unlike in NumPy, sums and results are int32 for int8, uint8 and bool, and float32 for float8; int16 and uint16
become int32, and uint32 becomes int64. Operands may be torch tensors; the result is then a tensor too.

Exceptions: `Error`, with `code` and `detail`, if the server rejects a request. ConnectionError and other
OSErrors if it cannot be reached. ValueError and TypeError for operands that no server accepts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence, Tuple, Union

from ._client import Client, urls_of
from ._handles import Product, Stored
from ._http import Error, __version__
from ._parameters import Parameters
from ._replies import Benchmark, Reply

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Unpack

    from ._parameters import Activation, Options
    from .aio import AsyncClient

__all__ = ["AsyncClient", "Benchmark", "Client", "Error", "Product", "Reply", "Stored", "gemm", "matmul", "put", "put_file",
           "__version__"]  # fmt: skip

if not TYPE_CHECKING:  # else type checkers accept any name

    def __getattr__(name: str) -> Any:
        """Imports AsyncClient when it is needed, because the import of asyncio takes a while."""
        if name != "AsyncClient":
            raise AttributeError(f"module 'matmuld' has no attribute {name!r}")
        from .aio import AsyncClient

        return AsyncClient


_clients: Dict[Tuple[Any, ...], Client] = {}


def _client(url: Union[str, Sequence[str], None] = None, key: Optional[str] = None) -> Client:
    """Returns a client that is kept for later calls."""
    urls = tuple(urls_of(url))
    key = os.environ.get("MATMULD_API_KEY") if key is None else key
    return _clients.get((urls, key)) or _clients.setdefault((urls, key), Client(urls, key=key))


def matmul(
    a: Any,
    b: Any,
    *,
    url: Union[str, Sequence[str], None] = None,
    key: Optional[str] = None,
    dtype: Optional[DTypeLike] = None,
    **parameters: Unpack[Parameters],
) -> Any:
    """Calls Client.matmul of the client that an operand belongs to, or else of a client that is kept for later
    calls. Its server is `url`, or the environment variable MATMULD_URL, or http://127.0.0.1:8080. Its key is
    `key` or the environment variable MATMULD_API_KEY."""
    for operand in (a, b, parameters.get("c"), parameters.get("bias")):
        if isinstance(operand, (Stored, Product)) and url is None and key is None:
            return operand.client.matmul(a, b, dtype=dtype, **parameters)
    return _client(url, key).matmul(a, b, dtype=dtype, **parameters)


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    alpha: Any = 1,
    beta: Any = None,
    bias: Any = None,
    activation: Optional[Activation] = None,
    **options: Unpack[Options],
) -> Any:
    """Returns activation(alpha·a·b + beta·c + bias), computed by `matmul`. Client.matmul describes the operands.
    If there is a c, beta is 1 unless you give it."""
    return matmul(a, b, c=c, alpha=alpha, beta=beta, bias=bias, activation=activation, **options)


def put(array: Any, name: str, *, ttl_s: Optional[int] = None) -> Stored:
    """Calls Client.put of the client that matmul uses without `url` and `key`."""
    return _client().put(array, name, ttl_s=ttl_s)


def put_file(path: Union[str, os.PathLike[str]], *, prefix: str = "", ttl_s: Optional[int] = None) -> Dict[str, Stored]:
    """Calls Client.put_file of the client that matmul uses without `url` and `key`."""
    return _client().put_file(path, prefix=prefix, ttl_s=ttl_s)
