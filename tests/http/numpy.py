"""Round trips through NumPy's own np.save and np.load: numpy.py URL FOLDER.

Random matrices in C and in Fortran order are sent by curl as forms; the reply is compared with the product in
float64 by the bound that every float32 result keeps: 2(k+8)u|A||B| + k 2^-149, u = 2^-24. Transposes come back bit
for bit, as files and raw; as JSON too, but for what a NaN carries.
"""

import json
import subprocess
import sys

# The script's own name is NumPy's: its folder must not be where imports are looked for.
sys.path.pop(0)
import numpy as np  # noqa: E402

SHAPES = [
    (1, 1, 1), (2, 3, 4), (3, 2, 1), (1, 17, 5), (33, 1, 31), (64, 64, 64), (127, 65, 130),
    (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (0, 0, 5), (5, 0, 0),
]  # fmt: skip


# Of transposes: a side more than a tile, a tile, and less; and none.
TRANSPOSED_SHAPES = [(1, 1), (1, 70), (70, 1), (31, 33), (32, 64), (127, 130), (200, 150), (0, 3), (3, 0), (0, 0)]


def curl(folder, *arguments):
    """Leaves the reply, which must be 200, in the folder's file c.npy."""
    command = ["curl", "-s", "--max-time", "60", "-o", f"{folder}/c.npy", "-w", "%{http_code}", *arguments]
    status = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    if status != "200":
        raise AssertionError(f"status {status}: {open(f'{folder}/c.npy').read()}")


def forms(folder, version, options, **matrices):
    """The arguments of curl for a form of these matrices, written to files, and options."""
    arguments = []
    for name, matrix in matrices.items():
        with open(f"{folder}/{name}.npy", "wb") as file:
            np.lib.format.write_array(file, matrix, version=version)
        arguments += ["-F", f"{name}=@{folder}/{name}.npy"]
    for option in options:
        arguments += ["-F", option]
    return arguments


def post(url, folder, a, b, version, *options):
    curl(folder, *forms(folder, version, options, a=a, b=b), f"{url}/v1/matmul")
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


def check_products(url, folder, random):
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


def check_bits(c, a, what):
    expected = np.ascontiguousarray(a.T)
    assert c.dtype == a.dtype and c.shape == expected.shape and c.flags["C_CONTIGUOUS"], (what, c.dtype, c.shape)
    assert c.tobytes() == expected.tobytes(), f"{what}: the bits differ"


def any_bits(random, dtype, shape, order):
    """Elements of every bit pattern: NaNs of all payloads, subnormal numbers, the ends of the integers."""
    elements = np.frombuffer(random.bytes(shape[0] * shape[1] * np.dtype(dtype).itemsize), dtype).copy()
    if elements.dtype.kind == "f" and elements.size > 3:
        bits = elements.view(f"<u{elements.itemsize}")
        infinity = np.array([np.inf], dtype).view(bits.dtype)[0]
        quiet = np.array([np.nan], dtype).view(bits.dtype)[0]
        bits[:3] = [infinity | bits.dtype.type(1), quiet | bits.dtype.type(5), ~bits.dtype.type(0)]
    if elements.dtype.kind == "i" and elements.size > 1:
        elements[:2] = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    return np.array(elements.reshape(shape), order=order)


def from_json(text, dtype):
    """The matrix of a reply, whose integers Python keeps whole; shaped by the member `shape`."""
    reply = json.loads(text)
    assert reply["dtype"] == np.dtype(dtype).name, reply["dtype"]
    elements = [element for row in reply["c"] for element in row]
    values = [float(element) if isinstance(element, str) else element for element in elements]
    return np.array(values, dtype).reshape(reply["shape"])


def to_json(a):
    special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    rows = [[special.get(str(x), x) for x in row] for row in a.astype(object).tolist()]
    return json.dumps({"a": rows, "dtype": a.dtype.name})


def check_transposes(url, folder, random):
    cases = 0
    url += "/v1/transpose"
    for dtype in ("<f4", "<f8", "<i4", "<i8"):
        for m, n in TRANSPOSED_SHAPES:
            for order in "CF":
                what = f"{dtype} {m}x{n} in order {order}"
                version = [(1, 0), (2, 0), (3, 0)][cases % 3]
                variant = ["naive", "shared", "auto"][cases // 3 % 3]
                a = any_bits(random, dtype, (m, n), order)
                curl(folder, *forms(folder, version, [f"variant={variant}"], a=a), url)
                check_bits(np.load(f"{folder}/c.npy"), a, what)

                np.ascontiguousarray(a).tofile(f"{folder}/raw")
                query = f"?m={m}&n={n}&dtype={np.dtype(dtype).name}&variant={variant}"
                raw = ["-H", "Content-Type: application/octet-stream", "--data-binary", f"@{folder}/raw", url + query]
                curl(folder, *raw)
                check_bits(np.fromfile(f"{folder}/c.npy", dtype).reshape(n, m), a, f"{what}, raw")

                # A NaN is one text, whatever it carries; [] does not say how many columns it has.
                plain = np.where(np.isnan(a), np.array(np.nan, dtype), a) if a.dtype.kind == "f" else a
                curl(folder, "-H", "Accept: application/json", *raw)
                check_bits(from_json(open(f"{folder}/c.npy").read(), dtype), plain, f"{what}, to JSON")
                if m > 0:
                    with open(f"{folder}/a.json", "w") as file:
                        file.write(to_json(plain))
                    curl(folder, "-H", "Accept: application/x-npy", "-H", "Content-Type: application/json",
                         "--data-binary", f"@{folder}/a.json", f"{url}?variant={variant}")  # fmt: skip
                    check_bits(np.load(f"{folder}/c.npy"), plain, f"{what}, from JSON")
                cases += 1
    print(f"{cases} transposes")


def main(url, folder):
    random = np.random.default_rng(1)
    check_products(url, folder, random)
    check_transposes(url, folder, random)


main(*sys.argv[1:])
