"""Converts operands to NumPy arrays that the server accepts, and results to torch tensors. Knows no requests.

torch and pandas are never imported here: an operand can be of their types only if the caller imported them.
"""

from __future__ import annotations

import itertools
import functools
import sys
from typing import Any, Iterable, List

import numpy as np

# The server's types that NumPy lacks, with the type of equally many bytes that torch and NumPy share.
_ML_DTYPES = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}

_TYPES = {"float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool", *_ML_DTYPES}

_NUMPY_TYPES = {np.dtype(name).newbyteorder("<") for name in _TYPES.difference(_ML_DTYPES)}

# Types that the server lacks, with the smallest of its types that holds all their values.
_WIDER = {"int16": "<i4", "uint16": "<i4", "uint32": "<i8"}

# What to write for an array of any other type, by the kind of the type.
_IF_NUMBERS = "write .astype(np.float64) if every element is a number"
_ADVICE = {
    "u": "write .astype(np.int64) if every element is below 2**63, or else .astype(np.float64)",
    "f": "write .astype(np.float64)",
    "c": "write .real, and multiply .imag separately if you need it",
    "m": "write .astype(np.int64)",
    "M": "write .astype(np.int64)",
    "V": "write .view(dtype) with the type of the elements, because np.save does not keep the types of ml_dtypes",
}


@functools.lru_cache(maxsize=None)
def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the little-endian NumPy type. Raises ImportError if ml_dtypes is needed and missing."""
    dtype: np.dtype[Any]
    if name not in _ML_DTYPES:
        dtype = np.dtype(name).newbyteorder("<")
        return dtype
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"the type {name} needs the package ml_dtypes: pip install ml_dtypes") from error
    dtype = np.dtype(getattr(ml_dtypes, name))
    return dtype


def _is_from(operand: Any, package: str, *classes: str) -> bool:
    module = sys.modules.get(package)
    return any(isinstance(operand, getattr(module, name, ())) for name in classes)


def _from_torch(tensor: Any) -> Any:
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"the tensor has the layout {tensor.layout}: write .to_dense()")
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).replace("torch.", "")
    if name in _ML_DTYPES:
        dtype = dtype_of(name)
        return tensor.view(getattr(sys.modules["torch"], _ML_DTYPES[name])).numpy().view(dtype)
    try:
        return tensor.numpy()
    except TypeError as error:
        advice = "write .to(torch.float32), or .dequantize() if it is quantized"
        raise TypeError(f"NumPy has no type {tensor.dtype}: {advice}") from error


def _from_pandas(frame: Any) -> Any:
    types = [frame.dtype] if frame.ndim == 1 else list(frame.dtypes)
    columns = ["the series"] if frame.ndim == 1 else [f"column {name!r}" for name in frame.columns]
    names = [f"{column} ({dtype})" for column, dtype in zip(columns, types)]
    others = [name for name, dtype in zip(names, types) if dtype.kind not in "biufc"]
    if others:
        drop = "" if frame.ndim == 1 else ', or .select_dtypes("number") to leave them out'
        raise TypeError(f"the type is not numeric in {_shorten(others)}: write .astype(float) if all values are numbers{drop}")
    # Only nullable types have missing values. In the other types, NaN is a number as in NumPy.
    is_nullable = [hasattr(dtype, "numpy_dtype") for dtype in types]
    if any(is_nullable):
        missing = list(itertools.compress(names, np.logical_and(is_nullable, frame.isna().any())))
        if missing:
            raise TypeError(f"values are missing in {_shorten(missing)}: write .fillna(0), or .to_numpy(float) for NaN")
    array = np.asarray(frame)
    if array.dtype == object:  # pandas knows no common type for bool and float64, or for Int64 and float64
        array = frame.to_numpy(np.result_type(np.bool_, *(getattr(dtype, "numpy_dtype", dtype) for dtype in types)))
    return array


def _shorten(names: List[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def as_array(operand: Any, what: str) -> np.ndarray[Any, Any]:
    """Returns the operand as a little-endian array of a type that the server accepts. Copies only if the type
    or the device requires a copy. Raises TypeError or ValueError with a sentence that begins with `what`."""
    if type(operand) is np.ndarray and operand.dtype in _NUMPY_TYPES:
        return operand
    if isinstance(operand, np.ma.MaskedArray):
        raise TypeError(f"{what} is a masked array: write .filled(0), or .data to use the masked elements too")
    if hasattr(operand, "toarray") and hasattr(operand, "nnz"):
        raise TypeError(f"{what} is a sparse matrix ({type(operand).__name__}): write .toarray()")
    array: np.ndarray[Any, Any]
    try:
        if _is_from(operand, "torch", "Tensor"):
            array = _from_torch(operand)
        elif _is_from(operand, "pandas", "DataFrame", "Series"):
            array = _from_pandas(operand)
        else:
            array = np.asarray(operand)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{what}: {error}") from error
    dtype = array.dtype
    if dtype.name in _WIDER:
        return array.astype(_WIDER[dtype.name])
    if dtype.name in _TYPES:
        return array.astype(dtype.newbyteorder("<")) if dtype.str[0] == ">" else array
    if array.ndim == 0 and dtype.kind in "OSU":
        raise TypeError(f"{what} is not an array of numbers: its type is {type(operand).__name__}")
    advice = _ADVICE.get(dtype.kind, _IF_NUMBERS)
    if dtype.names:
        advice = f"write [{dtype.names[0]!r}], or the name of another field"
    elif dtype.isbuiltin == 2:  # a type of ml_dtypes
        advice = "write .astype(np.float32)"
    raise TypeError(f"{what} is an array of {dtype}, which the server does not have: {advice}")


def like_operands(result: Any, operands: Iterable[Any]) -> Any:
    """Returns the result as a tensor on the device of the first torch tensor among the operands. Without a
    tensor, returns the result itself."""
    for operand in operands:
        if _is_from(operand, "torch", "Tensor"):
            torch, array = sys.modules["torch"], np.asarray(result)
            name = array.dtype.name
            tensor = torch.from_numpy(array.view(_ML_DTYPES.get(name, array.dtype)))
            return tensor.view(getattr(torch, name)).to(operand.device)
    return result
