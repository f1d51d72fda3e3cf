"""Sends mixed requests to a running service and checks each reply. soak.sh starts a service for this script.

Each client is a process. Clients request random products in JSON and raw formats with every variant, send
invalid requests, and sometimes leave early. All clients use the same stored matrices. The script shares no
code with the service. Elements are integers times a power of two, so products are exact in any order of
summation.
"""

import argparse
import collections
import json
import multiprocessing
import operator
import random
import socket
import struct
import sys
import time
import urllib.request

HOST = "127.0.0.1"
JSON, RAW = "application/json", "application/octet-stream"
REPLY_WAIT_S = 120  # the service answers within 60 s, its --timeout-ms
REQUESTS_MIN, FAILURES_MAX = 20, 10  # fewest requests and most failures of each client
EDGE_MAX, SMALL_EDGE_MAX, LARGE_MAX = 96, 12, 512
STORED_EDGES = [1, 7, 16, 40, 64, 200, 600, 800]  # numbers of rows of the square matrices that clients store
EXPECT_BYTES = 1 << 20  # requests with longer bodies wait for 100 Continue
LEAVE_S_MAX = 0.02

MATMUL, ONES, BYTES_16 = "/v1/matmul", '{"a": [[1]], "b": [[1]]}', "0123456789abcdef"
# Invalid requests: method, target, Content-Type, Accept, body, expected code
REFUSALS = [
    ("POST", MATMUL, JSON, None, '{"a": [[1,2,3]], "b": [[1,2,3]]}', "bad_shape"),
    ("POST", MATMUL, JSON, None, '{"a": [[1,2],[3,4]], "b": [[5,6],[7,', "bad_request"),
    ("POST", MATMUL + "?colour=1", JSON, None, ONES, "bad_request"),
    ("POST", MATMUL, JSON, None, '{"a": [[1]], "b": [[1]], "variant": "magic"}', "unsupported"),
    ("POST", MATMUL + "?m=1&k=1&n=1", RAW, None, BYTES_16, "bad_request"),
    ("POST", MATMUL + "?m=2000000000&k=1&n=2000000000", RAW, None, BYTES_16, "too_large"),
    ("POST", MATMUL, "image/png", None, BYTES_16, "unsupported_media_type"),
    ("POST", MATMUL, JSON, "text/html", ONES, "not_acceptable"),
    ("POST", "/v1/matmull", JSON, None, ONES, "not_found"),
    ("PUT", MATMUL, JSON, None, ONES, "method_not_allowed"),
]
# Requests for tests/http/faulty, whose variants fail for products of one row
FAULTS = [
    ("POST", MATMUL + "?m=1&k=2&n=1&backend=cuda&variant=fails", RAW, None, BYTES_16, "internal"),
    ("POST", MATMUL + "?m=1&k=2&n=1&backend=cuda&variant=needs_memory", RAW, None, BYTES_16, "no_device_memory"),
]


class Wrong(Exception):
    """An incorrect reply."""


def require(condition, *what):
    if not condition:
        raise Wrong(" ".join(map(str, what))[:400])


def chance(percent):
    return random.randrange(100) < percent


