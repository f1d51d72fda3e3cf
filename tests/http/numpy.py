"""Compares the service with NumPy, which writes the files that curl sends, and reads the replies.
Usage: numpy.py URL FOLDER.

Operands are in C and Fortran order, as forms, raw data and JSON. Products of random numbers of every type
must be within an error bound. Products and stacks of integers must equal np.matmul's. Transposes must have
equal bits, also as CSV.
"""

import itertools
import json
import subprocess
import sys

# Python would import this file instead of NumPy if this folder were on the path.
sys.path.pop(0)
import numpy as np  # noqa: E402

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

VERSIONS = [(1, 0), (2, 0), (3, 0)]
# Shapes of transposes, around the size of a tile, and empty
TRANSPOSED_SHAPES = [(1, 1), (1, 70), (70, 1), (31, 33), (32, 64), (127, 130), (200, 150), (0, 3), (3, 0), (0, 0)]


def curl(folder, *arguments):
    """Runs curl, which must get status 200. Returns the file with the reply."""
    command = ["curl", "-s", "--max-time", "60", "-o", f"{folder}/c.npy", "-w", "%{http_code}", *arguments]
    status = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert status == "200", f"status {status}: {open(f'{folder}/c.npy').read()}"
    return f"{folder}/c.npy"


def form(folder, version, options, **matrices):
    """Writes the matrices to files. Returns curl's arguments for a form with these files and options."""
    for name, matrix in matrices.items():
        with open(f"{folder}/{name}.npy", "wb") as file:
            np.lib.format.write_array(file, matrix, version=version)
    fields = [f"{name}=@{folder}/{name}.npy" for name in matrices] + options
    return [argument for field in fields for argument in ("-F", field)]


def check_bits(c, a, what):
    expected = np.ascontiguousarray(a.T)
    assert c.dtype == a.dtype and c.shape == expected.shape and c.flags["C_CONTIGUOUS"], (what, c.dtype, c.shape)
    assert c.tobytes() == expected.tobytes(), f"{what}: the bits differ"


def check_transposes(url, folder, random):
    for case, (dtype, (m, n), order) in enumerate(itertools.product(("<f4", "<f8", "<i4", "<i8"), TRANSPOSED_SHAPES, "CF")):
        what = f"{dtype} {m}x{n} in order {order}"
        variant = ["naive", "shared", "auto"][case // 3 % 3]
        # Random bits include NaNs with all payloads, subnormals and extreme integers.
        elements = np.frombuffer(random.bytes(m * n * np.dtype(dtype).itemsize), dtype)
        a = np.array(elements.reshape(m, n), order=order)
        files = form(folder, VERSIONS[case % 3], [f"variant={variant}"], a=a)
        check_bits(np.load(curl(folder, *files, f"{url}/v1/transpose")), a, what)
        np.ascontiguousarray(a).tofile(f"{folder}/raw")
        query = f"?m={m}&n={n}&dtype={np.dtype(dtype).name}&variant={variant}"
        c = curl(folder, "-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw",
                 f"{url}/v1/transpose{query}")  # fmt: skip
        check_bits(np.fromfile(c, dtype).reshape(n, m), a, f"{what}, raw")


# Each row: element type, result type, twice the unit roundoff of sums, unit roundoff of the result
TYPES = [("float64", "float64", 2.0**-52, 0), ("float64", "float32", 2.0**-52, 2.0**-24),
         ("float32", "float16", 2.0**-23, 2.0**-11), ("float16", "float16", 2.0**-23, 2.0**-11),
         ("float16", "float32", 2.0**-23, 0), ("bfloat16", "bfloat16", 2.0**-23, 2.0**-8),
         ("bfloat16", "float32", 2.0**-23, 0), ("float32", "bfloat16", 2.0**-23, 2.0**-8),
         ("float8_e4m3fn", "float32", 2.0**-23, 0), ("float8_e5m2", "float16", 2.0**-23, 2.0**-11),
         ("int8", "int32", 0, 0), ("uint8", "int32", 0, 0), ("bool", "int32", 0, 0),
         ("int32", "int32", 0, 0), ("int64", "int64", 0, 0)]  # fmt: skip


def dtype_of(name):
    """Returns NumPy's type of this name, or None if no installed package has it."""
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name) if hasattr(np, name) else None


