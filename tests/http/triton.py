"""Tests /v2 by tritonclient, synchronous and asyncio. oip.py tests more of /v2. Usage: triton.py HOST:PORT KEY."""

import asyncio
import itertools
import sys

# Python would import numpy.py of this folder instead of NumPy if this folder were on the path.
sys.path.pop(0)
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import tritonclient.http as triton  # noqa: E402
import tritonclient.http.aio as triton_aio  # noqa: E402
from tritonclient.utils import InferenceServerException, np_to_triton_dtype  # noqa: E402

TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32, np.int64, np.bool_]
ONLY_BINARY = [np.float16, ml_dtypes.bfloat16]
RESULTS = {np.int8: np.int32, np.uint8: np.int32, np.bool_: np.int32}
SHAPES = [((2, 3), (3, 4)), ((3,), (3,)), ((2, 1, 3, 4), (3, 4, 2)), ((0, 3), (3, 2)), ((64, 65), (65, 63))]
COMPRESSIONS = ["gzip", "deflate"]

random = np.random.default_rng(1)


class Waiting:
    """The asyncio client with the methods of the synchronous one."""

    def __init__(self, url):
        self.loop = asyncio.new_event_loop()
        self.client = self.loop.run_until_complete(self.make(url))

    async def make(self, url):
        return triton_aio.InferenceServerClient(url)

    def register_plugin(self, plugin):
        self.client.register_plugin(plugin)

    def __getattr__(self, name):
        return lambda *args, **options: self.loop.run_until_complete(getattr(self.client, name)(*args, **options))


def some(shape, dtype):
    """Returns random integers so small that their products are exact in every type."""
    return random.integers(0, 2 if dtype == np.bool_ else 5, shape).astype(dtype)


def inputs_of(arrays, binary=True):
    """Returns the inputs of a request from arrays by name."""
    inputs = []
    for name, array in arrays.items():
        inputs.append(triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        inputs[-1].set_data_from_numpy(array, binary_data=binary)
    return inputs


def product(client, arrays, model="matmul", binary_in=True, binary_out=True, **options):
    """Returns C."""
    outputs = [triton.InferRequestedOutput("C", binary_data=binary_out)]
    return client.infer(model, inputs_of(arrays, binary_in), outputs=outputs, **options).as_numpy("C")


def same(got, expected, what):
    assert got.dtype == expected.dtype and got.shape == expected.shape, (what, got.dtype, got.shape)
    assert (got == expected).all(), (what, got, expected)


def refused(status, word, call, *args, **options):
    """The call must fail with this status and a message that has this word."""
    try:
        call(*args, **options)
    except InferenceServerException as error:
        assert error.status() == str(status) and word in error.message(), (status, word, error)
    else:
        raise AssertionError((status, word))


def check_models(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("matmul") and client.is_model_ready("matmul.naive", "1")
    assert not client.is_model_ready("none")
    server = client.get_server_metadata()
    assert server["name"] == "matmuld" and "binary_tensor_data" in server["extensions"], server
    index = client.get_model_repository_index()
    assert {model["state"] for model in index} == {"READY"} and "matmul" in [model["name"] for model in index], index
    metadata, config = client.get_model_metadata("matmul.FP16"), client.get_model_config("matmul.FP16", "1")
    assert metadata["inputs"][0]["datatype"] == "FP16" and config["input"][0]["data_type"] == "TYPE_FP16"


def check_types(client):
    for dtype, binary_in, binary_out in itertools.product(TYPES, (True, False), (True, False)):
        if dtype in ONLY_BINARY and not (binary_in and binary_out):
            continue
        for a_shape, b_shape in SHAPES:
            a, b = some(a_shape, dtype), some(b_shape, dtype)
            expected = np.matmul(a.astype(float), b.astype(float)).astype(RESULTS.get(dtype, dtype))
            c = product(client, {"A": a, "B": b}, f"matmul.{np_to_triton_dtype(a.dtype)}", binary_in, binary_out)
            same(c, np.asarray(expected), (dtype, a_shape, b_shape, binary_in, binary_out))
    special = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1]], np.float32)
    for binary in (True, False):
        c = product(client, {"A": special, "B": np.ones((2, 1), np.float32)}, "matmul", binary, binary)
        np.testing.assert_array_equal(c, special[:, :1])