def draw_shape(edge_max, is_small, multiple_of):
    """Often returns shapes that cause errors: empty, one row, one column, k = 0, almost a multiple of a tile."""
    kind = random.randrange(100)
    if not is_small and random.randrange(1000) == 0:
        shape = [random.randint(1, LARGE_MAX) for _ in range(3)]
    elif kind < 85:
        shape = [
            random.randint(1, min(16, edge_max)) if kind < 75
            else min(edge_max, random.choice([8, 16, 32, 64]) + random.randint(-1, 1))
            for _ in range(3)
        ]  # fmt: skip
    else:
        shape = [random.randint(1, edge_max) for _ in range(3)]
    special = random.randrange(100)
    if special < 30:
        shape[special % 3] = 1 if special < 20 else 0
    return [-(-size // multiple_of) * multiple_of for size in shape]


class Operand:
    """A random operand of integers times `scale`. If `transposed`, the request contains its transpose."""

    def __init__(self, rows, cols, scale, form):
        self.rows, self.cols, self.scale = rows, cols, scale
        self.elements = [[random.randint(-8, 8) for _ in range(cols)] for _ in range(rows)]
        self.transposed = chance(30)
        # Nested lists can express the shape 3×0 but not 0×3.
        if form == JSON and (rows == 0) != (cols == 0):
            self.transposed = rows == 0
        self.stored_cols = rows if self.transposed else cols
        self.ld = self.stored_cols + (random.randrange(10) if form == RAW and chance(25) else 0)

    def stored(self):
        if self.transposed:
            columns = zip(*self.elements) if self.rows > 0 else [()] * self.cols
            return [[self.scale * element for element in column] for column in columns]
        return [[self.scale * element for element in row] for row in self.elements]

    def raw(self):
        """Returns the raw bytes. Padding after each row is NaN, which the service must not read."""
        gap = [float("nan")] * (self.ld - self.stored_cols)
        return b"".join(struct.pack(f"<{self.ld}f", *row, *gap) for row in self.stored())

    def times(self, vector):
        return [sum(map(operator.mul, row, vector)) for row in self.elements]


class Product:
    def __init__(self, plan, is_small):
        self.form = random.choice([JSON, RAW])
        self.variant = random.choice(plan.variants)
        edge_max = SMALL_EDGE_MAX if is_small else EDGE_MAX
        self.m, self.k, self.n = draw_shape(edge_max, is_small, self.variant.get("multiple_of") or 1)
        self.a = Operand(self.m, self.k, 2.0 ** -random.randrange(10), self.form)
        self.b = Operand(self.k, self.n, 2.0 ** random.randrange(10), self.form)
        self.accept, self.reply_form = random.choice(
            [(None, self.form), ("*/*", self.form), (JSON, JSON), ("application/json;q=0.5, " + RAW, RAW)]
        )

    def options(self, plan):
        name, backend = self.variant["name"], self.variant["backend"]
        options = {}
        if name != "auto" or chance(50):
            options["variant"] = name
        if plan.backend or backend != plan.default_backend or chance(30):
            options["backend"] = backend
        if chance(20):
            options["dtype"] = "float32"
        if chance(10):
            options["timeout_ms"] = 3600000
        if chance(20):
            options["devices"] = random.choice([1, "auto"] if name == "blas" else [1, "auto", "all"])
        for operand, flag in (self.a, "transpose_a"), (self.b, "transpose_b"):
            if operand.transposed or chance(10):
                options[flag] = operand.transposed
        return options

    def request(self, plan):
        """Returns target and body. Options are in the query, or in JSON in random order."""
        options = self.options(plan)
        query = dict(options) if self.form == RAW else {name: options.pop(name) for name in list(options) if chance(30)}
        if self.form == RAW:
            query.update(m=self.m, k=self.k, n=self.n)
            for operand, name in (self.a, "lda"), (self.b, "ldb"):
                if operand.ld != operand.stored_cols or chance(10):
                    query[name] = operand.ld
            body = self.a.raw() + self.b.raw()
        else:
            members = [*options.items(), ("a", self.a.stored()), ("b", self.b.stored())]
            random.shuffle(members)
            body = json.dumps(dict(members)).encode()
        text = "&".join(f"{name}={str(value).lower()}" for name, value in query.items())
        return MATMUL + ("?" + text if text else ""), body

    def check(self, plan, reply):
        head = reply.headers
        require(reply.status == 200, "status", reply.status, "expected 200:", reply.body[:300])
        require(head.get("content-type") == self.reply_form, "Content-Type is", head.get("content-type"))
        require(head.get("matmul-shape") == f"{self.m}, {self.n}", "Matmul-Shape is", head.get("matmul-shape"))
        require(head.get("matmul-backend") == self.variant["backend"], "Matmul-Backend is", head.get("matmul-backend"))
        asked, ran = self.variant["name"], head.get("matmul-variant")
        runs = [row["name"] for row in plan.variants if row["backend"] == self.variant["backend"] and row["name"] != "auto"]
        require(ran in runs if asked == "auto" else ran == asked, "Matmul-Variant is", ran, "for", asked)
        self.check_elements(self.read_json(reply) if self.reply_form == JSON else self.read_raw(reply))

    def read_raw(self, reply):
        require(len(reply.body) == 4 * self.m * self.n, "the reply has", len(reply.body), "bytes")
        return list(struct.iter_unpack(f"<{self.n}f", reply.body)) if self.n > 0 else [()] * self.m

    def read_json(self, reply):
        members = json.loads(reply.body)
        require(members.get("shape") == [self.m, self.n], reply.body[:300])
        rows = members.get("c")
        require(isinstance(rows, list) and len(rows) == self.m and all(len(row) == self.n for row in rows), reply.body[:300])
        row_of = struct.Struct(f"<{self.n}f")  # rounds decimals to the nearest float32
        return [row_of.unpack(row_of.pack(*row)) for row in rows]

    def check_elements(self, rows):
        """Checks C·x = A·(B·x) exactly for a random x (Freivalds). Accepts a wrong C once in a million times."""
        x = [random.randrange(1, 1 << 20) for _ in range(self.n)]
        scale = self.a.scale * self.b.scale
        for row, (got, right) in enumerate(zip(rows, self.a.times(self.b.times(x)))):
            require(sum(map(operator.mul, got, x)) == scale * right, f"row {row} of the product is wrong:", list(got))


class Refusal:
    def __init__(self, rows, is_small):
        self.row = random.choice(rows)
        # The service must drop the spaces after the body.
        self.spaces = random.randrange(200000) if rows is REFUSALS and not is_small and chance(10) else 0
        self.method, self.target, self.form, self.accept, self.body, self.code = self.row

    def request(self, _):
        return self.target, (self.body + " " * self.spaces).encode()

    def check(self, _, reply):
        code = check_problem(reply)
        require(code == self.code, "code", code, "expected", self.code)


class Stored:
    """A request for a stored matrix. All its elements are equal, so a mixture of two values is noticed."""

    form, accept, code = RAW, RAW, "stored"

    def __init__(self, plan, is_small):
        self.edge = random.choice(STORED_EDGES[:5] if is_small else STORED_EDGES)
        self.draw = random.choice([self.put, self.get, self.reduce, self.multiply, self.store_result, self.delete])
        self.method, self.body, self.may_be = "POST", b"", (200, 404)
        self.rows, self.cols = (0, self.edge), (0, self.edge)
        self.query = [f"backend={plan.backend}"] if plan.backend else []
        self.draw()

    def name(self):
        return f"{'xyz'[random.randrange(3)]}{self.edge}"

    def about(self, method, may_be):
        self.method, self.may_be, self.query, self.path = method, may_be, [], "/v1/matrices/" + self.name()

    def cut(self):
        for dim in "rows", "cols":
            if chance(40):
                first = random.randint(0, self.edge)
                last = random.randint(first, self.edge)
                setattr(self, dim, (first, last))
                self.query.append(f"{dim}={first}:{last}")

    def put(self):
        self.about("PUT", (200, 201, 507))
        self.query += [f"m={self.edge}", f"n={self.edge}"] + ["ttl_s=1"] * chance(20)
        self.body = struct.pack("<f", random.randrange(1, 1 << 20)) * self.edge**2

    def get(self):
        self.about("GET", (200, 404))
        self.cut()

    def reduce(self):
        self.about("GET", (200, 404))
        self.accept = JSON
        self.query.append("reduce=min,max,sum")

    def delete(self):
        self.about("DELETE", (204, 404))

    def multiply(self):
        self.path = MATMUL
        self.query += ["devices=all"] * chance(30)
        self.query += [f"a_from={self.name()}", "b_from=identity()", f"n={self.edge}"]
        self.cut()

    def store_result(self):
        self.path = MATMUL
        self.query += ["a_from=identity()", f"b_from={self.name()}", f"m={self.edge}", f"out={self.name()}", "reply=none"]
        self.query += ["devices=all"] * chance(30)
        self.accept, self.may_be = JSON, (200, 404, 507)

    def request(self, _):
        return self.path + "?" * bool(self.query) + "&".join(self.query), self.body

    def check(self, _, reply):
        self.code = f"stored {self.draw.__name__}"
        require(reply.status in self.may_be, self.code, "status", reply.status, reply.body[:300])
        if reply.status >= 400:
            return check_problem(reply)
        if self.draw == self.reduce:
            figures = json.loads(reply.body)["reduce"]
            require(figures["min"] == figures["max"] == figures["sum"] / self.edge**2, "figures", figures)
        elif self.draw in (self.get, self.multiply):
            count = (self.rows[1] - self.rows[0]) * (self.cols[1] - self.cols[0])
            require(reply.body == reply.body[:4] * count, self.code, "elements of two values, or", len(reply.body), "bytes")


def check_problem(reply):
    """Checks that the reply is a valid problem document. Returns the code of the problem."""
    require(reply.headers.get("content-type") == "application/problem+json", "Content-Type of status", reply.status)
    problem = json.loads(reply.body)
    require(problem.get("status") == reply.status, "status", reply.status, "of", reply.body[:300])
    require(problem.get("request_id") == reply.headers.get("x-request-id"), "request_id is", problem.get("request_id"))
    return problem["code"]


Reply = collections.namedtuple("Reply", "status headers body")


class Request:
    def __init__(self, client, is_small):
        plan = client.plan
        self.id = f"{plan.seed:x}.{client.number}.{client.made}"
        client.made += 1
        if chance(plan.faults):
            self.kind = Refusal(FAULTS, is_small)
        elif chance(15):
            self.kind = Refusal(REFUSALS, is_small)
        elif chance(25):
            self.kind = Stored(plan, is_small)
        else:
            self.kind = Product(plan, is_small)
        self.target, body = self.kind.request(plan)
        self.chunked = chance(10) and not isinstance(self.kind, Stored)  # a PUT needs a Content-Length
        self.waits = len(body) > EXPECT_BYTES
        content_type = None if isinstance(self.kind, Product) and chance(10) else self.kind.form
        headers = {
            "Host": f"{HOST}:{plan.port}",
            "X-Request-Id": self.id,
            "Content-Type": content_type,
            "Accept": self.kind.accept,
            "Transfer-Encoding": "chunked" if self.chunked else None,
            "Content-Length": None if self.chunked else len(body),
            "Expect": "100-continue" if self.waits else None,
        }
        lines = [f"{getattr(self.kind, 'method', 'POST')} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items() if value is not None]
        self.head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        self.body = b"".join(chunks(body)) if self.chunked else body

    def __str__(self):
        kind = self.kind
        what = kind.code if not isinstance(kind, Product) else f"{kind.m}x{kind.k}.{kind.k}x{kind.n} to {kind.reply_form}"
        return f"{self.id} ({what}; {self.target}, {len(self.body)} bytes{', chunked' if self.chunked else ''})"


def chunks(body):
    at = 0
    while at < len(body):
        chunk = body[at : at + random.randint(1, len(body) // 2 + 64)]
        yield (f"{len(chunk):x}" if chance(50) else f"{len(chunk):X}").encode() + b"\r\n" + chunk + b"\r\n"
        at += len(chunk)
    yield b"0\r\n\r\n"


def read_reply(reader):
    """Reads a final or interim reply with its body."""
    line = reader.readline()
    if not line.startswith(b"HTTP/1.1 "):
        raise ConnectionError(f"no reply, but {line[:100]}")
    status, headers = int(line.split()[1]), {}
    while line := reader.readline().decode().rstrip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers["content-length"]) if status >= 200 and status != 204 else 0
    body = reader.read(length)
    if len(body) < length:
        raise ConnectionError(f"closed with {len(body)} of {length} bytes of a reply sent")
    return Reply(status, headers, body)


class Client:
    def __init__(self, plan, number):
        self.plan, self.number, self.made = plan, number, 0
        self.counts = collections.Counter()
        self.socket = self.reader = None

    def hang_up(self, by_reset=False):
        if by_reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.reader.close()
        self.socket.close()
        self.socket = self.reader = None

    def send(self, data):
        """Sends the bytes, sometimes in chunks of random sizes."""
        in_pieces, at = chance(5), 0
        while at < len(data):
            piece = data[at : at + random.randint(1, len(data))] if in_pieces else data
            self.socket.sendall(piece)
            at += len(piece)

    def check(self, request, reply):
        self.counts["requests"] += 1
        self.counts["  in chunks"] += request.chunked
        code = "ok"
        try:
            require(reply.headers.get("x-request-id") == request.id, "X-Request-Id is", reply.headers.get("x-request-id"))
            if reply.status in (429, 503):  # replies of a busy server
                code = check_problem(reply)
                require(reply.headers.get("retry-after", "").isdigit(), "Retry-After is", reply.headers.get("retry-after"))
            else:
                request.kind.check(self.plan, reply)
                code = getattr(request.kind, "code", "ok")
                if code == "ok":
                    self.counts["products right"] += 1
                    self.counts["  by {backend}:{name}".format(**request.kind.variant)] += 1
            self.counts[f"{reply.status} {code}"] += 1
        except Wrong as wrong:
            self.counts["mismatches"] += 1
            print(f"{request}: {wrong}", file=sys.stderr)
        if reply.headers.get("connection", "").lower() == "close":
            self.hang_up()
            # The server may close after a rejected body or a chunked body. libmicrohttpd 0.9 reads a false
            # trailer if the last line of a chunked body arrives late (SECURITY.md).
            if not request.waits and not request.chunked:
                raise ConnectionError("the reply closes the connection without need")

    def leave(self, request):
        """Sends all or a part of the request, and closes the connection at once or a little later."""
        everything = request.head + request.body
        try:
            self.socket.sendall(everything[: random.randrange(len(everything) + 1)] if chance(50) else everything)
        except OSError:
            pass  # the service has rejected the request and closed the connection
        if chance(50):
            time.sleep(random.uniform(0, LEAVE_S_MAX))
        self.hang_up(by_reset=chance(50))
        self.counts["left before the reply"] += 1

    def exchange(self, requests):
        """Sends several requests without waiting, and expects the replies in the same order."""
        if requests[0].waits:
            self.send(requests[0].head)
            reply = read_reply(self.reader)
            if reply.status == 100:
                self.send(requests[0].body)
                reply = read_reply(self.reader)
            self.check(requests[0], reply)
            return
        self.send(b"".join(request.head + request.body for request in requests))
        for request in requests:
            if self.socket is not None:  # None after a reply that closes the connection
                self.check(request, read_reply(self.reader))
        self.counts["  pipelined"] += len(requests) - 1

    def step(self):
        is_batch = chance(5)
        requests = [Request(self, is_batch) for _ in range(random.randint(2, 6) if is_batch else 1)]
        try:
            if self.socket is None:
                self.socket = socket.create_connection((HOST, self.plan.port), timeout=REPLY_WAIT_S)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.reader = self.socket.makefile("rb")
            if not is_batch and chance(self.plan.leave):
                self.leave(requests[0])
            else:
                self.exchange(requests)
        except (OSError, ValueError, KeyError) as error:  # ValueError and KeyError come from malformed replies
            self.counts["broken connections"] += 1
            print(f"{requests[0]}: {error}", file=sys.stderr)
            if self.socket is not None:
                self.hang_up()

    def run(self):
        random.seed(f"{self.plan.seed} {self.number}")
        until = time.monotonic() + self.plan.seconds
        while (time.monotonic() < until or self.made < REQUESTS_MIN) and (
            self.counts["mismatches"] + self.counts["broken connections"] < FAILURES_MAX
        ):
            self.step()
        return self.counts


def run_client(plan, number):
    return Client(plan, number).run()


def fetch_variants(plan):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{HOST}:{plan.port}/v1/variants", timeout=REPLY_WAIT_S) as reply:
        rows = [row for row in json.load(reply)["variants"] if row["op"] == "matmul"]
    plan.default_backend = rows[0]["backend"]  # the backend that "auto" chooses
    plan.variants = [row for row in rows if row["available"] and "float32" in row["dtypes"] and plan.backend in (None, row["backend"])
                     and not row.get("wrong_on_purpose")]


def main():
    parser = argparse.ArgumentParser(description="Loads a matmuld on this machine; exits with 1 if a reply is wrong or missing.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--backend", help="its variants alone")
    parser.add_argument("--leave", type=int, default=0, help="percent of the requests whose reply is not waited for")
    parser.add_argument("--faults", type=int, default=0, help="percent made to fail on the device, as tests/http/faulty can")
    plan = parser.parse_args()
    fetch_variants(plan)
    print(f"{plan.clients} clients for {plan.seconds} s, seed {plan.seed}, {len(plan.variants)} variants", flush=True)
    begun = time.monotonic()
    with multiprocessing.get_context("fork").Pool(plan.clients) as pool:
        counts = sum(pool.starmap(run_client, [(plan, number) for number in range(plan.clients)], 1), collections.Counter())
    for name in ["requests", "mismatches", "broken connections"]:
        counts[name] += 0
    for name, count in sorted(counts.items(), key=lambda item: item[0].strip()):
        print(f"{name:36} {count:12}")
    print(f"{'requests a second':36} {counts['requests'] / (time.monotonic() - begun):12.3f}")
    if counts["products right"] == 0:
        sys.exit("mixed: no product was checked, which proves nothing")
    sys.exit(counts["mismatches"] + counts["broken connections"] > 0)


if __name__ == "__main__":
    main()
