"""Round trips through NumPy's own np.save and np.load: numpy.py URL FOLDER.

Random matrices in C and in Fortran order are sent by curl as forms; the reply is compared with the product in
float64 by the bound that every float32 result keeps: 2(k+8)u|A||B| + k 2^-149, u = 2^-24. Transposes come back bit
for bit, as files and raw.
"""

import itertools
import subprocess
import sys

# The script's own name is NumPy's: its folder must not be where imports are looked for.
sys.path.pop(0)
import numpy as np  # noqa: E402

VERSIONS = [(1, 0), (2, 0), (3, 0)]
SHAPES = [
    (1, 1, 1), (2, 3, 4), (3, 2, 1), (1, 17, 5), (33, 1, 31), (64, 64, 64), (127, 65, 130),
    (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (0, 0, 5), (5, 0, 0),
]  # fmt: skip
# Of transposes: a side more than a tile, a tile, and less; and none.
TRANSPOSED_SHAPES = [(1, 1), (1, 70), (70, 1), (31, 33), (32, 64), (127, 130), (200, 150), (0, 3), (3, 0), (0, 0)]


def curl(folder, *arguments):
    """Leaves the reply, which must be 200, in the folder's file c.npy, and returns the file's name."""
    command = ["curl", "-s", "--max-time", "60", "-o", f"{folder}/c.npy", "-w", "%{http_code}", *arguments]
    status = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert status == "200", f"status {status}: {open(f'{folder}/c.npy').read()}"
    return f"{folder}/c.npy"


def form(folder, version, options, **matrices):
    """The arguments of curl for a form of these matrices, written to files, and options."""
    for name, matrix in matrices.items():
        with open(f"{folder}/{name}.npy", "wb") as file:
            np.lib.format.write_array(file, matrix, version=version)
    fields = [f"{name}=@{folder}/{name}.npy" for name in matrices] + options
    return [argument for field in fields for argument in ("-F", field)]


def check(c, a, b):
    """Element by element: the bound where the exact result is finite, else NaN or infinity as IEEE 754 has it."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = wide_a @ wide_b
        size = np.abs(wide_a) @ np.abs(wide_b)
        bound = 2 * (a.shape[1] + 8) * 2.0**-24 * size + a.shape[1] * 2.0**-149
        assert c.dtype == np.dtype("<f4") and c.flags["C_CONTIGUOUS"], (c.dtype, c.flags)
        assert c.shape == exact.shape, (c.shape, exact.shape)
        is_same = (c == exact) | (np.isnan(c) & np.isnan(exact))
        right = np.where(np.isfinite(exact), np.abs(c - exact) <= bound, is_same)
    assert right.all(), f"{a.shape} by {b.shape}: {np.count_nonzero(~right)} elements are wrong"


def operand(random, rows, cols, order, transpose, special):
    matrix = random.standard_normal((cols, rows) if transpose else (rows, cols)).astype(np.float32)
    if special and matrix.size > 0:
        matrix.flat[random.integers(0, matrix.size, 3)] = [np.nan, np.inf, -np.inf]
    return np.array(matrix, order=order)


def check_products(url, folder, random):
    for case, ((m, k, n), orders) in enumerate(itertools.product(SHAPES, ("CC", "CF", "FC", "FF"))):
        transpose_a, transpose_b, special = random.integers(0, 2, 3)
        a = operand(random, m, k, orders[0], transpose_a, special)
        b = operand(random, k, n, orders[1], transpose_b, special)
        options = ["variant=" + ["naive", "tiled_8", "tiled_32", "auto"][case // 3 % 4],
                   f"transpose_a={transpose_a}", f"transpose_b={transpose_b}"]  # fmt: skip
        c = np.load(curl(folder, *form(folder, VERSIONS[case % 3], options, a=a, b=b), f"{url}/v1/matmul"))
        check(c, a.T if transpose_a else a, b.T if transpose_b else b)


def check_bits(c, a, what):
    expected = np.ascontiguousarray(a.T)
    assert c.dtype == a.dtype and c.shape == expected.shape and c.flags["C_CONTIGUOUS"], (what, c.dtype, c.shape)
    assert c.tobytes() == expected.tobytes(), f"{what}: the bits differ"


def check_transposes(url, folder, random):
    for case, (dtype, (m, n), order) in enumerate(itertools.product(("<f4", "<f8", "<i4", "<i8"), TRANSPOSED_SHAPES, "CF")):
        what = f"{dtype} {m}x{n} in order {order}"
        variant = ["naive", "shared", "auto"][case // 3 % 3]
        # Every bit pattern: NaNs of all payloads, subnormal numbers, the ends of the integers.
        elements = np.frombuffer(random.bytes(m * n * np.dtype(dtype).itemsize), dtype)
        a = np.array(elements.reshape(m, n), order=order)
        files = form(folder, VERSIONS[case % 3], [f"variant={variant}"], a=a)
        check_bits(np.load(curl(folder, *files, f"{url}/v1/transpose")), a, what)
        np.ascontiguousarray(a).tofile(f"{folder}/raw")
        query = f"?m={m}&n={n}&dtype={np.dtype(dtype).name}&variant={variant}"
        c = curl(folder, "-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw",
                 f"{url}/v1/transpose{query}")  # fmt: skip
        check_bits(np.fromfile(c, dtype).reshape(n, m), a, f"{what}, raw")


check_products(*sys.argv[1:], np.random.default_rng(1))
check_transposes(*sys.argv[1:], np.random.default_rng(2))
