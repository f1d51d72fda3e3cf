"""Handles of stored matrices, and products that are not computed yet."""

from __future__ import annotations

import contextlib
import copy
import math
import secrets
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, NoReturn, Optional, Tuple, TypeVar, Union

import numpy as np

from ._arrays import as_array, dtype_of, like_operands
from ._http import RAW, Body, Error, Headers, shape_of
from ._parameters import Parameters, Part, check_names, query_of, suggest
from ._replies import parse_reply

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Unpack

    from ._client import Client

Result = TypeVar("Result")

# The type of the result by the type of the operands, if they differ.
_RESULTS = {"int8": "int32", "uint8": "int32", "bool": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}

# The server deletes the inner products of a chain after this time, if the client cannot.
_TEMPORARY_S = 3600


class _Operand:
    """What a handle and a product have in common."""

    __array_ufunc__ = None  # NumPy then calls __rmatmul__ and __radd__ for an array on the left

    client: Client
    get: Callable[..., Any]

    if not TYPE_CHECKING:  # else type checkers believe that `array @ operand` is an array

        def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
            return np.asarray(self.get(dtype=dtype))

    def __matmul__(self, other: Any) -> Product:
        return Product(self.client, self, other)

    def __rmatmul__(self, other: Any) -> Product:
        return Product(self.client, other, self)


class Stored(_Operand):
    """A handle of a matrix on the server, from Client.put, Client.stored or Product.store. `@` multiplies it
    by arrays and by other handles of the client. A product uses the current matrix of that name, so call
    `sync` first if another client may have replaced the matrix. If the server has lost the matrix and the
    handle has an array, a product uploads the array again.

    name, shape, dtype, ndim, nbytes, etag   facts about the matrix when the handle last met the server
    array                                    what a lost matrix is uploaded from, or None
    """

    def __init__(
        self, client: Client, name: str, array: Optional[np.ndarray[Any, Any]] = None, ttl_s: Optional[int] = None
    ) -> None:
        self.client, self.name, self.array, self._ttl_s = client, name, array, ttl_s
        self.etag: Optional[str] = None
        self._shape: Tuple[int, ...] = array.shape if array is not None else ()
        self._dtype = array.dtype.name if array is not None else "float32"
        self.is_transposed = False

    def _learn(self, etag: str, shape: Iterable[int], dtype: str) -> Stored:
        """Takes the facts that a reply says."""
        self.etag, self._shape, self._dtype = etag, tuple(shape), dtype
        return self

    def _learn_head(self, headers: Headers) -> Stored:
        return self._learn(headers["etag"], shape_of(headers), headers["matmul-dtype"])

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._shape[::-1] if self.is_transposed else self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self._dtype)  # needs ml_dtypes for some types, and a list of handles works without

    @property
    def nbytes(self) -> int:
        return math.prod(self._shape) * self.dtype.itemsize

    @property
    def T(self) -> Stored:
        """The transpose, as another handle of the same matrix. A stack has none: use transpose_a or transpose_b."""
        if self.ndim > 2:
            raise ValueError(f"{self!r} is a stack: transpose its matrices in a product, by transpose_a=True or transpose_b=True")
        turned = copy.copy(self)
        turned.is_transposed = not self.is_transposed and self.ndim == 2
        return turned

    def __repr__(self) -> str:
        turned = " transposed" if self.is_transposed else ""
        return f"<matmuld.Stored {self.name!r}{turned} {'×'.join(map(str, self.shape)) or 'number'} {self._dtype} at {self.client.url}>"

    def __getitem__(self, part: Any) -> NoReturn:
        raise TypeError("a handle has no elements: write .get(rows=slice(0, 4), cols=…), or numpy.asarray(handle)")

    def sync(self) -> bool:
        """Uploads the handle's array, unless the server has it or there is none. Returns whether it did."""
        if self.array is None:
            return False
        if self.array.ndim == 0:
            raise ValueError(f"the array {self.name!r} is a number, which cannot be stored: give it at least one dimension")
        shape = ",".join(map(str, self.array.shape))
        body = Body(is_hashed=True)
        body.add(self.array)
        # The array is read for its digest only if the server may have it. With ttl_s the array is always uploaded,
        # because only an upload extends the life of the matrix.
        known = self.client._known.get(self.name) if self._ttl_s is None else None
        if known and known[:2] == (shape, self.array.dtype) and self._is_there(known[3]):
            for _ in body:
                pass
            if body.digest == known[2]:
                self.etag = known[3]
                return False
        query = query_of({"shape": shape, "dtype": self.array.dtype.name, "ttl_s": self._ttl_s})
        headers, _ = self.client._send("PUT", self.name, query, body, {"Content-Type": RAW})
        self._learn(headers["etag"], self.array.shape, self.array.dtype.name)
        self.client._known[self.name] = shape, self.array.dtype, body.digest, headers["etag"]
        return True

    def _is_there(self, etag: str) -> bool:
        try:
            self.client._send("HEAD", self.name, headers={"Accept": RAW, "If-Match": etag})
        except Error as error:
            if error.status not in (404, 412):
                raise
            return False
        return True

    def get(self, *, rows: Part = None, cols: Part = None, dtype: Optional[DTypeLike] = None) -> Any:
        """Returns the matrix, or a part such as `rows=slice(0, 4)`, converted to `dtype`. The server rejects
        negative bounds."""
        query = query_of({"rows": cols, "cols": rows} if self.is_transposed else {"rows": rows, "cols": cols})
        _, array = with_uploads([self], lambda: self.client._send("GET", self.name, query, headers={"Accept": RAW}))
        array = array.T if self.is_transposed else array
        return _convert(array, dtype)

    def delete(self) -> None:
        """Deletes the matrix, if the server has it."""
        self.client.delete(self.name)


