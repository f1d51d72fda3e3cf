"""Tests infer requests with compressed bodies. Usage: compressed.py URL TEST, where TEST is a function below."""

import gzip
import http.client
import json
import random
import struct
import sys
import time
import urllib.parse
import urllib.request
import zlib

LENGTH = "Inference-Header-Content-Length"
USED = 'matmuld_staging_bytes{state="used"}'
SIDE = 400  # the binary data of A and B have 1.3 MB
WAYS = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress, "identity, GZip": gzip.compress}
url = urllib.parse.urlsplit(sys.argv[1])


def send(body, coding, is_chunked=False, path="/v2/models/matmul/infer", **headers):
    """Sends a request, and returns its connection."""
    server = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
    if coding is not None:
        headers["Content-Encoding"] = coding
    parts = (body[at : at + 4000] for at in range(0, len(body), 4000))
    server.request("POST", path, parts if is_chunked else body, headers, encode_chunked=is_chunked)
    return server


def receive(server):
    reply = server.getresponse()
    return reply.status, reply.headers, reply.read()


def ask(*arguments, **headers):
    return receive(send(*arguments, **headers))


def metric(name):
    with urllib.request.urlopen(f"{sys.argv[1]}/metrics") as page:
        return next(float(line.split()[-1]) for line in page.read().decode().splitlines() if line.startswith(name))


def wait_until(happens):
    deadline = time.monotonic() + 30
    while not happens():
        assert time.monotonic() < deadline, f"{metric(USED):.0f} bytes are used"
        time.sleep(0.05)


def small(**members):
    one = {"shape": [1, 1], "datatype": "FP32"}
    return json.dumps({"inputs": [one | {"name": "A", "data": [2]}, one | {"name": "B", "data": [3]}]} | members).encode()


def refused(body, coding, status_wanted, words, **headers):
    status, got_headers, got = ask(body, coding, **headers)
    assert status == status_wanted and words in json.loads(got)["error"], (status, got, words)
    return got_headers


def binary(side):
    """Returns the JSON, and the binary data of A and B; B is an identity, so the product is A."""
    one = {"shape": [side, side], "datatype": "FP32", "parameters": {"binary_data_size": 4 * side * side}}
    head = {"inputs": [one | {"name": "A"}, one | {"name": "B"}], "parameters": {"binary_data_output": True}}
    a = struct.pack(f"<{side * side}f", *(random.randrange(1 << 20) for _ in range(side * side)))
    b = b"".join(struct.pack(f"<{side}f", *(float(row == col) for col in range(side))) for row in range(side))
    return json.dumps(head).encode(), a, b


def codings():
    for coding, compress in WAYS.items():
        for is_chunked in (False, True):
            status, _, got = ask(compress(small()), coding, is_chunked)
            assert status == 200 and json.loads(got)["outputs"][0]["data"] == [6], (coding, status, got)
    for odd in range(0, 64, 9):  # the JSON's length decides where the binary data begin
        head, a, b = binary(SIDE)
        head += odd * b" "
        for coding, compress in (("gzip", gzip.compress), ("deflate", zlib.compress)):
            status, headers, got = ask(compress(head + a + b, 1), coding, **{LENGTH: str(len(head))})
            assert status == 200 and got[int(headers[LENGTH]) :] == a, (coding, odd, status, got[:300])


def refusals():
    plain = small()
    packed = gzip.compress(plain)
    # tests/unit/server/inflation.c has more damaged bodies.
    for body, words in (packed[:-1], "ends too early"), (b"", "is empty"), (plain, "is not valid"), (gzip.compress(plain[:-1]), "line 1"):
        refused(body, "gzip", 400, words)
    refused(packed, "gzip", 400, "only", **{LENGTH: str(len(plain) + 1)})
    for coding in ("br", "gzip, gzip", "gzip, deflate", "deflate,gzip", "gzi", "zstd", "gzip;q=1"):
        headers = refused(packed, coding, 415, "gzip, deflate")
        assert headers["Accept-Encoding"] == "gzip, deflate, identity", headers
    for path in ("/v1/matmul", "/v1/transpose", "/v1/benchmark"):
        status, headers, _ = ask(packed, "gzip", path=path)
        assert status == 415 and headers["Accept-Encoding"] == "identity", (path, status, headers)


def limit():
    """The server has --max-body 5000. The padding hardly compresses."""
    padding = 5000 - len(small(x=""))
    for bytes_more, status_wanted in ((0, 200), (1, 413)):
        body = small(x=random.randbytes(padding).hex()[: padding + bytes_more])
        status, _, got = ask(zlib.compress(body), "deflate")
        assert len(body) == 5000 + bytes_more and status == status_wanted, (status, got)
    assert b"5000 bytes" in got and b"--max-body" in got, got
    refused(random.randbytes(5001), "gzip", 413, "--max-body")


def bombs():
    """The server has one HTTP thread, which answers other clients meanwhile."""
    before = metric("process_resident_memory_bytes")
    small_bomb, bomb = gzip.compress(bytes(100 << 20)), zlib.compress(bytes(400 << 20))
    refused(small_bomb, "gzip", 413, f"{100 * len(small_bomb)} bytes, which is a hundred times")
    grown = metric("process_resident_memory_bytes") - before
    assert grown < 64 << 20, grown
    server = send(bomb, "deflate")
    with urllib.request.urlopen(f"{sys.argv[1]}/healthz") as reply:
        assert reply.status == 200
    server.sock.setblocking(False)
    try:
        early = server.sock.recv(1)
    except BlockingIOError:
        early = None
    server.sock.settimeout(120)
    assert early is None, "the HTTP thread inflated the bomb"
    assert receive(server)[0] == 413
    for _ in range(10):  # clients that leave while their body is inflated
        send(bomb, "deflate").close()
    wait_until(lambda: metric(USED) == 0)


def memory():
    """The server has a budget of 24 MiB. A body waits for memory after a part of it was inflated."""
    head, a, b = binary(1000)
    packed = gzip.compress(head + a + b, 1)
    other = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
    other.putrequest("POST", "/v1/matmul?m=1&k=2228224&n=1")
    other.putheader("Content-Type", "application/octet-stream")
    other.putheader("Content-Length", str(17 << 20))
    other.endheaders(bytes((17 << 20) - 1))
    wait_until(lambda: metric(USED) == 17 << 20)
    server = send(packed, "gzip", **{LENGTH: str(len(head))})
    wait_until(lambda: metric(USED) > (17 << 20) + len(packed))
    time.sleep(0.3)
    assert metric("matmuld_requests_in_flight") == 2
    other.close()
    status, headers, got = receive(server)
    assert status == 200 and got[int(headers[LENGTH]) :] == a, (status, got[:300])
    refused(zlib.compress(random.randbytes(10 << 20).hex().encode(), 1), "deflate", 413, "bytes of memory")
    wait_until(lambda: metric(USED) == 0)


globals()[sys.argv[2]]()
