"""The parameters of a product, for type checkers and for the query of a request."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping, TypedDict, Union

import numpy as np

if TYPE_CHECKING:
    from typing import Literal

    from numpy.typing import DTypeLike

    Activation = Literal["none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"]

# Neighbouring rows or columns: slice(0, 4) or "0:4".
Part = Union[slice, str, None]


class Options(TypedDict, total=False):
    """How a product is computed, and which part of it is wanted. Client.matmul describes the members."""

    variant: Union[str, None]
    backend: Union[Literal["auto", "cuda", "cpu"], None]
    result_dtype: Union[DTypeLike, None]
    transpose_a: Union[bool, None]
    transpose_b: Union[bool, None]
    timeout_ms: Union[int, None]
    tile: Union[int, None]
    devices: Union[int, Literal["all", "auto"], None]
    vendor: Union[Literal["allow", "never"], None]
    accuracy: Union[Literal["float32", "tf32"], None]
    verify: Union[bool, None]
    rows: Part
    cols: Part


class Parameters(Options, total=False):
    """All parameters of Client.matmul. None means the default."""

    alpha: Any
    beta: Any
    c: Any
    bias: Any
    activation: Union[Activation, None]


_FLAGS = {"transpose_a", "transpose_b", "verify"}


def suggest(name: str, names: Iterable[str]) -> str:
    """Returns "; did you mean …?", or an empty text if no name is similar."""
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def check_names(parameters: Iterable[str]) -> None:
    """Raises TypeError for a parameter that a product does not have."""
    for name in parameters:
        if name not in Parameters.__annotations__:
            raise TypeError(f"a product has no parameter {name!r}{suggest(name, Parameters.__annotations__)}")


def _part(part: Any) -> str:
    if not isinstance(part, slice):
        return str(part)
    if part.step not in (None, 1):
        raise ValueError(f"a step of {part.step} is not supported: only neighbouring rows or columns can be returned")
    return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"


def query_of(parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Converts parameters to values of a query. Omits parameters that are None."""
    query: Dict[str, Any] = {}
    for name, value in parameters.items():
        if value is None:
            continue
        if name in ("rows", "cols"):
            value = _part(value)
        elif name == "result_dtype":
            value = value if isinstance(value, str) else np.dtype(value).name
        elif name in _FLAGS:
            if not any(np.array_equal(value, flag) for flag in (True, False)):
                raise TypeError(f"{name} is {value!r}: it must be True or False")
            value = "true" if value else "false"
        query[name] = value
    return query
