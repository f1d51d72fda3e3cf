"""Tests infer requests of the Open Inference Protocol against NumPy. Usage: oip.py URL."""

import http.client
import itertools
import json
import sys
import urllib.parse

# Python would import numpy.py of this folder instead of NumPy if this folder were on the path.
sys.path.pop(0)
import numpy as np  # noqa: E402

DTYPES = {
    "FP32": np.float32, "FP64": np.float64, "FP16": np.float16, "INT8": np.int8, "UINT8": np.uint8,
    "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_,
}  # fmt: skip
RESULTS = {"INT8": "INT32", "UINT8": "INT32", "BOOL": "INT32"}
LENGTH = "Inference-Header-Content-Length"


class Server(http.client.HTTPConnection):
    def infer(self, head, tail=b"", model="matmul", **options):
        """Returns the status, the JSON and the binary data of a reply. With a tail of None, the body is JSON."""
        text = json.dumps(head).encode()
        headers = {LENGTH: str(len(text))} if tail is not None else {}
        self.request("POST", f"/v2/models/{model}/infer", text + (tail or b""), headers | options)
        reply = self.getresponse()
        body = reply.read()
        length = reply.headers.get(LENGTH)
        binary = reply.headers["Content-Type"] == "application/octet-stream"
        assert binary == (length is not None), reply.headers
        length = int(length) if binary else len(body)
        return reply.status, json.loads(body[:length]), body[length:]

    def get(self, target):
        self.request("GET", target)
        reply = self.getresponse()
        body = json.loads(reply.read())
        assert reply.status == 200, body
        return body


def tensor(name, array, datatype, binary):
    one = {"name": name, "shape": list(array.shape), "datatype": datatype}
    return one | ({"parameters": {"binary_data_size": array.nbytes}} if binary else {"data": array.ravel().tolist()})


def product(server, inputs, datatype, binary_in, binary_out, model="matmul", **parameters):
    """Returns C. `inputs` are arrays by name, in the order of the request."""
    head = {
        "id": "7",
        "parameters": parameters,
        "inputs": [tensor(name, array, names.get(array.dtype.type, datatype), binary_in) for name, array in inputs.items()],
        "outputs": [{"name": "C", "parameters": {"binary_data": binary_out}}],
    }
    tail = b"".join(array.tobytes() for array in inputs.values()) if binary_in else None
    status, reply, data = server.infer(head, tail, model)
    assert status == 200, reply
    (output,) = reply["outputs"]
    assert (reply["model_name"], reply["model_version"], reply["id"]) == (model, "1", "7"), reply
    assert all(isinstance(value, (str, int, float, bool)) for value in reply["parameters"].values()), reply
    result = DTYPES[output["datatype"]]
    if binary_out:
        assert output["parameters"] == {"binary_data_size": len(data)} and "data" not in output, output
        return np.frombuffer(data, result).reshape(output["shape"])
    assert data == b"" and all(not isinstance(one, list) for one in output["data"]), output
    return np.array(output["data"], result).reshape(output["shape"])


names = {dtype: name for name, dtype in DTYPES.items()}
random = np.random.default_rng(1)


def some(shape, datatype):
    return random.integers(0, 2 if datatype == "BOOL" else 5, shape).astype(DTYPES[datatype])


def expected(a, b, datatype):
    result = DTYPES[RESULTS.get(datatype, datatype)]
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(result)


def test_types(server):
    for datatype, binary_in, binary_out in itertools.product(DTYPES, (False, True), (False, True)):
        if datatype == "FP16" and not (binary_in and binary_out):
            continue
        for a_shape, b_shape in (((2, 3), (3, 4)), ((5, 7), (7, 1)), ((2, 1, 3, 4), (3, 4, 2)), ((3,), (3,)), ((0, 3), (3, 2))):
            a, b = some(a_shape, datatype), some(b_shape, datatype)
            for model in ("matmul", f"matmul.{datatype}", f"matmul.naive.{datatype}"):
                c = product(server, {"A": a, "B": b}, datatype, binary_in, binary_out, model)
                want = expected(a, b, datatype)
                assert c.dtype == want.dtype and c.shape == want.shape and (c == want).all(), (datatype, a, b, c)


def test_epilogue(server):
    a, b = some((3, 4), "INT8"), some((4, 5), "INT8")
    addend, bias = some((3, 5), "INT32"), some((5,), "INT32")
    for binary in (False, True):
        inputs = {"BIAS": bias, "B": b, "ADDEND": addend, "A": a}
        c = product(server, inputs, "INT8", binary, binary, alpha=2, beta=3, activation="relu")
        assert (c == np.maximum(2 * (a.astype(int) @ b) + 3 * addend + bias, 0)).all(), c
    c = product(server, {"A": a.T.copy(), "B": b.T.copy()}, "INT8", True, True, transpose_a=True, transpose_b=True)
    assert (c == a.astype(int) @ b).all(), c
    narrow = product(server, {"A": some((1, 1), "FP32"), "BIAS": some((1,), "FP16"), "B": some((1, 1), "FP32")},
                     "FP32", True, True, result_dtype="float16")  # fmt: skip
    assert narrow.dtype == np.float16