def _convert(array: Any, dtype: Optional[DTypeLike]) -> Any:
    if dtype is None:
        return array
    return array.astype(dtype_of(dtype) if isinstance(dtype, str) else dtype, copy=False)


def with_uploads(operands: List[Any], call: Callable[[], Result]) -> Result:
    """Calls `call`. If the server has lost a stored matrix, uploads the handles' arrays and tries again."""
    try:
        return call()
    except Error as error:
        if error.code != "no_such_matrix":
            raise
        kept = [operand for operand in operands if isinstance(operand, Product) or getattr(operand, "array", None) is not None]
        if not kept:
            raise
    for operand in kept:
        if isinstance(operand, Stored):
            operand.sync()
    return call()


class Product(_Operand):
    """A product that is not computed yet, from Client.product or from `@` with a handle. Each call of get,
    store or reduce computes the product, and accepts the parameters of Client.matmul.

    A product can be multiplied again, as in `A @ W1 @ W2`: the inner product stays on the server under a
    temporary name until the outer one is computed. `product + x` adds a bias if x has one dimension, else a
    matrix C.
    """

    def __init__(self, client: Client, a: Any, b: Any) -> None:
        self.client = client
        self.a, self.b = self._operand(a, "a"), self._operand(b, "b")
        self._terms: Dict[str, Any] = {}

    def _operand(self, operand: Any, what: str) -> Any:
        if not isinstance(operand, (Stored, Product)):
            return _Array(as_array(operand, what), operand)
        if operand.client is not self.client:
            raise ValueError(f"{operand!r} belongs to another client: use that client, or write client.stored(name)")
        return operand

    def __repr__(self) -> str:
        terms = "".join(f" + {term!r}" for term in self._terms.values())
        return f"<matmuld.Product {self.a!r} @ {self.b!r}{terms}>"

    @property
    def ndim(self) -> int:
        smaller, larger = sorted([self.a.ndim, self.b.ndim])
        return int(larger - 1 if smaller == 1 else larger)

    def __add__(self, other: Any) -> Product:
        total = copy.copy(self)
        term = self._operand(other, "the term")
        name = "bias" if term.ndim == 1 and self.b.ndim > 1 else "c"
        if name in self._terms:
            raise ValueError("a product adds one bias and one matrix: store this sum, or add the arrays first")
        total._terms = {**self._terms, name: term}
        return total

    __radd__ = __add__

    def __mul__(self, factor: Any) -> NoReturn:
        raise TypeError("a product takes its factor when it is computed: write .get(alpha=…) or .store(name, alpha=…)")

    __rmul__ = __mul__

    def get(self, *, dtype: Optional[DTypeLike] = None, **parameters: Unpack[Parameters]) -> Any:
        """Computes the product, and returns it or the part that `rows` and `cols` select, converted to `dtype`.
        Returns a torch tensor if an operand is one."""
        result = self._run(dict(parameters), {"Accept": RAW})[1]
        result = _convert(result, dtype)
        result = like_operands(result, self._originals())
        return result if result.ndim or not isinstance(result, np.ndarray) else result[()]

    def _originals(self) -> List[Any]:
        """The operands as the caller gave them, with those of inner products."""
        originals: List[Any] = []
        for operand in (self.a, self.b, *self._terms.values()):
            originals += operand._originals() if isinstance(operand, Product) else [getattr(operand, "original", operand)]
        return originals

    def store(self, name: str, *, ttl_s: Optional[int] = None, **parameters: Unpack[Parameters]) -> Stored:
        """Computes the product and stores it on the server. A product whose operand has that name is not sent
        again if the connection breaks, because it may have replaced the operand. The operand's handle then has no
        array, because an upload would undo the product. If `c` is a handle of the name, raises Error
        (`precondition_failed`) if the server has another matrix of that name than the handle's ETag says."""
        if parameters.get("rows") is not None or parameters.get("cols") is not None:
            raise TypeError("store stores the whole product: cut out the part later, by get(rows=…, cols=…)")
        c = parameters.get("c", self._terms.get("c"))
        old = c if isinstance(c, Stored) and c.name == name else None
        condition = {"If-Match": old.etag} if old and old.etag else {}
        headers, _ = self._run(dict(parameters), condition, {"out": name, "reply": "none", "ttl_s": ttl_s})
        self.client._known.pop(name, None)
        for operand in (self.a, self.b, c, parameters.get("bias", self._terms.get("bias"))):
            if isinstance(operand, Stored) and operand.name == name:
                operand._learn_head(headers).array = None
        return Stored(self.client, name)._learn_head(headers)

    def reduce(self, *figures: str, **parameters: Unpack[Parameters]) -> Dict[str, Any]:
        """Computes figures of the product or its part: sum, trace, min, max, max_abs, norm, finite. Figures
        of integers are exact, except the norm."""
        reply = self._run(dict(parameters), {}, {"reduce": ",".join(figures)})[1]
        # JSON has NaN and the infinities as strings, and whole floats without a point.
        is_float = "int" not in reply["dtype"]
        return {
            name: float(value) if isinstance(value, str) or is_float and type(value) is int else value
            for name, value in reply["reduce"].items()
        }

    def _run(
        self, parameters: Dict[str, Any], headers: Dict[str, str], own: Optional[Dict[str, Any]] = None
    ) -> Tuple[Headers, Any]:
        """Computes the product by one request. `own` are parameters that the caller cannot give."""
        check_names(parameters)
        terms = {name: self._operand(parameters.pop(name), name) for name in ("c", "bias") if parameters.get(name) is not None}
        if not terms.keys().isdisjoint(self._terms):
            raise TypeError("the product already has this term: give it once, by + or by name")
        operands = {"a": self.a, "b": self.b, **self._terms, **terms}
        begun = time.perf_counter()
        # A lost c is not uploaded again, because the value may be a sum that has grown since its upload.
        lost = [operand for name, operand in operands.items() if name != "c"]
        reply_headers, result = with_uploads(lost, lambda: self._send(operands, query_of(parameters), headers, query_of(own or {})))
        self.client._local.last = parse_reply(reply_headers, (time.perf_counter() - begun) * 1000)
        return reply_headers, result

    def _send(
        self, operands: Dict[str, Any], parameters: Dict[str, Any], headers: Dict[str, str], own: Dict[str, Any]
    ) -> Tuple[Headers, Any]:
        with _inner_products(operands) as computed:
            query, body = encode(computed, dict(parameters))
            query.update(own)
            names = {operand.name for operand in computed.values() if isinstance(operand, Stored)}
            try:
                return self.client._multiply(query, body, headers, bool(names) or "out" in own, own.get("out") not in names)
            except Error as error:
                if error.problem.get("field") == "variant":
                    names = {str(row["name"]) for row in self.client.variants()}
                    if parameters.get("variant") not in names:
                        error.args = (f"{error}{suggest(str(parameters.get('variant')), names)}",)
                raise


