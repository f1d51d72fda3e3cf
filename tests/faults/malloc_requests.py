"""The requests that malloc.py sends while allocations fail: one for each path through the service that makes
other allocations."""

import array
import gzip
import json
from dataclasses import dataclass

JSON = "Content-Type: application/json\r\n"
RAW = "Content-Type: application/octet-stream\r\n"
CLOSE = "Connection: close\r\n"
FORM = "Content-Type: multipart/form-data; boundary=edge\r\n"
KEY = "Authorization: Bearer 0123456789abcdef\r\n"
TWO_BY_TWO = '{"a":[[1,2],[3,4]],"b":[[5,6],[7,8]]}'
ESCAPES = r'{"\u0061":[["NaN",2],[12345678901234567890.5,1]],"b":[[5],[7]],"variant":"naive"}'
OPTIONS = '{"variant":"tiled_8","backend":"cpu","transpose_a":true,"timeout_ms":9000,"a":[[1,3],[2,4]],"b":[[5,6],[7,8]]}'
LONG_NAMES = '{"a":[[1]],"b":[[1]],"variant":"fifteen letters","backend":"fourteen chars"}'
CSV = "".join(
    f'--edge\r\nContent-Disposition: form-data; name={name}; filename={name}.csv\r\n\r\n{text}\r\n'
    for name, text in (("a", "1,2"), ("b", "3\n4"))
) + "--edge--"
INFER = json.dumps({"inputs": [{"name": name, "shape": [1], "datatype": "FP32", "data": [3]} for name in "AB"]})
TO_BENCHMARK = '{"m":16,"k":16,"n":16,"variants":["naive","tiled_8"],"repeats":2}'

# Flags of a request
CHUNKED = "chunked"
STEADY = "steady"  # all replies have equal bodies
SHORT_OF_LARGE = "short of large"  # only allocations of 256 KiB and more fail
SECOND = "second"  # sent as the second request of its connection
MAPPED = "mapped"  # needs new memory, so ALL_MEMORY is sent before it


@dataclass
class Request:
    group: str  # all requests of a group go to one server
    name: str
    line: str  # method and target of the request line
    headers: str
    body: object  # text or bytes; None if there is no body and no Content-Length
    status: int
    expected: str  # text that the reply's body must contain
    flags: tuple = ()

    def encode(self):
        """Returns the bytes to send."""
        head = f"{self.line} HTTP/1.1\r\nHost: localhost\r\n{self.headers}".encode()
        if self.body is None:
            return head + b"\r\n"
        body = self.body.encode() if isinstance(self.body, str) else self.body
        if CHUNKED not in self.flags:
            return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        pieces = [body[start : start + 16000] for start in range(0, len(body), 16000)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


def ones(rows, depth, cols):
    a, b = ([[1] * width] * height for height, width in ((rows, depth), (depth, cols)))
    return json.dumps({"variant": "tiled_16", "a": a, "b": b}, separators=(",", ":"))


def files(rows, depth, cols):
    """A form with two .npy files of ones."""
    body = b""
    for name, height, width in ("a", rows, depth), ("b", depth, cols):
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({height}, {width}), }}"
        disposition = f'--edge\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.npy"\r\n\r\n'
        body += disposition.encode() + b"\x93NUMPY\1\0v\0" + f"{head:<117}\n".encode()
        body += array.array("f", [1.0] * height * width).tobytes() + b"\r\n"
    return body + b"--edge--\r\n"


