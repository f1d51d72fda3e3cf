"""Compares products with alpha, beta, C, bias and activation with NumPy. Usage: epilogue.py URL.

The numbers are so small that the linear part is exact, so elements must be equal. Each case is sent as JSON,
as a form, as raw bytes, and with stored operands. Activations must be within a few units of rounding.
"""

import http.client
import io
import itertools
import json
import math
import sys
import threading
import urllib.parse

# Python would import numpy.py of this folder instead of NumPy if this folder were on the path.
sys.path.pop(0)
import numpy as np  # noqa: E402

NPY, RAW = "application/x-npy", "application/octet-stream"


class Server(http.client.HTTPConnection):
    def ask(self, method, target, body=None, content_type=None, **headers):
        """Returns the status, the headers and the body of a reply."""
        if content_type is not None:
            headers["Content-Type"] = content_type
        self.request(method, target, body, headers)
        reply = self.getresponse()
        return reply.status, reply.headers, reply.read()

    def product(self, query, body=b"", content_type=None):
        """Returns the result of a product, which must succeed."""
        status, _, got = self.ask("POST", f"/v1/matmul?{urllib.parse.urlencode(query)}", body, content_type, Accept=NPY)
        assert status == 200, f"status {status}: {got.decode()}"
        return np.load(io.BytesIO(got))


def read_figures(server, names):
    """Returns the values of these metrics."""
    lines = server.ask("GET", "/metrics")[2].decode().splitlines()
    return [float(line.split()[1]) for name in names for line in lines if line.startswith(name)]


def npy(matrix):
    file = io.BytesIO()
    np.save(file, matrix)
    return file.getvalue()


def words(matrix):
    """Returns a matrix as JSON, with NaN and infinities as strings."""
    if isinstance(matrix, list):
        return [words(one) for one in matrix]
    special = isinstance(matrix, float) and not math.isfinite(matrix)
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(matrix)] if special else matrix


def by_json(server, operands, options):
    """C and the bias come before the members that say their type."""
    members = {name: words(matrix.tolist()) for name, matrix in reversed(operands.items())}
    members |= {f"{name}_shape": matrix.shape for name, matrix in operands.items() if 0 in matrix.shape and name != "bias"}
    return server.product({}, json.dumps(members | options), "application/json")