def test_special(server):
    """NaN and infinities are words without quotes, both ways."""
    a = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1]], np.float32)
    c = product(server, {"A": a, "B": np.ones((2, 1), np.float32)}, "FP32", False, False)
    np.testing.assert_array_equal(c, a[:, :1])


def test_large(server):
    """The worker pool reads and writes JSON of this length. Its elements count in no limit of the head."""
    a, b = random.random((400, 500), np.float32), random.random((500, 300), np.float32)
    for binary_in, binary_out in itertools.product((False, True), (False, True)):
        c = product(server, {"A": a, "B": b}, "FP32", binary_in, binary_out)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    flat = {"A": a, "B": b}
    for padding in range(65):  # the tail begins at any offset after the head
        head = {"x": "x" * padding, "inputs": [tensor(name, array, "FP32", True) for name, array in flat.items()]}
        status, reply, _ = server.infer(head | {"parameters": {"binary_data_output": True}}, a.tobytes() + b.tobytes())
        assert status == 200, reply


def test_stored(server):
    """An input can come from the store, if its shape and its datatype agree."""
    a = some((2, 3), "FP32")
    server.request("PUT", "/v1/matrices/oip?m=2&n=3", a.tobytes(), {"Content-Type": "application/octet-stream"})
    server.getresponse().read()
    b = some((3, 2), "FP32")

    def infer(shape, datatype, name="oip"):
        stored = {"name": "A", "shape": shape, "datatype": datatype, "parameters": {"from": name}}
        return server.infer({"inputs": [stored, tensor("B", b.astype(DTYPES[datatype]), datatype, False)]}, None)

    status, reply, _ = infer([2, 3], "FP32")
    assert status == 200 and reply["outputs"][0]["data"] == (a @ b).ravel().tolist(), reply
    for shape, datatype, name, want, word in (
        ([3, 2], "FP32", "oip", 422, "shape"), ([2, 3], "FP64", "oip", 400, "float64"), ([2, 3], "FP32", "none", 404, "none"),
    ):  # fmt: skip
        status, reply, _ = infer(shape, datatype, name)
        assert status == want and word in reply["error"], (status, reply)


def test_chunked(server):
    a, b = some((2, 3), "FP32"), some((3, 4), "FP32")
    text = json.dumps({"inputs": [tensor("A", a, "FP32", True), tensor("B", b, "FP32", True)]}).encode()
    body = text + a.tobytes() + b.tobytes()
    for step in (1, 100):
        chunks = (body[at : at + step] for at in range(0, len(body), step))
        server.request("POST", "/v2/models/matmul/infer", chunks, {LENGTH: str(len(text))}, encode_chunked=True)
        reply = server.getresponse()
        assert reply.status == 200 and json.loads(reply.read())["outputs"][0]["data"] == (a @ b).ravel().tolist()


def test_statistics(server):
    """A model's statistics count its own requests."""
    def read():
        (stats,) = server.get("/v2/models/matmul.naive.FP64/versions/1/stats")["model_stats"]
        return stats["inference_count"], stats["execution_count"], stats["inference_stats"]

    before = read()
    a = some((64, 64), "FP64")
    for _ in range(3):
        product(server, {"A": a, "B": a}, "FP64", True, True, "matmul.naive.FP64")
    assert server.infer({}, None, "matmul.naive.FP64")[0] == 400
    after = read()
    assert [new - old for new, old in zip(after[:2], before[:2])] == [3, 3], after
    for name, count in {"success": 3, "fail": 1, "queue": 3, "compute_input": 3, "compute_infer": 3,
                        "compute_output": 3, "cache_hit": 0, "cache_miss": 0}.items():  # fmt: skip
        assert after[2][name]["count"] - before[2][name]["count"] == count, (name, after)
    assert after[2]["compute_infer"]["ns"] > before[2]["compute_infer"]["ns"], after
    assert after[2]["success"]["ns"] - before[2]["success"]["ns"] > after[2]["compute_infer"]["ns"] - before[2]["compute_infer"]["ns"]
    every = {stats["name"]: stats for stats in server.get("/v2/models/stats")["model_stats"]}
    assert every["matmul.naive.FP64"]["inference_count"] == after[0] and len(every) == len(server.get("/v2/models")["models"])


def test_models(server):
    """Each model has metadata, a configuration with the same names, and takes a request of its type."""
    for name in server.get("/v2/models")["models"]:
        model, config = server.get(f"/v2/models/{name}"), server.get(f"/v2/models/{name}/versions/1/config")
        assert model["name"] == config["name"] == name and config["max_batch_size"] == 0
        for ours, theirs in (("inputs", "input"), ("outputs", "output")):
            assert [(one["name"], "TYPE_" + one["datatype"], one["shape"]) for one in model[ours]] == [
                (one["name"], one["data_type"], one["dims"]) for one in config[theirs]
            ]
        datatype = model["inputs"][0]["datatype"]
        if datatype != "BF16":
            a = some((32, 32), datatype)
            c = product(server, {"A": a, "B": a}, datatype, True, True, name)
            assert names[c.dtype.type] == model["outputs"][0]["datatype"], name


def main(url):
    server = Server(urllib.parse.urlsplit(url).netloc, timeout=60)
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(server)


main(sys.argv[1])
