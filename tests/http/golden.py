"""Sends the cases of a golden folder to a server and checks the replies. golden/README.md has the format.

After each case a small product is sent over the same connection, which must still work unless the reply
closed it. Usage: golden.py FOLDER URL EXCHANGES [CASE…]. Prints what is wrong, and ends with status 1 if
anything is. Saves each request and reply in the folder EXCHANGES for validate.py as CASE.request, CASE.head
and CASE.body.
"""

import http.client
import json
import re
import socket
import struct
import sys
import urllib.parse
from fnmatch import fnmatchcase
from pathlib import Path

SPANS = ["receive", "decode", "queue", "upload", "kernel", "download", "encode", "total"]
NEXT = b'{"a":[[2]],"b":[[3]]}'


def split_message(text):
    """Returns the first line, the header lines, and the body after the first empty line, or None for the body."""
    head, empty, text = text.partition("\n\n")
    first, *lines = head.removesuffix("\n").split("\n")
    return first, lines, text if empty else None


def read_bytes(text):
    """Returns the kind of a case's body, such as %f32, and the bytes that the body describes."""
    kind, _, rest = text.partition("\n")
    if kind == "%f32":
        return kind, b"".join(struct.pack("<f", float(word)) for word in rest.split())
    if kind == "%hex":
        return kind, bytes.fromhex(rest)
    if kind == "%repeat":
        lines = (line.partition(" ") for line in rest.splitlines())
        return kind, b"".join(int(count) * piece.encode() for count, _, piece in lines)
    if kind == "%crlf":
        return kind, b"".join(line.encode() + b"\r\n" for line in rest.removesuffix("\n").split("\n"))
    if kind == "%empty":
        return kind, b""
    if kind.startswith("%"):
        raise ValueError(f"the body begins with '{kind}', which means nothing")
    return "", text.removesuffix("\n").encode()