def by_form(server, operands, options, encode=npy, end="npy"):
    parts = [(f'name="{name}"; filename="{name}.{end}"', encode(matrix)) for name, matrix in operands.items()]
    parts += [(f'name="{name}"', str(value).encode()) for name, value in options.items()]
    body = b"".join(b"--B\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), data) for head, data in parts)
    return server.product({}, body + b"--B--\r\n", "multipart/form-data; boundary=B")


def by_csv(server, operands, options):
    def csv(matrix):
        file = io.BytesIO()
        np.savetxt(file, np.atleast_2d(matrix), fmt="%.18g", delimiter=",")
        return file.getvalue()

    return by_form(server, operands, options, csv, "csv")


def by_raw(server, operands, options):
    query = options | {f"{name}_shape": ",".join(map(str, operands[name].shape)) for name in "ab"}
    query |= {name: "body" for name in ("c", "bias") if name in operands}
    if "c" in operands and operands["c"].shape != np.matmul(operands["a"], operands["b"]).shape:
        query["c_shape"] = ",".join(map(str, operands["c"].shape))
    return server.product(query, b"".join(matrix.tobytes("C") for matrix in operands.values()), RAW)


def by_store(server, operands, options):
    for name, matrix in operands.items():
        status, _, got = server.ask("PUT", f"/v1/matrices/epilogue.{name}", npy(matrix), NPY)
        assert status in (200, 201), got
    return server.product(options | {f"{name}_from": f"epilogue.{name}" for name in operands})


FORMATS = [by_json, by_form, by_raw, by_store]
TYPES = [("float32", "float32"), ("float64", "float64"), ("float64", "float32"), ("float16", "float16"),
         ("float16", "float32"), ("int8", "int32"), ("int32", "int32"), ("int64", "int64")]  # fmt: skip
# Shapes of A, B and C. With int8, some bodies have an odd number of bytes before C.
SHAPES = [
    ((3, 5), (5, 2), (3, 2)), ((1, 1), (1, 1), (1, 1)), ((70, 40), (40, 67), (70, 67)), ((3, 0), (0, 5), (3, 5)),
    ((0, 3), (3, 2), (0, 2)), ((3,), (3, 5), (5,)), ((3, 5), (5,), (3,)), ((3,), (3,), ()), ((4, 2, 3), (3, 5), (4, 2, 5)),
    ((4, 2, 3), (3, 5), (2, 5)), ((4, 2, 3), (4, 3, 5), (1, 2, 5)), ((4, 1, 2, 3), (3, 3, 5), (3, 2, 5)),
    ((4, 2, 3), (3,), (4, 2)), ((4, 2, 3), (3,), (1, 2)), ((3,), (4, 3, 5), (5,)),
]  # fmt: skip
FACTORS = [{}, {"alpha": -2}, {"beta": 3}, {"alpha": 3, "beta": -1, "activation": "relu"}, {"beta": 0}, {"alpha": 0}]


def small(random, dtype, shape, order):
    return np.array(random.integers(-4, 5, shape), order=order).astype(dtype)


def expected_linear(operands, options, result):
    """Returns D of whole numbers, which the result's type represents exactly, or modulo 2 to the power of its bits."""
    wide = {name: matrix.astype(np.int64) for name, matrix in operands.items()}
    d = np.matmul(wide["a"], wide["b"]) * np.int64(options.get("alpha", 1))
    d = d + wide["c"] * np.int64(options.get("beta", 1)) if "c" in wide else d
    d = (d + wide["bias"] if "bias" in wide else d).astype(result)
    return np.maximum(d, 0) if options.get("activation") == "relu" else d


def check_linear(server, random):
    for case, ((name, result), (a, b, c), factors) in enumerate(itertools.product(TYPES, SHAPES, FACTORS)):
        operands = {"a": small(random, name, a, "CF"[case % 2]), "b": small(random, name, b, "FC"[case // 2 % 2])}
        if case % 4 != 3 or "beta" in factors:
            operands["c"] = small(random, result, c, "CF"[case // 4 % 2])
        if case % 3 != 2 and len(b) > 1:
            operands["bias"] = small(random, result, b[-1:], "C")
        options = factors | {"dtype": name, "result_dtype": result, "variant": ["auto", "naive", "tiled_16"][case % 7 % 3]}
        send = FORMATS[case % 5 % 4]
        got, expected = send(server, operands, options), expected_linear(operands, options, result)
        what = f"{send.__name__} of {options} {[(name, matrix.shape) for name, matrix in operands.items()]}"
        assert got.dtype == expected.dtype and got.shape == expected.shape, f"{what}: {got.dtype} {got.shape}"
        assert np.array_equal(got, expected), f"{what}: {got} is not {expected}"


def check_wrapping(server, random):
    """Integers wrap around, and factors are read exactly."""
    for (name, result), send in itertools.product([("int32", "int32"), ("int64", "int64"), ("int8", "int32")], FORMATS):
        limits, range_of = np.iinfo(result), np.iinfo(name)
        operands = {which: random.integers(range_of.min, range_of.max, shape, name, True) for which, shape in (("a", (3, 5)), ("b", (5, 4)))}
        operands |= {which: random.integers(limits.min, limits.max, shape, result, True) for which, shape in (("c", (3, 4)), ("bias", (4,)))}
        for alpha, beta in ((limits.max, limits.min), (limits.min, limits.max - 1), (-1, 3)):
            options = {"alpha": alpha, "beta": beta, "dtype": name}
            with np.errstate(over="ignore"):
                expected = np.matmul(operands["a"].astype(result), operands["b"].astype(result)) * np.array(alpha, result)
                expected = expected + operands["c"] * np.array(beta, result) + operands["bias"]
            assert np.array_equal(send(server, operands, options), expected), f"{send.__name__} of {options}, {name}"


def check_files(server, random):
    """A CSV bias is a line or a column. C in Fortran order and with gaps in a raw body."""
    operands = {"a": small(random, "float32", (3, 5), "C"), "b": small(random, "float32", (5, 4), "C"),
                "c": small(random, "float32", (3, 4), "F"), "bias": small(random, "float32", (4,), "C")}  # fmt: skip
    expected = expected_linear(operands, {}, "float32")
    assert np.array_equal(by_csv(server, operands, {}), expected)
    assert np.array_equal(by_csv(server, operands | {"bias": operands["bias"][:, None]}, {}), expected)
    columns = {"a": small(random, "float32", (4, 2, 3), "C"), "b": small(random, "float32", (3,), "C"),
               "c": small(random, "float32", (4, 2), "F")}  # fmt: skip
    assert np.array_equal(by_form(server, columns, {}), expected_linear(columns, {}, "float32"))
    gaps = np.full((3, 6), np.nan, "float32")
    gaps[:, :4] = operands["c"]
    body = b"".join(one.tobytes("C") for one in (operands["a"], operands["b"], gaps, operands["bias"]))
    got = server.product({"m": 3, "k": 5, "n": 4, "c": "body", "ldc": 6, "bias": "body"}, body, RAW)
    assert np.array_equal(got, expected)


def check_c_as_text(server):
    """CSV cannot show a vector, and CSV and JSON cannot show all shapes without elements. C then has D's shape."""

    def ask(a, b, c, file="c.csv"):
        parts = [("a", "a.npy", npy(np.ones(a, "float32"))), ("b", "b.npy", npy(np.ones(b, "float32"))), ("c", file, c)]
        head = '--B\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n'
        body = b"".join((head % part[:2]).encode() + part[2] + b"\r\n" for part in parts) + b"--B--\r\n"
        return server.ask("POST", "/v1/matmul", body, "multipart/form-data; boundary=B", Accept=NPY)

    def add(*arguments):
        status, _, got = ask(*arguments)
        assert status == 200, f"{arguments}: {got}"
        return np.load(io.BytesIO(got))

    for a, b in ((2,), (2, 3)), ((3, 2), (2,)):
        for c in b"1,2,3\n", b"1\n2\n3\n":
            assert add(a, b, c).tolist() == [3, 4, 5], f"{a} by {b}: {c}"
        for c, file in (b"1,2\n", "c.csv"), (b"1,2,3\n4,5,6\n", "c.csv"), (b"", "c.csv"), (npy(np.ones((1, 3), "float32")), "c.npy"):
            assert ask(a, b, c, file)[0] == 422, f"{a} by {b}: {c}"
    assert add((2,), (2, 1), b"1\n").tolist() == [3]
    for a, b in ((0, 2), (2, 3)), ((3, 2), (2, 0)), ((0, 2), (2,)), ((2,), (2, 0)), ((2, 0, 2), (2, 3)):
        operands = np.ones(a, "float32"), np.ones(b, "float32")
        assert add(a, b, b"").shape == np.matmul(*operands).shape, f"{a} by {b}"
        members = {name: matrix.tolist() for name, matrix in zip("ab", operands)} | {"c": []}
        members |= {f"{name}_shape": matrix.shape for name, matrix in zip("ab", operands) if 0 in matrix.shape}
        assert server.product({}, json.dumps(members), "application/json").shape == np.matmul(*operands).shape, f"{a} by {b}"
        assert ask(a, b, npy(np.ones((0, 0), "float32")), "c.npy")[0] == 422
    for more in {}, {"c_shape": [0, 0]}:
        a = {"a": [], "a_shape": [0, 2]} if more else {"a": [[1, 1]]}
        members = {**a, "b": [[1, 1, 1], [1, 1, 1]], "c": []} | more
        assert server.ask("POST", "/v1/matmul", json.dumps(members))[0] == 422, members


def check_sources(server, random):
    """Generated operands are those that the server shows as a product with identity()."""
    c = server.product({"a_from": "uniform(7)", "b_from": "identity()", "m": 3, "k": 4, "n": 4})
    bias = server.product({"a_from": "uniform(8)", "b_from": "identity()", "m": 1, "k": 4, "n": 4})[0]
    a, b = small(random, "float32", (3, 2), "C"), small(random, "float32", (2, 4), "C")
    query = {"m": 3, "k": 2, "n": 4, "c_from": "uniform(7)", "bias_from": "uniform(8)"}
    assert np.array_equal(server.product(query, a.tobytes() + b.tobytes(), RAW), (a @ b + c) + bias)
    members = {"a": a.tolist(), "b": b.tolist(), "c": {"from": "identity()"}, "beta": 2}
    assert np.array_equal(server.product({}, json.dumps(members)), a @ b + 2 * np.eye(3, 4, dtype="float32"))
    # If the result is a vector, identity() is one row or one column, so only its first element is 1.
    for a, b, ones in (((3,), (3, 4), [0]), ((3, 4), (4,), [0]), ((2, 3, 4), (4,), [0, 3]), ((4,), (2, 4, 3), [0, 3]), ((3,), (3,), [0])):
        members = {"a": np.zeros(a).tolist(), "b": np.zeros(b).tolist(), "c": {"from": "identity()"}}
        got = server.product({}, json.dumps(members))
        assert np.flatnonzero(got).tolist() == ones, f"{a} by {b}: {got}"


def erfc(x):
    return np.vectorize(math.erfc, otypes=[float])(x)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.where(x <= 0, 0.0, x),
    "gelu": lambda x: 0.5 * x * erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def check_activations(server):
    x = np.array([[-np.inf, np.inf, np.nan, -0.0, 0.0, 1, -1, 0.5, -3, 3, -9, 9, 1e-30, 1e4, -1e4, 80, -80]])
    ends = {"gelu": 0, "gelu_tanh": 0, "silu": 0}
    for (name, unit, result), (activation, function) in itertools.product(
        (("float32", 2.0**-24, "float32"), ("float64", 2.0**-53, "float64"), ("float32", 2.0**-24, "float16")), ACTIVATIONS.items()
    ):
        c = x.astype(result)
        exact = c.astype("float64")
        operands = {"a": np.zeros((1, 2), name), "b": np.ones((2, c.shape[1]), name), "c": c}
        for send in FORMATS:
            got = send(server, operands, {"activation": activation, "dtype": name, "result_dtype": result})
            with np.errstate(all="ignore"):
                expected = function(exact)
                expected[0, 0] = ends.get(activation, expected[0, 0])
                rounded = expected.astype(result).astype("float64")
                scale = np.where(activation in ("sigmoid", "tanh"), 1, np.abs(exact))
                bound = 8 * unit * scale + np.abs(np.spacing(rounded.astype(result)).astype(float))
                close = (got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (np.abs(got - rounded) <= bound)
            assert close.all(), f"{activation} of {name} by {send.__name__}: {got} is not {rounded}"
            assert activation != "relu" or not np.signbit(got[0, 3]), "relu of -0 is 0"


def check_unread(server):
    """NaN does not count in a matrix that is not read."""
    nan, ones = np.full((2, 2), np.nan, "float32"), np.ones((2, 2), "float32")
    for send in FORMATS:
        assert (send(server, {"a": ones, "b": ones, "c": nan}, {"beta": 0}) == 2).all(), send
        assert (send(server, {"a": nan, "b": ones, "c": ones, "bias": ones[0]}, {"alpha": 0}) == 2).all(), send
        assert np.isnan(send(server, {"a": nan, "b": ones, "c": ones}, {})).all(), send
    zero = -np.zeros((1, 1), "float32")
    for send in FORMATS:
        got = send(server, {"a": np.zeros((1, 0), "float32"), "b": np.zeros((0, 1), "float32"), "bias": zero[0]}, {"alpha": -1})
        assert np.signbit(got), f"{send.__name__}: -0 + -0 is {got}"


def check_sums(url, random):
    """64 sums by 8 connections lose nothing with If-Match."""
    parts = [small(random, "float64", (30, 20), "C") for _ in range(64)]
    b = small(random, "float64", (20, 10), "C")
    first = Server(url)
    query = {"a_shape": "30,20", "b_shape": "20,10", "dtype": "float64", "out": "acc", "reply": "none"}
    add = f"/v1/matmul?{urllib.parse.urlencode(query | {'c_from': 'acc'})}"
    status, _, got = first.ask("POST", add, parts[0].tobytes() + b.tobytes(), RAW)
    assert status == 404 and json.loads(got)["field"] == "c_from", got
    zeros = bytes(8 * 30 * 20) + b.tobytes()
    for expected in (200, 412):
        status, _, got = first.ask("POST", f"/v1/matmul?{urllib.parse.urlencode(query)}", zeros, RAW, **{"If-None-Match": "*"})
        assert status == expected, got
    failures = []
    figures = 'matmuld_store_bytes{state="stored"}', 'matmuld_transfer_bytes_total{direction="download"}'
    before = read_figures(first, figures)

    def add_parts(index):
        server = Server(url)
        for part in parts[index::8]:
            status = 412
            while status == 412:
                etag = server.ask("HEAD", "/v1/matrices/acc")[1]["ETag"]
                status, _, got = server.ask("POST", add, part.tobytes() + b.tobytes(), RAW, **{"If-Match": etag})
            if status != 200:
                failures.append(got)

    threads = [threading.Thread(target=add_parts, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    after = read_figures(first, figures)
    assert after == before, f"stored and downloaded bytes before {before}, after {after}"
    got = np.load(io.BytesIO(first.ask("GET", "/v1/matrices/acc", Accept=NPY)[2]))
    assert np.array_equal(got, sum(parts) @ b), "a sum is lost"


if __name__ == "__main__":
    netloc = urllib.parse.urlsplit(sys.argv[1]).netloc
    check_linear(Server(netloc), np.random.default_rng(1))
    check_wrapping(Server(netloc), np.random.default_rng(2))
    check_files(Server(netloc), np.random.default_rng(3))
    check_c_as_text(Server(netloc))
    check_sources(Server(netloc), np.random.default_rng(4))
    check_activations(Server(netloc))
    check_unread(Server(netloc))
    check_sums(netloc, np.random.default_rng(5))
