"""Client of matmuld, an HTTP service that multiplies matrices. It needs only NumPy.

    import matmuld
    c = matmuld.matmul(a, b)                       # one product, by the server at $MATMULD_URL or 127.0.0.1:8080

    client = matmuld.Client("http://gpu-host:8080", key="...")
    c = client.matmul(a, b, variant="tiled_32", verify=True)
    print(client.last.variant, client.last.timing["kernel"])

    B = client.put(b, "weights")                   # b stays on the server
    first = (a @ B).get(rows=slice(0, 4))          # only four rows come back
    C = (a @ B).store("product")                   # nothing comes back

    d = matmuld.gemm(a, b, c, 0.5, bias=v, activation="relu")   # relu(0.5·a·b + c + v)

Operands multiply as numpy.matmul multiplies them: matrices, vectors, and stacks that broadcast. The element
types are float64, float32, float16, int64, int32, int8, uint8 and bool, and with the package ml_dtypes
bfloat16, float8_e4m3fn and float8_e5m2. If the types of two arrays differ, both are converted as NumPy would.
Unlike in NumPy, sums and results are int32 for int8, uint8 and bool, and float32 for float8.

Exceptions: `Error`, with `code` and `detail`, if the server rejects a request. ConnectionError and other
OSErrors if it cannot be reached. ValueError and TypeError for operands that no server accepts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

import numpy as np

from ._http import RAW, Error, Headers, Transport, __version__, bytes_of, dtype_of
from ._replies import Benchmark, Reply, parse_reply

__all__ = ["Benchmark", "Client", "Error", "Product", "Reply", "Stored", "gemm", "matmul", "__version__"]

Part = Union[slice, str, None]
Result = TypeVar("Result")

# Product sets these parameters itself, so callers must not pass them.
_OWN = {"a_from", "b_from", "c_from", "bias_from", "a_shape", "b_shape", "c_shape", "m", "k", "n", "lda", "ldb", "ldc",
        "dtype", "out", "reply", "reduce"}  # fmt: skip

# The type of the result by the type of the operands, if they differ.
_RESULTS = {"int8": "int32", "uint8": "int32", "bool": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}

# Parameters with the values true and false.
_FLAGS = {"transpose_a", "transpose_b", "verify"}


class Client:
    """A client of the server at `url`. Any number of threads may share a client, because concurrent requests
    use different connections. Idle connections are kept for later requests. After a fork, the child opens its
    own connections. A client can be pickled; the pickle contains the key.

    url        http://HOST:PORT or https://HOST:PORT
    key        an API key, if the server has them
    timeout_s  how long the server may be silent; also limits the time to connect
    retry_s    how long a request may wait in total while the server replies 429 or 503 with Retry-After
    context    for https: the certificates to trust (default: the system's)
    affinity   sent as Matmul-Affinity with each request about stored matrices, so a balancer of several servers
               chooses the same one (default: a random text for each client). Give the same text to clients that
               share matrices; "" sends none.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        key: Optional[str] = None,
        *,
        timeout_s: float = 120.0,
        retry_s: float = 30.0,
        context: Optional[ssl.SSLContext] = None,
        affinity: Optional[str] = None,
    ) -> None:
        self.url = url
        affinity = secrets.token_hex(8) if affinity is None else affinity
        self._arguments = {"url": url, "key": key, "timeout_s": timeout_s, "retry_s": retry_s, "context": context,
                           "affinity": affinity}  # fmt: skip
        # Other requests have no such header, so the balancer can spread them.
        self._affinity: Headers = {"Matmul-Affinity": affinity} if affinity else {}
        self._call = Transport(url, key, timeout_s, retry_s, context)
        self._local = threading.local()
        # Digest and ETag of each matrix that this client stored, by name. Dictionary operations are atomic.
        self._known: Dict[str, Tuple[bytes, str]] = {}

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
        self._call.close()

    @property
    def last(self) -> Optional[Reply]:
        """Facts about the last product of this thread, or None."""
        return getattr(self._local, "last", None)

    def product(self, a: Any, b: Any) -> Product:
        """Returns an uncomputed product. An operand is a Stored, or anything that numpy.asarray accepts."""
        return Product(self, a, b)

    def matmul(self, a: Any, b: Any, **parameters: Any) -> Any:
        """Multiplies as numpy.matmul does. Returns an array, or a NumPy number if both operands are vectors.

        Arrays in C or Fortran order are sent without a copy, and other arrays are copied first. Parameters
        have the names of POST /v1/matmul: variant, backend, result_dtype, transpose_a, transpose_b,
        timeout_ms, tile, vendor, accuracy, verify, and the slices rows and cols. `verify` raises no
        exception: its result is in `last.verify`.

        With these parameters the result is activation(alpha·a·b + beta·c + bias), rounded once:

        alpha, beta  finite numbers, for integer results whole numbers (default: 1)
        c            a Stored, or an array of the result's shape; dimensions before the last two broadcast
        bias         a Stored, or a vector with an element for each column of the result
        activation   none, relu, gelu, gelu_tanh, silu, sigmoid or tanh; for integer results none or relu

        Arrays c and bias are converted to the result's type, but not from floats to integers. If a and b are
        both Stored, the result has the type of c and bias, unless result_dtype is given.
        """
        return Product(self, a, b).get(**parameters)

    def put(self, array: Any, name: str, *, ttl_s: Optional[int] = None) -> Stored:
        """Stores the array on the server, and returns a handle. The array is uploaded only if it has changed
        since this client stored it, or if the server has lost it. The server deletes the matrix after
        `ttl_s`. The handle refers to the array, so a later put or sync uploads changes of the array."""
        stored = Stored(self, name, np.asarray(array), ttl_s)
        stored.sync()
        return stored

    def stored(self, name: str) -> Stored:
        """Returns a handle of a stored matrix. Raises Error (`no_such_matrix`) if there is none."""
        headers, _ = self._call.call("HEAD", _path(name), headers={"Accept": RAW, **self._affinity})
        stored = Stored(self, name, None, None)
        stored.etag = headers["etag"]
        return stored

    def variants(self) -> List[Dict[str, Any]]:
        """Returns the rows of GET /v1/variants."""
        rows: List[Dict[str, Any]] = self._call.call("GET", "/v1/variants")[1]["variants"]
        return rows

    def benchmark(self, m: int = 512, k: int = 512, n: int = 512, **members: Any) -> Benchmark:
        """Times the variants on random m×k and k×n matrices. POST /v1/benchmark defines the members, such as
        dtype, variants and repeats."""
        body = json.dumps({"m": m, "k": k, "n": n, **members}).encode()
        headers = {"Content-Type": "application/json"}
        return Benchmark(self._call.call("POST", "/v1/benchmark", body=[memoryview(body)], headers=headers)[1])