class Connection:
    def __init__(self, url):
        self.host = urllib.parse.urlsplit(url).netloc
        name, _, port = self.host.rpartition(":")
        self.socket = socket.create_connection((name, int(port)), timeout=60)

    def send(self, first, lines, body):
        """Sends the request. Adds Host and, if needed, Content-Length. A chunked body is sent as one chunk."""
        method, target, version = (first.split() + ["HTTP/1.1"])[:3]
        names = {line.partition(":")[0].lower() for line in lines}
        if "transfer-encoding" in names:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif body is not None:
            lines = [*lines, f"Content-Length: {len(body)}"]
        head = "\r\n".join([f"{method} {target} {version}", f"Host: {self.host}", *lines, "", ""]).encode()
        # A client with Expect: 100-continue sends the body after this interim reply.
        self.socket.sendall(head if "expect" in names else head + (body or b""))
        if "expect" in names and b" 100 " in self.socket.recv(64, socket.MSG_PEEK):
            self.socket.sendall(body)

    def receive(self, method):
        """Returns the final reply to a request with this method, and its body."""
        reply = http.client.HTTPResponse(self.socket, method=method)
        reply.begin()
        return reply, reply.read()

    def has_ended(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


def header(reply, name):
    return "\n".join(reply.msg.get_all(name, []))


def to_float32(number):
    return struct.pack("<f", number) if abs(number) < 3.5e38 else number


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def differences(path, expected, got, rounds):
    """Yields the differences of two JSON values. Objects in `got` may have additional members. "*" stands
    for any value. `detail` must contain the expected text or texts. If `rounds`, numbers are rounded to
    float32 first."""
    if expected == "*":
        if got is None:
            yield f"{path}: expected any value, got none"
    elif path.endswith(".detail"):
        for part in expected if isinstance(expected, list) else [expected]:
            if part not in str(got):
                yield f"{path}: expected it to contain {part!r}, got {got!r}"
    elif isinstance(expected, dict) and isinstance(got, dict):
        for name in expected:
            yield from differences(f"{path}.{name}", expected[name], got.get(name), rounds)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (one, other) in enumerate(zip(expected, got)):
            yield from differences(f"{path}[{index}]", one, other, rounds)
    elif is_number(expected) and is_number(got):
        as_float32 = rounds and re.match(r"\.c(\[|$)", path)
        if (to_float32(expected) != to_float32(got)) if as_float32 else expected != got:
            yield f"{path}: expected {expected}, got {got}"
    elif type(expected) is not type(got) or expected != got:
        yield f"{path}: expected {expected!r}, got {got!r}"


def promises_of_problem(reply, got):
    """What every problem document must have: RFC 9457's members and ours."""
    yield "type, a text", isinstance(got.get("type"), str) and got["type"]
    yield "title, a text", isinstance(got.get("title"), str) and got["title"]
    yield "detail, a sentence", isinstance(got.get("detail"), str) and len(got["detail"]) > 10
    yield "code, a name", isinstance(got.get("code"), str) and re.fullmatch("[a-z_]+", got["code"])
    yield "status, as in the status line", got.get("status") == reply.status
    yield "request_id, as in X-Request-Id", got.get("request_id") == header(reply, "X-Request-Id")
    place = [got.get("line"), got.get("column")]
    yield "line and column together, from 1", place == [None, None] or all(is_number(one) and one >= 1 for one in place)


def has_shape(value, shape):
    if not shape:
        return not isinstance(value, list)
    return len(value) == shape[0] and all(has_shape(one, shape[1:]) for one in value)


def promises_of_result(reply, got, rate, other):
    """What every result must have. `rate` names the member for its speed, which `other` must not be."""
    timing = got["timing"]
    yield "shape, as in Matmul-Shape", ", ".join(map(str, got["shape"])) == header(reply, "Matmul-Shape")
    yield "c nested as shape says", has_shape(got["c"], got["shape"])
    for name in ("dtype", "variant", "backend", "device"):
        yield f"{name}, as in Matmul-{name.title()}", got[name] == header(reply, f"Matmul-{name.title()}") != "auto"
    yield f"{rate}, a number, and no {other}", is_number(got[rate]) and got[rate] >= 0 and other not in got
    yield "batched, a count", is_number(got["batched"]) and got["batched"] >= 1
    yield f"the spans {SPANS} in timing", sorted(timing) == sorted(f"{span}_ms" for span in SPANS)
    yield "milliseconds in timing", all(is_number(span) and span >= 0 for span in timing.values())
    least = timing["queue_ms"] + timing["kernel_ms"]
    yield "a total of at least queue and kernel", timing["total_ms"] * 1.000001 + 0.000001 >= least
    kernel = re.search("kernel;dur=([0-9.]+)", header(reply, "Server-Timing"))
    yield "the kernel's time as in Server-Timing", kernel and abs(float(kernel[1]) - timing["kernel_ms"]) < 0.001


def judge_json(reply, target, expected, body):
    got = json.loads(body)
    if expected:
        rounds = isinstance(got, dict) and got.get("dtype") == "float32"
        yield from differences("", json.loads(expected), got, rounds)
    promises = ()
    if reply.status >= 400:
        promises = promises_of_problem(reply, got)
    elif reply.status == 200 and target.startswith("/v1/matmul"):
        promises = promises_of_result(reply, got, "gflops", "gigabytes_per_second")
    elif reply.status == 200 and target.startswith("/v1/transpose"):
        promises = promises_of_result(reply, got, "gigabytes_per_second", "gflops")
    for promise, holds in promises:
        if not holds:
            yield f"expected {promise}"


def judge_body(reply, request, text, body):
    method, target = request.split()[:2]
    kind, expected = read_bytes(text)
    if kind == "%f32":
        # The sign and the payload of a NaN depend on the hardware.
        numbers = [[one if one == one else "NaN" for (one,) in struct.iter_unpack("<f", some)] for some in (expected, body)]
        if repr(numbers[0]) != repr(numbers[1]):
            yield f"expected the numbers {numbers[0]}, got {numbers[1]}"
    elif kind:
        if body != expected:
            yield f"expected the bytes {expected.hex(' ')}, got {body.hex(' ')}"
    elif header(reply, "Content-Type").endswith("json"):
        if method != "HEAD":
            yield from judge_json(reply, target, expected, body)
    elif expected:
        yield f"expected JSON, got '{header(reply, 'Content-Type')}'"


def judge_head(reply, status, lines):
    if not fnmatchcase(str(reply.status), status):
        yield f"status: expected {status}, got {reply.status}"
    for line in [*lines, "X-Request-Id: [A-Za-z0-9._-]*"]:
        name, _, pattern = line.partition(": ")
        if line.startswith("!") and header(reply, line[1:]):
            yield f"header {line[1:]}: expected none, got '{header(reply, line[1:])}'"
        elif not line.startswith("!") and not fnmatchcase(header(reply, name), pattern):
            yield f"header {name}: expected {pattern}, got '{header(reply, name)}'"


def judge_next(reply, connection, url):
    """After each reply the server must work, and so must the connection, unless the reply closed it."""
    if header(reply, "Connection").lower() == "close":
        if not connection.has_ended():
            yield "the reply says Connection: close, but the connection goes on"
        connection = Connection(url)
    connection.send("POST /v1/matmul", ["Content-Type: application/json"], NEXT)
    _, body = connection.receive("POST")
    if b'"c": [[6]]' not in body:
        yield f"the next product: got {body}"


def run_case(folder, name, url, exchanges):
    sent, arrow, promised = (folder / f"{name}.case").read_bytes().decode().partition("\n=> ")
    if not arrow:
        raise ValueError("the case has no line '=> STATUS'")
    request, lines, text = split_message(sent + "\n")
    status, patterns, expected = split_message(promised)
    connection = Connection(url)
    connection.send(request, lines, None if text is None else read_bytes(text)[1])
    reply, body = connection.receive(request.split()[0])
    head = [f"HTTP/1.1 {reply.status} {reply.reason}", *(f"{key}: {value}" for key, value in reply.getheaders())]
    (exchanges / f"{name}.request").write_text(sent)
    (exchanges / f"{name}.head").write_text("\n".join(head) + "\n")
    (exchanges / f"{name}.body").write_bytes(body)
    faults = [*judge_head(reply, status, patterns), *judge_body(reply, request, expected or "", body)]
    faults += judge_next(reply, connection, url)
    return [*faults, *head, body[:2000]] if faults else []


def main(folder, url, exchanges, *names):
    failed = 0
    names = names or sorted({path.stem for path in Path(folder).iterdir()})
    for name in names:
        try:
            faults = run_case(Path(folder), name, url, Path(exchanges))
        except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
            faults = [repr(error)]
        for fault in faults:
            print(f"{name}: {fault}")
        failed += bool(faults)
    print(f"{len(names)} cases, {failed} failed")
    return failed > 0 or not names


sys.exit(main(*sys.argv[1:]))