def check_parameters(client):
    a, b, addend, bias = some((3, 4), np.int8), some((4, 5), np.int8), some((3, 5), np.int32), some(5, np.int32)
    wide = a.astype(np.int32) @ b
    for binary in (True, False):
        c = product(client, {"A": a, "B": b, "ADDEND": addend, "BIAS": bias}, "matmul.naive", binary, binary,
                    parameters={"alpha": 2, "beta": -3, "activation": "relu"})  # fmt: skip
        same(c, np.maximum(2 * wide - 3 * addend + bias, 0), "sums, bias and activation")
    c = product(client, {"A": a.T.copy(), "B": b.T.copy()}, parameters={"transpose_a": True, "transpose_b": True})
    same(c, wide, "transposes")
    same(product(client, {"A": a, "B": b}, priority=1, sequence_id=5, sequence_start=True), wide, "ignored parameters")
    floats = {"A": some((3, 4), np.float32), "B": some((4, 5), np.float32)}
    same(product(client, floats, parameters={"result_dtype": "float16"}), (floats["A"] @ floats["B"]).astype(np.float16), "half")
    reply = client.infer("matmul", inputs_of(floats), request_id="é-1", parameters={"variant": "naive", "verify": True}).get_response()
    assert (reply["id"], reply["model_name"], reply["model_version"]) == ("é-1", "matmul", "1"), reply
    assert reply["parameters"]["variant"] == "naive" and reply["parameters"]["verify_passed"] is True, reply
    # The client has no method that names a stored or generated operand.
    generated = triton.InferInput("B", [4, 4], "FP32")
    generated._parameters["from"] = "identity()"
    c = client.infer("matmul", [*inputs_of({"A": floats["A"]}), generated]).as_numpy("C")
    same(c, floats["A"], "the identity")


def check_compression(client):
    a = some((90, 60), np.float32)
    for request, reply in itertools.product([None, *COMPRESSIONS], repeat=2):
        for binary in (True, False):
            c = product(client, {"A": a, "B": a.T.copy()}, "matmul", binary, binary,
                        request_compression_algorithm=request, response_compression_algorithm=reply)  # fmt: skip
            same(c, a @ a.T, (request, reply, binary))


def check_errors(client):
    floats, halves = {"A": some((3, 4), np.float32), "B": some((4, 5), np.float32)}, {"A": some((1, 1), np.float16)}
    refused(404, "none", product, client, floats, "none")
    refused(404, "2", product, client, floats, model_version="2")
    refused(404, "none", client.get_model_metadata, "none")
    refused(422, "none", product, client, floats, parameters={"variant": "none"})
    refused(422, "3×4", product, client, floats | {"B": floats["A"]})
    refused(400, "FP16", product, client, halves | {"B": halves["A"]}, binary_out=False)
    refused(404, "", client.load_model, "matmul")
    refused(404, "", client.get_system_shared_memory_status)
    large = {"A": np.ones((1500, 1500), np.float64), "B": np.ones((1500, 1500), np.float64)}
    refused(504, "", product, client, large, "matmul.naive", timeout=1000)
    same(product(client, floats, timeout=60_000_000), floats["A"] @ floats["B"], "a long timeout")
    same(product(client, floats, timeout=0), floats["A"] @ floats["B"], "no timeout")


def check_statistics(client):
    def count():
        (stats,) = client.get_inference_statistics("matmul.tiled_16.FP64")["model_stats"]
        return stats["inference_stats"]["success"]["count"]

    before = count()
    for _ in range(3):
        product(client, {"A": some((4, 4), np.float64), "B": some((4, 4), np.float64)}, "matmul.tiled_16.FP64")
    assert count() == before + 3
    assert len(client.get_inference_statistics()["model_stats"]) > 1


def check_concurrent_calls(url, headers):
    """Many requests at once. Their replies must not be mixed up."""
    operands = [{"A": some((10, 20), np.float32), "B": some((20, n), np.float32)} for n in range(1, 65)]

    with triton.InferenceServerClient(url, concurrency=16) as client:
        calls = [client.async_infer("matmul", inputs_of(one), headers=dict(headers)) for one in operands]
        for one, call in zip(operands, calls):
            same(call.get_result().as_numpy("C"), one["A"] @ one["B"], "async_infer")

    async def gather():
        async with triton_aio.InferenceServerClient(url) as client:
            return await asyncio.gather(*(client.infer("matmul", inputs_of(one), headers=dict(headers)) for one in operands))

    for one, reply in zip(operands, asyncio.run(gather())):
        same(reply.as_numpy("C"), one["A"] @ one["B"], "asyncio")


class Key:
    """A plugin of tritonclient that adds the API key to each request."""

    def __init__(self, headers):
        self.headers = headers

    def __call__(self, request):
        request.headers.update(self.headers)


def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    for client in (triton.InferenceServerClient(url), Waiting(url)):
        assert client.is_server_ready()
        refused(401, "key", client.get_server_metadata)
        client.register_plugin(Key(headers))
        for check in (check_models, check_types, check_parameters, check_compression, check_errors, check_statistics):
            check(client)
        client.close()
    check_concurrent_calls(url, headers)


main(*sys.argv[1:])
