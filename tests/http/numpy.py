"""Round trips through NumPy's own np.save and np.load: numpy.py URL FOLDER.

Random matrices in C and in Fortran order are sent by curl as forms; the reply is compared with the product in
float64 by the bound that every float32 result keeps: 2(k+8)u|A||B| + k 2^-149, u = 2^-24.
"""

import subprocess
import sys

# The script's own name is NumPy's: its folder must not be where imports are looked for.
sys.path.pop(0)
import numpy as np  # noqa: E402

SHAPES = [
    (1, 1, 1), (2, 3, 4), (3, 2, 1), (1, 17, 5), (33, 1, 31), (64, 64, 64), (127, 65, 130),
    (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (0, 0, 5), (5, 0, 0),
]  # fmt: skip


def post(url, folder, a, b, version, *options):
    for name, matrix in (("a", a), ("b", b)):
        with open(f"{folder}/{name}.npy", "wb") as file:
            np.lib.format.write_array(file, matrix, version=version)
    command = ["curl", "-s", "--max-time", "60", "-o", f"{folder}/c.npy", "-w", "%{http_code}"]
    command += ["-F", f"a=@{folder}/a.npy", "-F", f"b=@{folder}/b.npy"]
    for option in options:
        command += ["-F", option]
    status = subprocess.run(command + [f"{url}/v1/matmul"], stdout=subprocess.PIPE, check=True).stdout.decode()
    if status != "200":
        raise AssertionError(f"status {status}: {open(f'{folder}/c.npy').read()}")
    return np.load(f"{folder}/c.npy")


def check(c, a, b):
    """Element by element: the bound where the exact result is finite, else NaN or infinity as IEEE 754 has it."""
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = wide_a @ wide_b
        size = np.abs(wide_a) @ np.abs(wide_b)
    bound = 2 * (a.shape[1] + 8) * 2.0**-24 * size + a.shape[1] * 2.0**-149
    assert c.dtype == np.dtype("<f4") and c.flags["C_CONTIGUOUS"], (c.dtype, c.flags)
    assert c.shape == exact.shape, (c.shape, exact.shape)
    finite = np.isfinite(exact)
    with np.errstate(invalid="ignore"):
        right = np.where(finite, np.abs(c - exact) <= bound, (c == exact) | (np.isnan(c) & np.isnan(exact)))
    assert right.all(), f"{a.shape} by {b.shape}: {np.count_nonzero(~right)} elements are wrong"


def operand(random, rows, cols, order, transpose, special):
    matrix = random.standard_normal((cols, rows) if transpose else (rows, cols)).astype(np.float32)
    if special and matrix.size > 0:
        where = random.integers(0, matrix.size, 3)
        matrix.flat[where] = [np.nan, np.inf, -np.inf]
    return np.array(matrix, order=order)


def main(url, folder):
    random = np.random.default_rng(1)
    cases = 0
    for m, k, n in SHAPES:
        for a_order, b_order in ("CC", "CF", "FC", "FF"):
            transpose_a, transpose_b, special = random.integers(0, 2, 3).astype(bool)
            version = [(1, 0), (2, 0), (3, 0)][cases % 3]
            variant = ["naive", "tiled_8", "tiled_32", "auto"][cases // 3 % 4]
            a = operand(random, m, k, a_order, transpose_a, special)
            b = operand(random, k, n, b_order, transpose_b, special)
            c = post(url, folder, a, b, version, f"variant={variant}", f"transpose_a={str(transpose_a).lower()}",
                     f"transpose_b={int(transpose_b)}")  # fmt: skip
            check(c, a.T if transpose_a else a, b.T if transpose_b else b)
            cases += 1
    print(f"{cases} products")


main(*sys.argv[1:])