def _path(name: str) -> str:
    return "/v1/matrices/" + urllib.parse.quote(name, safe="")


def _part(part: Part) -> str:
    if not isinstance(part, slice):
        return str(part)
    if part.step not in (None, 1):
        raise ValueError(f"a step of {part.step} is not supported: only neighbouring rows or columns can be returned")
    return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"


def _query(parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Converts parameters to values of a query. Omits parameters that are None."""
    query: Dict[str, Any] = {}
    for name, value in parameters.items():
        if name in ("rows", "cols") and value is not None:
            query[name] = _part(value)
        elif name in _FLAGS and value is not None:
            if not any(np.array_equal(value, flag) for flag in (True, False)):
                raise TypeError(f"{name} is {value!r}: it must be True or False")
            query[name] = "true" if value else "false"
        elif value is not None:
            query[name] = value
    return query


def _little_endian(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(array.dtype.newbyteorder("<")) if array.dtype.str[0] == ">" else array


class Stored:
    """A handle of a matrix on the server, from Client.put, Client.stored or Product.store. `@` multiplies it
    by arrays and by other handles of the client. A product uses the current matrix of that name, so call
    `sync` first if another client may have replaced the matrix. If the server has lost the matrix and the
    handle has an array, a product uploads the array again."""

    __array_ufunc__ = None  # NumPy then calls __rmatmul__ for `array @ handle`

    def __init__(self, client: Client, name: str, array: Optional[np.ndarray[Any, Any]], ttl_s: Optional[int]) -> None:
        self.client, self.name, self.array, self._ttl_s = client, name, array, ttl_s
        self.etag: Optional[str] = None

    def __repr__(self) -> str:
        return f"<matmuld.Stored {self.name!r} at {self.client.url}>"

    def __matmul__(self, other: Any) -> Product:
        return Product(self.client, self, other)

    def __rmatmul__(self, other: Any) -> Product:
        return Product(self.client, other, self)

    def sync(self) -> bool:
        """Uploads the handle's array, unless the server has it or there is none. Returns whether it did."""
        if self.array is None:
            return False
        if self.array.ndim == 0:
            raise ValueError("a number alone cannot be stored: give it at least one dimension")
        array = np.ascontiguousarray(_little_endian(self.array))
        query = _query({"shape": ",".join(map(str, array.shape)), "dtype": array.dtype.name, "ttl_s": self._ttl_s})
        digest = hashlib.blake2b(bytes_of(array), digest_size=16)
        digest.update(f"{array.dtype.name} {array.shape}".encode())
        known_digest, known_etag = self.client._known.get(self.name, (b"", ""))
        if known_digest == digest.digest() and self._is_there(known_etag):
            self.etag = known_etag
            return False
        headers = {"Content-Type": RAW, **self.client._affinity}
        headers, _ = self.client._call.call("PUT", _path(self.name), query, [bytes_of(array)], headers)
        self.etag = headers["etag"]
        self.client._known[self.name] = digest.digest(), headers["etag"]
        return True

    def _is_there(self, etag: str) -> bool:
        try:
            self.client._call.call("HEAD", _path(self.name), headers={"Accept": RAW, "If-Match": etag, **self.client._affinity})
        except Error as error:
            if error.status not in (404, 412):
                raise
            return False
        return True

    def get(self, *, rows: Part = None, cols: Part = None) -> Any:
        """Returns the matrix, or a part such as `rows=slice(0, 4)`. The server rejects negative bounds."""
        query = _query({"rows": rows, "cols": cols})
        headers = {"Accept": RAW, **self.client._affinity}
        return _call_with_uploads([self], lambda: self.client._call.call("GET", _path(self.name), query, headers=headers))[1]

    def delete(self) -> None:
        """Deletes the matrix, if the server has it."""
        self.client._known.pop(self.name, None)
        try:
            self.client._call.call("DELETE", _path(self.name), headers=self.client._affinity)
        except Error as error:
            if error.code != "no_such_matrix":
                raise


def _call_with_uploads(operands: Iterable[Any], call: Callable[[], Result]) -> Result:
    """Calls `call`. If the server has lost a stored matrix, uploads the handles' arrays and tries again."""
    try:
        return call()
    except Error as error:
        if error.code != "no_such_matrix":
            raise
        kept = [operand for operand in operands if isinstance(operand, Stored) and operand.array is not None]
        if not kept:
            raise
    for operand in kept:
        operand.sync()
    return call()


class Product:
    """A product that is not computed yet, from Client.product or from `@` with a handle. Each call of get,
    store or reduce computes the product, and accepts the parameters of Client.matmul."""

    __array_ufunc__ = None  # `product @ array` is then a TypeError, because a product has no elements yet

    def __init__(self, client: Client, a: Any, b: Any) -> None:
        self.client = client
        self.a, self.b = self._operand(a), self._operand(b)

    def _operand(self, operand: Any) -> Any:
        if isinstance(operand, Stored) and operand.client is not self.client:
            raise ValueError(f"{operand!r} belongs to another client")
        if isinstance(operand, Product):
            raise TypeError("store the inner product first: (A @ B).store('ab') @ C")
        return operand if isinstance(operand, Stored) else np.asarray(operand)

    def get(self, **parameters: Any) -> Any:
        """Computes the product, and returns it or the part that `rows` and `cols` select."""
        result = self._run(parameters, {"Accept": RAW})[1]
        return result if result.ndim else result[()]

    def store(self, name: str, *, ttl_s: Optional[int] = None, **parameters: Any) -> Stored:
        """Computes the product and stores it on the server. If the connection breaks, the request is not sent
        again, because the product may have replaced one of its operands. If `c` is a handle of the name, raises
        Error (`precondition_failed`) if the server has another matrix of that name than the handle's ETag says."""
        c = parameters.get("c")
        old = c if isinstance(c, Stored) and c.name == name else None
        condition = {"If-Match": old.etag} if old and old.etag else {}
        headers, _ = self._run(parameters, condition, {"out": name, "reply": "none", "ttl_s": ttl_s})
        self.client._known.pop(name, None)
        if old:
            old.etag = headers["etag"]
        stored = Stored(self.client, name, None, None)
        stored.etag = headers["etag"]
        return stored

    def reduce(self, *figures: str, **parameters: Any) -> Dict[str, Any]:
        """Computes figures of the product or its part: sum, trace, min, max, max_abs, norm, finite. Figures
        of integers are exact, except the norm."""
        reduced = self._run(parameters, {}, {"reduce": ",".join(figures)})[1]["reduce"]
        return {name: float(value) if isinstance(value, str) else value for name, value in reduced.items()}

    def _run(
        self, parameters: Dict[str, Any], headers: Dict[str, str], own: Optional[Dict[str, Any]] = None
    ) -> Tuple[Headers, Any]:
        refused = _OWN.intersection(parameters)
        if refused:
            raise TypeError(f"{', '.join(sorted(refused))}: the client sets this itself; see Product.store and Product.reduce")
        terms = {name: self._operand(parameters[name]) for name in ("c", "bias") if parameters.get(name) is not None}
        query, body = self._encode(_query({**parameters, "c": None, "bias": None}), terms)
        query.update(_query(own or {}))
        headers = {"Content-Type": RAW, **headers}
        if "out" in query or any(isinstance(operand, Stored) for operand in (self.a, self.b, *terms.values())):
            headers.update(self.client._affinity)
        begun = time.perf_counter()
        reply_headers, result = _call_with_uploads(
            (self.a, self.b, terms.get("bias")),  # not c, because the lost value may be a sum that has grown since its upload
            lambda: self.client._call.call("POST", "/v1/matmul", query, body, headers, repeatable="out" not in query),
        )
        self.client._local.last = parse_reply(reply_headers, (time.perf_counter() - begun) * 1000)
        return reply_headers, result

    def _encode(self, query: Dict[str, Any], terms: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[memoryview]]:
        """Returns the query that describes the operands, and the bytes of the arrays."""
        body = []
        arrays = [x for x in (self.a, self.b) if not isinstance(x, Stored)]
        dtype = np.result_type(*(x.dtype for x in arrays)) if arrays else None
        for name, operand in (("a", self.a), ("b", self.b)):
            if isinstance(operand, Stored):
                query[f"{name}_from"] = operand.name
                continue
            if operand.ndim == 0:
                raise ValueError(f"{name} is a number: the operands of a product have at least one dimension")
            array = _little_endian(operand.astype(dtype, copy=False))
            # An array in Fortran order is sent as its transpose, with a flag, so the server transposes back.
            if array.ndim > 1 and not array.flags.c_contiguous and array.swapaxes(-1, -2).flags.c_contiguous:
                array = array.swapaxes(-1, -2)
                is_transposed = query.get(f"transpose_{name}") == "true"
                query[f"transpose_{name}"] = "false" if is_transposed else "true"
            array = np.ascontiguousarray(array)
            query[f"{name}_shape"] = ",".join(map(str, array.shape))
            query["dtype"] = array.dtype.name
            body.append(bytes_of(array))
        types = [term.dtype for term in terms.values() if not isinstance(term, Stored)]
        if types and "result_dtype" not in query:
            query["result_dtype"] = _RESULTS.get(query["dtype"], query["dtype"]) if arrays else np.result_type(*types).name
        for name, term in terms.items():
            if isinstance(term, Stored):
                query[f"{name}_from"] = term.name
                continue
            if name == "bias" and term.ndim != 1:
                raise ValueError(f"bias has {term.ndim} dimensions: it must be a vector")
            if name == "c" and term.ndim > 0:
                query["c_shape"] = ",".join(map(str, term.shape))
            query[name] = "body"
            array = term.astype(dtype_of(query["result_dtype"]), casting="same_kind", copy=False)
            body.append(bytes_of(np.ascontiguousarray(array)))
        return query, body


_clients: Dict[Tuple[str, Optional[str]], Client] = {}


def matmul(a: Any, b: Any, url: Optional[str] = None, key: Optional[str] = None, **parameters: Any) -> Any:
    """Calls Client.matmul of a client that is kept for later calls. The server is `url`, or the environment
    variable MATMULD_URL, or http://127.0.0.1:8080. The key is `key` or the environment variable
    MATMULD_API_KEY."""
    url = url or os.environ.get("MATMULD_URL") or "http://127.0.0.1:8080"
    key = key or os.environ.get("MATMULD_API_KEY")
    client = _clients.get((url, key)) or _clients.setdefault((url, key), Client(url, key))
    return client.matmul(a, b, **parameters)


def gemm(
    a: Any,
    b: Any,
    c: Any = None,
    alpha: Any = 1,
    beta: Any = None,
    bias: Any = None,
    activation: Optional[str] = None,
    **parameters: Any,
) -> Any:
    """Returns activation(alpha·a·b + beta·c + bias), computed by `matmul`. Client.matmul describes the operands.
    If there is a c, beta is 1 unless you give it."""
    return matmul(a, b, c=c, alpha=alpha, beta=beta, bias=bias, activation=activation, **parameters)