class _Array:
    """An operand that the request contains: the array, and the caller's object."""

    def __init__(self, array: np.ndarray[Any, Any], original: Any) -> None:
        self.array, self.original = array, original
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __repr__(self) -> str:
        return f"<array {'×'.join(map(str, self.array.shape)) or 'number'} {self.array.dtype}>"


@contextlib.contextmanager
def _inner_products(operands: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Stores the operands that are products, and deletes them at the end."""
    with contextlib.ExitStack() as stack:
        computed = dict(operands)
        for name, operand in operands.items():
            if isinstance(operand, Product):
                computed[name] = operand.store("temporary-" + secrets.token_hex(8), ttl_s=_TEMPORARY_S)
                stack.callback(_try_to_delete, computed[name])
        yield computed


def _try_to_delete(matrix: Stored) -> None:
    """If the request fails, the server deletes the matrix later, and the result or error of the product counts."""
    with contextlib.suppress(Error, OSError):
        matrix.delete()


def _common_type(types: List[np.dtype[Any]]) -> Optional[np.dtype[Any]]:
    """Returns the type that NumPy converts both arrays of a product to, but one that the server has. Returns
    None if there is no array."""
    if not types:
        return None
    try:
        dtype = np.result_type(*types)
    except TypeError as error:
        raise TypeError(f"{types[0]} and {types[1]} have no common type: convert one operand by .astype(…)") from error
    return np.dtype("int32") if dtype == np.int16 else dtype


def encode(operands: Dict[str, Union[_Array, Stored]], query: Dict[str, Any]) -> Tuple[Dict[str, Any], Body]:
    """Adds the operands to the query. Returns the query and the body, which has the elements of the arrays."""
    body = Body()
    factors = {name: operands[name] for name in ("a", "b")}
    dtype = _common_type([x.dtype for x in factors.values() if isinstance(x, _Array)])
    columns = factors["b"].shape[-2 if query.get("transpose_b") == "true" else -1] if factors["b"].ndim > 1 else None
    for name, factor in factors.items():
        flips = isinstance(factor, Stored) and factor.is_transposed
        if isinstance(factor, Stored):
            query[f"{name}_from"] = factor.name
            if dtype is not None and factor.dtype != dtype:
                advice = f"convert the other operand, as by .astype({factor.dtype.name!r})"
                raise TypeError(f"{factor!r} multiplies only {factor.dtype}, not {dtype}: {advice}")
        else:
            array = factor.array
            if array.ndim == 0:
                raise ValueError(f"{name} is a number: the operands of a product have at least one dimension")
            # An array in Fortran order is sent as its transpose, with a flag, so the server transposes back.
            if array.ndim > 1 and not array.flags.c_contiguous and array.swapaxes(-1, -2).flags.c_contiguous:
                array, flips = array.swapaxes(-1, -2), True
            query[f"{name}_shape"] = ",".join(map(str, array.shape))
            assert dtype is not None
            query["dtype"] = dtype.name
            body.add(array, dtype)
        if flips:
            query[f"transpose_{name}"] = "false" if query.get(f"transpose_{name}") == "true" else "true"
    terms = {name: operands[name] for name in ("c", "bias") if name in operands}
    if any(isinstance(term, _Array) for term in terms.values()) and "result_dtype" not in query:
        name = (factors["b"].dtype if dtype is None else dtype).name
        query["result_dtype"] = _RESULTS.get(name, name)
    for name, term in terms.items():
        if isinstance(term, Stored):
            if term.is_transposed:
                raise ValueError(f"{name} is a transposed handle: a product can transpose only its operands a and b")
            query[f"{name}_from"] = term.name
            continue
        if name == "bias" and term.ndim != 1:
            raise ValueError(f"bias has {term.ndim} dimensions: it must be a vector")
        if name == "bias" and columns is not None and term.shape[0] != columns:
            raise ValueError(f"bias has {term.shape[0]} elements, but the result has {columns} columns: it must have one for each")
        if name == "c" and term.ndim == 0 and max(factor.ndim for factor in factors.values()) > 1:
            raise ValueError("c is a number, but the result is an array: write np.full(shape, c) with the result's shape")
        if name == "c" and term.ndim > 0:
            query["c_shape"] = ",".join(map(str, term.array.shape))
        query[name] = "body"
        result_dtype = dtype_of(query["result_dtype"])
        if not np.can_cast(term.array.dtype, result_dtype, "same_kind"):
            raise TypeError(
                f"{name} is {term.array.dtype}, but the result is {result_dtype}: write {name}.astype({result_dtype.name!r})"
            )
        body.add(term.array, result_dtype)
    return query, body
