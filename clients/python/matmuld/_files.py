"""Reads arrays from .npy, .npz, .safetensors and .csv files. Knows no requests.

Arrays of .npy and .safetensors files are mapped into memory, so an upload reads them from the file without a copy.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pathlib
import zipfile
import zlib
from typing import Any, Dict, Iterator, Tuple, Union

import numpy as np

from ._arrays import dtype_of

# The types of https://github.com/huggingface/safetensors that NumPy and ml_dtypes have.
_SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip

_SAFETENSORS_HEADER_BYTES_MAX = 100_000_000  # the format's own limit


def load(path: Union[str, os.PathLike[str]]) -> np.ndarray[Any, Any]:
    """Returns the array of a file that contains one."""
    arrays = [array for _, array in itertools.islice(arrays_of(path), 2)]
    if len(arrays) != 1:
        raise ValueError(f"{path} contains {'more than one array' if arrays else 'no array'}, but one is needed")
    return arrays[0]


def arrays_of(path: Union[str, os.PathLike[str]]) -> Iterator[Tuple[str, np.ndarray[Any, Any]]]:
    """Yields each array of the file with its name. The array of a .npy or .csv file has the name of the file
    without the suffix. Raises ValueError if the file is broken, or if it has another suffix."""
    suffix, stem = pathlib.Path(path).suffix.lower(), pathlib.Path(path).stem
    try:
        if suffix == ".npy":
            yield stem, np.lib.format.open_memmap(os.fspath(path), mode="r")
        elif suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    with archive.open(member) as file:
                        yield member[:-4], np.lib.format.read_array(file, allow_pickle=False)
        elif suffix == ".safetensors":
            yield from _read_safetensors(path).items()
        elif suffix == ".csv":
            yield stem, _read_csv(path)
        else:
            raise ValueError("its suffix must be .npy, .npz, .safetensors or .csv")
    except (ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: {error}") from error


def _read_csv(path: Union[str, os.PathLike[str]]) -> np.ndarray[Any, Any]:
    """Reads numbers between commas, or between semicolons if the first line has one."""
    with open(path, encoding="utf-8-sig") as file:
        delimiter = ";" if ";" in file.readline() else ","
        file.seek(0)
        return np.loadtxt(file, delimiter=delimiter, ndmin=2)


def _read_safetensors(path: Union[str, os.PathLike[str]]) -> Dict[str, np.ndarray[Any, Any]]:
    """Checks the whole header before it returns the arrays, so nothing of a broken file is uploaded."""
    content = np.asarray(np.memmap(path, np.uint8, "r"))
    end = 8 + int.from_bytes(content[:8].tobytes(), "little")
    if end > min(content.size, 8 + _SAFETENSORS_HEADER_BYTES_MAX):
        raise ValueError(f"it says that its header ends at byte {end}: that is beyond the file's end or the format's limit")
    arrays = {}
    try:
        header = json.loads(content[8:end].tobytes())
        header.pop("__metadata__", None)
        for name, tensor in header.items():
            if tensor["dtype"] not in _SAFETENSORS:
                raise ValueError(f"{name!r} has the type {tensor['dtype']}: it must be one of {', '.join(_SAFETENSORS)}")
            dtype, shape = dtype_of(_SAFETENSORS[tensor["dtype"]]), tensor["shape"]
            first, last = tensor["data_offsets"]
            if not 0 <= first <= last <= content.size - end or last - first != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name!r} does not fit: bytes {first} to {last} of {content.size - end}, for {shape}")
            arrays[name] = content[end + first : end + last].view(dtype).reshape(shape)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its safetensors header cannot be read: {error}") from error
    return arrays