# fmt: off
REQUESTS = [Request(*row) for row in [
    ("matmul", "json", "POST /v1/matmul", JSON, TWO_BY_TWO, 200, "[[19"),
    ("matmul", "json_again", "POST /v1/matmul", JSON, TWO_BY_TWO, 200, "[[19", (SECOND,)),
    ("matmul", "json_queued", "POST /v1/matmul", JSON, ones(32, 32, 32), 200, "[[32", (CHUNKED,)),
    ("matmul", "json_by_crew", "POST /v1/matmul", JSON, ones(67600, 1, 1), 200, "[[1]"),
    ("matmul", "json_escapes", "POST /v1/matmul", JSON, ESCAPES, 200, "NaN"),
    ("matmul", "json_options", "POST /v1/matmul", JSON, OPTIONS, 200, "[[19"),
    ("matmul", "json_sums", "POST /v1/matmul", JSON, TWO_BY_TWO[:-1] + ',"c":[[1,2],[3,4]],"bias":[5,6],"result_dtype":"float16"}', 200, "[[25"),
    ("matmul", "json_verify", "POST /v1/matmul?verify=1", JSON, TWO_BY_TWO, 200, '"residual"'),
    ("matmul", "untyped", "POST /v1/matmul", "", TWO_BY_TWO, 200, "[[19"),
    ("matmul", "raw", "POST /v1/matmul?m=2&k=2&n=2", RAW, bytes(32), 200, ""),
    ("matmul", "raw_expected", "POST /v1/matmul?m=64&k=64&n=64&variant=tiled_8", RAW + "Expect: 100-continue\r\n", bytes(32768), 200, ""),
    ("matmul", "blas", "POST /v1/matmul?m=128&k=128&n=128&variant=blas", RAW, bytes(131072), 200, "", (SHORT_OF_LARGE,)),
    ("matmul", "raw_as_json", "POST /v1/matmul?m=2&k=2&n=2", RAW + "Accept: application/json\r\n", bytes(32), 200, "[[0"),
    ("matmul", "npy", "POST /v1/matmul", FORM, files(8, 8, 8), 200, "NUMPY"),
    ("matmul", "csv", "POST /v1/matmul", FORM + "Accept: text/csv\r\n", CSV, 200, "11\n"),
    ("matmul", "npy_as_json", "POST /v1/matmul?variant=tiled_16", FORM + "Accept: application/json\r\n", files(67600, 2, 1), 200, "[[2]", (CHUNKED,)),
    ("other", "transpose_json", "POST /v1/transpose", JSON, '{"a":[[1,2],[3,4]]}', 200, "[[1"),
    ("other", "transpose_raw", "POST /v1/transpose?m=2&n=8", RAW, bytes(64), 200, ""),
    ("other", "benchmark_json", "POST /v1/benchmark", JSON, TO_BENCHMARK, 200, '"rows"'),
    ("other", "benchmark_text", "POST /v1/benchmark", JSON + "Accept: text/plain\r\n", TO_BENCHMARK, 200, "naive"),
    ("other", "benchmark_transpose", "POST /v1/benchmark", JSON, '{"op":"transpose","m":16,"n":16,"repeats":1}', 200, '"rows"'),
    ("other", "infer_gzip", "POST /v2/models/matmul/infer", "Content-Encoding: gzip\r\n", gzip.compress(INFER.encode()), 200, '"data":[9]'),
    ("other", "variants", "GET /v1/variants", "", None, 200, '"variants"', (STEADY,)),
    ("other", "devices", "GET /v1/devices", "", None, 200, '"devices"'),
    ("other", "page", "GET /", "", None, 200, "</html>", (STEADY,)),
    ("other", "healthz", "GET /healthz", "", None, 200, "ok", (STEADY,)),
    ("other", "readyz", "GET /readyz", "", None, 200, "ok", (STEADY,)),
    ("other", "metrics", "GET /metrics", "", None, 200, "matmuld_build_info"),
    ("other", "options", "OPTIONS /v1/matmul", "", None, 204, ""),
    ("other", "openapi", "GET /openapi.json", "", None, 200, '"openapi"', (STEADY,)),
    ("store", "put_json", "PUT /v1/matrices/m", JSON, '{"a":[[1,2],[3,4]]}', 200, '"etag"'),
    ("store", "put_raw", "PUT /v1/matrices/m?m=2&n=8", RAW, bytes(64), 200, '"etag"'),
    ("store", "put_by_crew", "PUT /v1/matrices/m", JSON, json.dumps({"a": [[1] * 300] * 300}), 200, '"etag"'),
    ("store", "put_preamble", "PUT /v1/matrices/m", FORM, bytes(5000) + b"\r\n" + CSV[:CSV.index("--edge", 6)].encode() + b"--edge--", 200, '"etag"'),
    ("store", "put_csv", "PUT /v1/matrices/m", "Content-Type: text/csv\r\n", "1,2\n", 200, '"etag"'),
    ("store", "get", "GET /v1/matrices/m", "", None, 200, "NUMPY", (STEADY,)),
    ("store", "get_as_json", "GET /v1/matrices/m", "Accept: application/json\r\n", None, 200, "[[1", (STEADY,)),
    ("store", "get_part", "GET /v1/matrices/m?cols=:1", "", None, 200, "NUMPY", (STEADY,)),
    ("store", "get_figures", "GET /v1/matrices/m?reduce=sum,norm", "", None, 200, '"norm"', (STEADY,)),
    ("store", "list", "GET /v1/matrices", "", None, 200, '"matrices"'),
    ("store", "delete", "DELETE /v1/matrices/m", "", None, 404, "no_such_matrix"),
    ("refused", "bad_text", "POST /v1/matmul", JSON, LONG_NAMES, 422, "fourteen chars"),
    ("refused", "not_found", "GET /nothing", "", None, 404, "not_found"),
    ("refused", "method", "DELETE /v1/matmul", "", None, 405, "method_not_allowed"),
    ("refused", "no_length", "POST /v1/matmul", JSON, None, 411, "length_required"),
    ("refused", "too_large", "POST /v1/matmul", JSON + "Expect: 100-continue\r\n", bytes(5 << 20), 413, "too_large"),
    ("refused", "too_large_unread", "POST /v1/matmul", JSON, bytes(5 << 20), 413, "too_large"),
    ("refused", "media_type", "POST /v1/matmul", "Content-Type: image/png\r\n", bytes(16), 415, "unsupported_media_type"),
    ("refused", "not_acceptable", "POST /v1/matmul", JSON + "Accept: image/png\r\n", TWO_BY_TWO, 406, "not_acceptable"),
    ("refused", "bad_query", "POST /v1/matmul?m=x", RAW, bytes(16), 400, "bad_request"),
    ("refused", "bad_http", "GET /healthz", "Content-Length: 0\r\nContent-Length: 1\r\n", None, 400, "bad_request"),
    ("refused", "bad_json", "POST /v1/matmul", JSON, '{"a":[[1,2],[3]],"b":[[1]]}', 400, "bad_request"),
    ("refused", "bad_member", "POST /v1/matmul", JSON, '{"a":[[1]],"b":[[1]],"x":"y"}', 400, "bad_request"),
    ("refused", "bad_form", "POST /v1/matmul", FORM, "--edge\r\nnothing", 400, "bad_request"),
    ("refused", "bad_benchmark", "POST /v1/benchmark", JSON, '{"m":[1,"x"]}', 400, "bad_request"),
    ("refused", "bad_shape", "POST /v1/matmul", JSON, '{"a":[[1,2]],"b":[[1,2]]}', 422, "bad_shape"),
    ("large", "raw_mapped", "POST /v1/matmul?m=1&k=131072&n=1", RAW + CLOSE, bytes(1 << 20), 200, "", (MAPPED,)),
    ("large", "chunked", "POST /v1/matmul?m=1&k=131072&n=1", RAW + CLOSE, bytes(1 << 20), 200, "", (MAPPED, CHUNKED)),
    ("large", "transpose_mapped", "POST /v1/transpose?m=512&n=512", RAW + CLOSE, bytes(1 << 20), 200, "", (MAPPED,)),
    ("keys", "without_key", "POST /v1/matmul", JSON, TWO_BY_TWO, 401, "unauthorized"),
    ("keys", "with_key", "POST /v1/matmul", JSON + KEY, TWO_BY_TWO, 200, "[[19"),
    ("keys", "of_another_origin", "POST /v1/matmul", JSON + KEY + "Origin: https://example.org\r\n", TWO_BY_TWO, 200, "[[19"),
    ("keys", "preflight", "OPTIONS /v1/matmul", "Origin: https://example.org\r\nAccess-Control-Request-Method: POST\r\n", None, 204, ""),
    ("tls", "handshake", "POST /v1/matmul", JSON, '{"a":[[2]],"b":[[3]],"backend":"cpu"}', 200, "[[6"),
]]
# fmt: on

# Needs almost all of a memory budget of 3 MiB, so the server must release all memory that it kept for reuse.
ALL_MEMORY = Request("", "all_memory", "POST /v1/matmul?m=1&k=340000&n=1", RAW + CLOSE, bytes(2720000), 200, "")
