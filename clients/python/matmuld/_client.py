"""A client of one or several servers."""

from __future__ import annotations

import functools
import json
import os
import secrets
import ssl
import threading
import urllib.parse
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._arrays import as_array
from ._files import arrays_of
from ._handles import Product, Stored
from ._http import RAW, Body, Error, Headers, Progress, Transport
from ._parameters import Parameters
from ._replies import Benchmark, Reply

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Unpack


def urls_of(url: Union[str, Sequence[str], None]) -> List[str]:
    """Returns the URLs of a list, or of a text with commas between several. None means the environment variable
    MATMULD_URL, or http://127.0.0.1:8080."""
    url = (os.environ.get("MATMULD_URL") or "http://127.0.0.1:8080") if url is None else url
    return [part.strip() for part in (url.split(",") if isinstance(url, str) else url)]


def _plain(value: Any) -> Any:
    """Converts a number or an element type of NumPy for JSON."""
    return value.item() if isinstance(value, np.generic) else np.dtype(value).name


class Client:
    """A client of one or several servers. Any number of threads may share a client, because concurrent
    requests use different connections. Idle connections are kept for later requests. After a fork, the child
    opens its own connections. A client can be pickled; the pickle contains the key.

    url        http://HOST:PORT or https://HOST:PORT, or several in a list or with commas between them: if one does
               not answer, the next is asked (default: the environment variable MATMULD_URL, or http://127.0.0.1:8080)
    key        an API key, if the server has them (default: the environment variable MATMULD_API_KEY)
    timeout_s  how long the server may be silent; also limits the time to connect
    retry_s    how long a request is sent again after 429, 503 or a broken connection
    context    for https: the certificates to trust (default: the system's)
    affinity   sent as Matmul-Affinity with each request about stored matrices, so a balancer of several servers
               chooses the same one (default: a random text for each client). Give the same text to clients that
               share matrices; "" sends none.
    progress   called with "upload" or "download", the bytes so far and all bytes, after each MiB
    """

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
    ) -> None:
        urls = urls_of(url)
        if not urls:
            raise ValueError("the list of servers is empty: give at least one URL")
        key = os.environ.get("MATMULD_API_KEY") if key is None else key
        affinity = secrets.token_hex(8) if affinity is None else affinity
        self._arguments: Dict[str, Any] = {"url": urls, "key": key, "timeout_s": timeout_s, "retry_s": retry_s, "context": context,
                           "affinity": affinity, "progress": progress}  # fmt: skip
        # Other requests have no such header, so the balancer can spread them.
        self._affinity: Headers = {"Matmul-Affinity": affinity} if affinity else {}
        self._transport = Transport(urls, key, timeout_s, retry_s, context, progress)
        self._local = threading.local()
        # Shape, type, digest and ETag of each matrix that this client stored, by name. Dictionary operations are atomic.
        self._known: Dict[str, Tuple[str, np.dtype[Any], bytes, str]] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"matmuld.Client({self.url!r})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return functools.partial(type(self), **self._arguments), ()

    def close(self) -> None:
        """Closes the idle connections. Later requests open new ones."""
        self._transport.close()

    @property
    def url(self) -> str:
        """The server that gets the next request."""
        return self._transport.url

    @property
    def last(self) -> Optional[Reply]:
        """Facts about the last product of this thread, or None."""
        return getattr(self._local, "last", None)

    def _send(
        self,
        method: str,
        name: str,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Body] = None,
        headers: Optional[Headers] = None,
    ) -> Tuple[Headers, Any]:
        """Sends a request about a stored matrix."""
        if not isinstance(name, str):
            raise TypeError(f"the name of a matrix is {name!r}: it must be text")
        path = "/v1/matrices/" + urllib.parse.quote(name, safe="")
        return self._transport.call(method, path, query, body, {**(headers or {}), **self._affinity}, stays=True)

    def _multiply(
        self, query: Dict[str, Any], body: Body, headers: Headers, is_stored: bool, repeatable: bool
    ) -> Tuple[Headers, Any]:
        """Sends a product. is_stored: about a stored matrix; repeatable: twice has the effect of once."""
        headers = {"Content-Type": RAW, **headers, **(self._affinity if is_stored else {})}
        return self._transport.call("POST", "/v1/matmul", query, body, headers, repeatable, is_stored)

    def product(self, a: Any, b: Any) -> Product:
        """Returns an uncomputed product. An operand is an array, a Stored, or another Product."""
        return Product(self, a, b)

    def matmul(self, a: Any, b: Any, *, dtype: Optional[DTypeLike] = None, **parameters: Unpack[Parameters]) -> Any:
        """Multiplies as numpy.matmul does. Returns an array, a NumPy number if both operands are vectors, or a
        torch tensor if an operand is one.

        An operand is anything that numpy.asarray accepts, a torch tensor, a Stored or a Product. Arrays are
        sent without a copy, or in pieces if they have gaps or another type. `dtype` converts the result in the
        client. Parameters have the names of POST /v1/matmul: variant, backend, result_dtype, transpose_a,
        transpose_b, timeout_ms, tile, devices, vendor, accuracy, verify, and the slices rows and cols. `verify`
        raises no exception: its result is in `last.verify`.

        With these parameters the result is activation(alpha·a·b + beta·c + bias), rounded once:

        alpha, beta  finite numbers, for integer results whole numbers (default: 1)
        c            an operand of the result's shape; dimensions before the last two broadcast
        bias         a vector with an element for each column of the result
        activation   none, relu, gelu, gelu_tanh, silu, sigmoid or tanh; for integer results none or relu

        Arrays c and bias are converted to the result's type, but not from floats to integers.
        """
        return Product(self, a, b).get(dtype=dtype, **parameters)

    def put(self, array: Any, name: str, *, ttl_s: Optional[int] = None) -> Stored:
        """Stores the array on the server, and returns a handle. The array is uploaded only if it has changed
        since this client stored it, or if the server has lost it. With `ttl_s` the array is always uploaded, and
        the server deletes the matrix after that time. The handle refers to the array, so a later put or sync
        uploads changes of the array."""
        stored = Stored(self, name, as_array(array, f"the array {name!r}"), ttl_s)
        stored.sync()
        return stored

    def put_file(self, path: Union[str, os.PathLike[str]], *, prefix: str = "", ttl_s: Optional[int] = None) -> Dict[str, Stored]:
        """Stores each array of a .npz or .safetensors file under its name after the prefix, and the array of a
        .npy or .csv file under the file's name without the suffix. Returns the handles by their names."""
        return {prefix + name: self.put(array, prefix + name, ttl_s=ttl_s) for name, array in arrays_of(path)}

    def stored(self, name: str) -> Stored:
        """Returns a handle of a stored matrix. Raises Error (`no_such_matrix`) if there is none."""
        try:
            headers, _ = self._send("HEAD", name, headers={"Accept": RAW})
        except Error:
            self._send("GET", name, {"rows": "0:0"}, headers={"Accept": RAW})  # raises the error with its text
            headers, _ = self._send("HEAD", name, headers={"Accept": RAW})  # another client has just stored it
        return Stored(self, name)._learn_head(headers)

    def list(self) -> List[Stored]:
        """Returns handles of all stored matrices, sorted by name."""
        handles: List[Stored] = []
        query: Dict[str, str] = {}
        while True:
            page = self._transport.call("GET", "/v1/matrices", query, headers=self._affinity, stays=True)[1]
            handles += [Stored(self, row["name"])._learn(row["etag"], row["shape"], row["dtype"]) for row in page["matrices"]]
            if "next" not in page:
                return handles
            query = {"after": page["next"]}

    def delete(self, matrix: Union[str, Stored]) -> None:
        """Deletes a stored matrix, if the server has it."""
        name = matrix.name if isinstance(matrix, Stored) else matrix
        self._known.pop(name, None)
        try:
            self._send("DELETE", name)
        except Error as error:
            if error.code != "no_such_matrix":
                raise

    def variants(self) -> List[Dict[str, Any]]:
        """Returns the rows of GET /v1/variants."""
        rows: List[Dict[str, Any]] = self._transport.call("GET", "/v1/variants")[1]["variants"]
        return rows

    def benchmark(self, m: int = 512, k: int = 512, n: int = 512, **members: Any) -> Benchmark:
        """Times the variants on random m×k and k×n matrices. POST /v1/benchmark defines the members, such as
        dtype, variants and repeats."""
        text = json.dumps({"m": m, "k": k, "n": n, **members}, default=_plain)
        body = Body()
        body.add(np.frombuffer(text.encode(), np.uint8))
        return Benchmark(self._transport.call("POST", "/v1/benchmark", body=body, headers={"Content-Type": "application/json"})[1])