def typed(random, dtype, shape, order):
    """Returns a random matrix: integers of the type's whole range, or floats near 1."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        matrix = random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    elif dtype.kind == "b":
        matrix = random.integers(0, 2, shape).astype(bool)
    else:
        matrix = random.standard_normal(shape).astype(dtype)
    return np.array(matrix, order=order)


def check_typed(c, a, b, sums, rounding, what):
    if a.dtype.kind in "iub":
        expected = a.astype(c.dtype) @ b.astype(c.dtype)
        assert (c == expected).all(), f"{what}: {np.count_nonzero(c != expected)} elements are wrong"
        return
    wide_a, wide_b = a.astype(np.longdouble), b.astype(np.longdouble)
    exact, size = wide_a @ wide_b, np.abs(wide_a) @ np.abs(wide_b)
    bound = (a.shape[1] + 8) * sums * size * (1 + rounding) + rounding * np.abs(exact) + 1e-7 * (rounding > 0)
    wrong = np.count_nonzero(np.abs(c.astype(np.longdouble) - exact) > bound)
    assert wrong == 0, f"{what}: {wrong} elements are wrong"


def check_types(url, folder, random):
    for case, ((name, result, sums, rounding), variant) in enumerate(
        itertools.product(TYPES, ("naive", "tiled_16", "tiled_32", "auto"))
    ):
        what = f"{name} to {result} by {variant}"
        dtype, c_dtype = dtype_of(name), dtype_of(result)
        if dtype is None or c_dtype is None:
            continue
        m, k, n = [(1, 70, 1), (33, 65, 34), (64, 40, 97)][case % 3]
        a = typed(random, dtype, (m, k), "CF"[case % 2])
        b = typed(random, dtype, (k, n), "CF"[case // 2 % 2])
        options = [f"dtype={name}", f"result_dtype={result}", f"variant={variant}"]
        c = np.load(curl(folder, *form(folder, VERSIONS[0], options, a=a, b=b), f"{url}/v1/matmul"))
        c = c.view(c_dtype) if c.dtype.kind == "V" else c
        assert c.dtype == c_dtype and c.shape == (m, n), (what, c.dtype, c.shape)
        check_typed(c, a, b, sums, rounding, what)
        raw = np.ascontiguousarray(a).tobytes() + np.ascontiguousarray(b).tobytes()
        open(f"{folder}/raw", "wb").write(raw)
        query = "&".join([f"m={m}&k={k}&n={n}", *options])
        octets = ["-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw"]
        got = np.fromfile(curl(folder, *octets, f"{url}/v1/matmul?{query}"), c_dtype)
        check_typed(got.reshape(m, n), a, b, sums, rounding, f"{what}, raw")
        # JSON numbers in requests and replies must be read as equal elements.
        body = {"a": a.tolist(), "b": b.tolist(), "dtype": name, "result_dtype": result, "variant": variant}
        json.dump(body, open(f"{folder}/body", "w"))
        reply = json.load(open(curl(folder, "-d", f"@{folder}/body", f"{url}/v1/matmul")))
        assert np.array(reply["c"], c_dtype).tobytes() == got.tobytes(), f"{what}: JSON differs from raw"


def check_csv(url, folder, random):
    """Transposes of CSV files by np.savetxt, read with np.loadtxt, must have equal bits."""
    for name, fmt, delimiter in (("float32", "%.18e", ","), ("float64", "%.18e", ";"), ("int64", "%d", ",")):
        for m, n in ((1, 1), (3, 70), (200, 150)):
            a = typed(random, np.dtype(name), (m, n), "C")
            if name != "int64":
                a.flat[0] = [np.nan, np.inf, -np.inf][m % 3]
            np.savetxt(f"{folder}/a.csv", a, fmt=fmt, delimiter=delimiter)
            c = curl(folder, "-H", "Accept: text/csv", "-F", f"a=@{folder}/a.csv", "-F", f"dtype={name}",
                     f"{url}/v1/transpose")  # fmt: skip
            check_bits(np.loadtxt(c, dtype=name, delimiter=",", ndmin=2), a, f"{name} {m}x{n} as CSV")


# Shapes of stacks that broadcast, of every rank
PAIRS = [
    ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((8, 1, 5, 4), (3, 4, 6)), ((1, 1, 2, 3), (3, 1)), ((2, 3, 1, 5), (2, 1, 5, 2)),
    ((2, 1, 2, 3, 4), (3, 2, 4, 2)), ((2, 1, 2, 1, 3, 4), (3, 1, 2, 4, 2)), ((2, 1, 2, 1, 2, 3, 2), (2, 1, 2, 2, 3)),
    ((2, 1, 2, 1, 2, 1, 3, 2), (1, 2, 1, 2, 1, 2, 2, 3)), ((70, 40, 3), (3, 50)), ((2, 3, 40, 65), (2, 1, 65, 33)),
    ((0,), (0,)), ((0,), (0, 3)), ((0, 2, 3), (3, 4)), ((2, 0, 3), (3, 4)), ((2, 2, 0), (0, 4)), ((2, 0), (5, 0, 4)),
    ((3, 0, 2, 3), (1, 3, 0)),
]  # fmt: skip
WHOLE_TYPES = ["float32", "int8", "float64", "float16", "int64", "bool"]


def small(random, name, shape, order):
    """Returns random integers so small that their products are exact in every result type."""
    return np.array(random.integers(0, 2, shape) if name in ("bool", "float16") else random.integers(-9, 9, shape)).astype(name, order=order)


def swapped(matrix, flag):
    return np.swapaxes(matrix, -1, -2) if flag and matrix.ndim > 1 else matrix


def check_exact(got, expected, shape, what):
    assert tuple(shape) == expected.shape, f"{what}: the shape is {shape}, not {expected.shape}"
    assert (got.reshape(expected.shape) == expected).all(), f"{what}: elements are wrong"


def check_stacks(url, folder, random):
    for case, ((a_shape, b_shape), name, order) in enumerate(itertools.product(PAIRS, WHOLE_TYPES, ("CC", "CF", "FC", "FF"))):
        if (case + case // 24) % 7 > 0:  # takes every seventh combination, to save time
            continue
        flags = random.integers(0, 2, 2)
        a, b = (small(random, name, swapped(np.empty(shape), flag).shape, order[index])
                for index, (shape, flag) in enumerate(zip((a_shape, b_shape), flags)))  # fmt: skip
        expected = np.matmul(swapped(a, flags[0]).astype(np.int64), swapped(b, flags[1]).astype(np.int64))
        what = f"{name} {a.shape} by {b.shape} in {order}, flags {flags}"
        variant = ["naive", "tiled_16", "auto"][case % 5 % 3]
        options = [f"transpose_a={flags[0]}", f"transpose_b={flags[1]}", f"variant={variant}"]
        c = np.load(curl(folder, *form(folder, VERSIONS[case % 3], options, a=a, b=b), f"{url}/v1/matmul"))
        assert c.flags["C_CONTIGUOUS"], what
        check_exact(c, expected, c.shape, what)
        open(f"{folder}/raw", "wb").write(a.tobytes("C") + b.tobytes("C"))
        shapes = [f"{which}_shape={','.join(map(str, one.shape))}" for which, one in (("a", a), ("b", b))]
        query = "&".join([*shapes, f"dtype={name}", *options])
        octets = ["-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw"]
        reply = json.load(open(curl(folder, "-H", "Accept: application/json", *octets, f"{url}/v1/matmul?{query}")))
        assert reply["c"] == expected.tolist(), f"{what}: the JSON is nested otherwise"
        check_exact(np.array(reply["c"]), expected, reply["shape"], f"{what}, raw to JSON")
        if 0 in a.shape + b.shape:  # [[], []] does not tell its last dimension
            continue
        members = {"a": a.tolist(), "b": b.tolist(), "dtype": name, "variant": variant}
        json.dump(members | {"transpose_a": bool(flags[0]), "transpose_b": bool(flags[1])}, open(f"{folder}/body", "w"))
        got = curl(folder, "-H", "Accept: application/octet-stream", "-d", f"@{folder}/body", f"{url}/v1/matmul")
        check_exact(np.fromfile(got, c.dtype), expected, expected.shape, f"{what}, JSON to raw")


def check_stacks_transposed(url, folder, random):
    shapes = [(5, 2, 3), (2, 3, 4, 5), (1, 2, 1, 2, 3, 1, 2, 2), (0, 2, 3), (2, 0, 3), (3, 70, 33)]
    for shape, name, order in itertools.product(shapes, ("int8", "float16", "int32", "float64"), "CF"):
        a = typed(random, np.dtype(name), shape, order)
        expected = np.ascontiguousarray(np.swapaxes(a, -1, -2))
        what = f"{name} {shape} in order {order}, transposed"
        c = np.load(curl(folder, *form(folder, VERSIONS[0], [], a=a), f"{url}/v1/transpose"))
        assert c.shape == expected.shape and c.tobytes() == expected.tobytes(), what
        open(f"{folder}/raw", "wb").write(a.tobytes("C"))
        query = f"shape={','.join(map(str, shape))}&dtype={name}"
        octets = ["-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw"]
        got = open(curl(folder, *octets, f"{url}/v1/transpose?{query}"), "rb").read()
        assert got == expected.tobytes(), f"{what}, raw"


check_transposes(*sys.argv[1:], np.random.default_rng(2))
check_types(*sys.argv[1:], np.random.default_rng(3))
check_csv(*sys.argv[1:], np.random.default_rng(4))
check_stacks(*sys.argv[1:], np.random.default_rng(5))
check_stacks_transposed(*sys.argv[1:], np.random.default_rng(6))
