"""Measures how many requests matmuld answers while clients attack its memory.

For each attack the script starts a server. An honest client sends small products before, during and after the
attack, and checks every product. The attack comes from another process with the same address, and reconnects
whenever the server closes a connection. The last table is no attack: 1,000 connections request more products
than the server can compute. Its second row shows the rate with 1,000 connections and enough memory. The
script shares no code with the service.

Columns: "answered" is the percentage of honest requests that got the right product within 30 s. "p50" and
"p99" are their times in ms. "used" is the part of the memory budget in use during the attack, mean and peak.
"replies" counts how connections of the attack ended: a status, or a closed connection without a complete
reply.

Results below about 4 MiB need no memory of the server, because the kernel buffers them (net.ipv4.tcp_wmem).
"""

import argparse
import asyncio
import collections
import datetime
import functools
import http.client
import math
import multiprocessing
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time

HOST = "127.0.0.1"
MIB = 1 << 20
EDGES = [64, 100, 150, 200, 250, 300]
HONEST_CONNECTIONS, HONEST_PAUSE_S, REPLY_S = 8, 0.02, 30
TIMEOUT_S, RECEIVE_RATE = 60, 4096  # the server's --timeout-ms and --receive-rate
MEMORY_WAIT_MS = 3000  # the server answers 429 after a request has waited this long for memory
TICK_S = 0.25  # time between two chunks of a slow client
RECEIVE_BUFFER = 4096  # small, so the server can send only what the attack reads
START_S, STOP_S = 60, 60
STORED = 8  # number of matrices that the attack on the store uploads
ZEROS = memoryview(bytes(1 << 30))  # takes no memory, because its pages are never written

def send(sock, data):
    return asyncio.get_running_loop().sock_sendall(sock, data)


def receive(sock, size):
    return asyncio.get_running_loop().sock_recv(sock, size)


async def connect(port, receive_buffer=None):
    sock = socket.socket()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
    return sock


async def race(sending, reading):
    """Sends and reads at the same time, because the server may reply early. Returns the result of reading."""
    sender = asyncio.ensure_future(sending)
    try:
        return await reading
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)


def make_head(method, target, *fields):
    types = [f"{name}: application/octet-stream" for name in ("Accept", "Content-Type")]
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {HOST}", *types, *fields, "", ""]).encode()


@functools.lru_cache(maxsize=None)
def make_product(edge):
    """Returns a request and its product. All elements of A are 1, and column j of B contains j."""
    target = f"/v1/matmul?m={edge}&k={edge}&n={edge}"
    row = struct.pack(f"<{edge}f", *range(edge))
    body = struct.pack("<f", 1) * edge**2 + row * edge
    product = struct.pack(f"<{edge}f", *(edge * column for column in range(edge))) * edge
    return make_head("POST", target, f"Content-Length: {len(body)}") + body, product


async def read_reply(sock):
    """Returns the status, the body, and whether the server closes the connection."""
    parts, size = [], 0
    head, length = None, math.inf
    while size < length:
        part = await receive(sock, MIB)
        if not part:
            raise ConnectionError("closed")
        parts.append(part)
        size += len(part)
        if head is None and b"\r\n\r\n" in (data := b"".join(parts)):
            head, _, body = data.partition(b"\r\n\r\n")
            parts, size = [body], len(body)
            length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])
    return int(head.split()[1]), b"".join(parts), b"connection: close" in head.lower()


async def ask(port, number, until, edges, pause_s):
    """Sends requests one after another. Returns start, milliseconds and outcome of each request."""
    draw, sock, records = random.Random(number), None, []
    while (begun := time.monotonic()) < until:
        request, product = make_product(draw.choice(edges))
        closes = True
        try:
            sock = sock or await connect(port)
            exchange = race(send(sock, request), read_reply(sock))
            status, body, closes = await asyncio.wait_for(exchange, REPLY_S)
            end = str(status) if status != 200 or body == product else "wrong"
        except asyncio.TimeoutError:
            end = "late"
        except OSError:
            end = "closed"
        records.append((begun, 1000 * (time.monotonic() - begun), end))
        if sock and (closes or end != "200"):
            sock.close()
            sock = None
        await asyncio.sleep(pause_s)
    if sock:
        sock.close()
    return records


def run_honest(port, until, connections=HONEST_CONNECTIONS, edges=EDGES, pause_s=HONEST_PAUSE_S):
    async def ask_all():
        return await asyncio.gather(*(ask(port, number, until, edges, pause_s) for number in range(connections)))

    return [record for records in asyncio.run(ask_all()) for record in records]


# --- Attacks. Each function is one connection of an attack, and returns the status of the reply.


async def read_status(sock):
    """Returns the status of the final reply, or "closed" if the server closes without a reply."""
    while (start := await receive(sock, 4096)).startswith(b"HTTP/1.1 100"):
        pass
    return start[9:12].decode() or "closed"


def make_claim(size, *fields):
    return make_head("POST", f"/v1/matmul?m=1&k={size // 8}&n=1", f"Content-Length: {size}", *fields)


async def upload(sock, head, size=0):
    """Sends a head and `size` bytes of the body at full speed."""

    async def send_all():
        await send(sock, head)
        await send(sock, ZEROS[:size])

    return await race(send_all(), read_status(sock))


async def upload_slowly(sock, head, rate, size=math.inf, is_chunked=False):
    """Sends a body evenly, at `rate` bytes a second."""

    async def send_all():
        await send(sock, head)
        begun, sent = time.monotonic(), 0
        while sent < size:
            await asyncio.sleep(TICK_S)
            count = int(min(size, rate * (time.monotonic() - begun))) - sent
            await send(sock, b"%x\r\n%b\r\n" % (count, ZEROS[:count]) if is_chunked else ZEROS[:count])
            sent += count

    return await race(send_all(), read_status(sock))


async def read_slowly(sock, request, rate):
    """Sends a request and reads the reply at `rate` bytes a second."""
    await send(sock, request)
    status = await read_status(sock)
    while status == "200" and await receive(sock, int(rate * TICK_S)):
        await asyncio.sleep(TICK_S)
    return "closed" if status == "200" else status


async def fill_store(port, budget):
    """Stores matrices that use 0.4 of the memory budget together."""
    for number in range(STORED):
        sock = await connect(port)
        size = budget // 10 // STORED * 4
        head = make_head("PUT", f"/v1/matrices/m{number}?m=1&n={size // 4}", f"Content-Length: {size}")
        if (status := await upload(sock, head, size)) != "201":
            raise RuntimeError(f"the store refuses a matrix with status {status}")
        sock.close()


def make_attacks(budget):
    """Returns a dict from the name of an attack to pairs: number of connections, function of each connection."""
    do = functools.partial

    def result(edge, rate=5000):
        target = f"/v1/matmul?m={edge}&k=1&n={edge}&a_from=uniform(1)&b_from=uniform(2)"
        return do(read_slowly, request=make_head("POST", target, "Content-Length: 0"), rate=rate)

    attacks = {}
    kinds = {
        "claims": lambda size: do(upload, head=make_claim(size)),
        "expect": lambda size: do(upload, head=make_claim(size, "Expect: 100-continue")),
        "slow bodies": lambda size: do(
            upload_slowly, head=make_claim(size), size=size, rate=1.1 * max(size / TIMEOUT_S, RECEIVE_RATE)
        ),
        "half bodies": lambda size: do(upload, head=make_claim(size), size=size // 2),
    }
    for kind, make in kinds.items():
        for count in 21, 200:
            attacks.update({f"{kind} {count} x {mib} MiB": [(count, make(mib * MIB))] for mib in (2, 4, 64)})
    for count in 21, 200:
        for rate in 1000, 5000:  # one is below the server's --send-rate, one above
            attacks[f"slow readers {count} x 55 MiB at {rate} B/s"] = [(count, result(3800, rate))]
    for count in 3, 20:
        attacks[f"results {count} x 13/16 of the budget"] = [(count, result(math.isqrt(budget * 13 // 16 // 4)))]
    for mib, edge in (2, 724), (4, 1024):
        attacks[f"results 200 x {mib} MiB"] = [(200, result(edge))]
    size = budget // 10 // 8 * 8
    gets = [make_head("GET", f"/v1/matrices/m{number}") for number in range(STORED)]
    readers = [(3, do(read_slowly, request=request, rate=5000)) for request in gets]
    attacks["stored"] = [(8, do(upload, head=make_claim(size), size=size)), *readers]
    head = make_head("POST", f"/v1/matmul?m=1&k={8 * MIB}&n=1", "Transfer-Encoding: chunked")
    for rate in int(1.1 * RECEIVE_RATE), 75000:
        attacks[f"chunked 200 at {rate} B/s"] = [(200, do(upload_slowly, head=head, rate=rate, is_chunked=True))]
    return attacks


async def attack_again(port, attack, tally):
    while True:
        sock = None
        try:
            sock = await connect(port, RECEIVE_BUFFER)
            tally[await attack(sock)] += 1
        except OSError:
            tally["closed" if sock else "refused"] += 1
            await asyncio.sleep(0 if sock else TICK_S)
        finally:
            if sock:
                sock.close()


def run_attack(port, name, budget, begin, until):
    async def attack_all():
        if name == "stored":
            await fill_store(port, budget)
        parts = make_attacks(budget)[name]
        everyone = asyncio.gather(*(attack_again(port, attack, tally) for count, attack in parts for _ in range(count)))
        try:
            await asyncio.wait_for(everyone, until - time.monotonic())
        except asyncio.TimeoutError:
            pass

    tally = collections.Counter()
    time.sleep(max(0, begin - time.monotonic()))
    asyncio.run(attack_all())
    return tally


class Server:
    def __init__(self, path, budget):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MATMULD_")}
        self.log = tempfile.TemporaryFile()
        options = {"backend": "cpu", "port": 0, "log-format": "text", "memory-budget": budget, "store-memory": budget // 2,
                   "lame-duck-ms": 0}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen([path, *words], stderr=self.log, env=environment)
        until = time.monotonic() + START_S
        while " ready\n" not in (text := os.pread(self.log.fileno(), MIB, 0).decode()):
            if self.process.poll() is not None or time.monotonic() > until:
                self.process.kill()
                sys.exit(f"attacks: matmuld does not start:\n{text}")
            time.sleep(0.05)
        self.port = int(re.search(r"listening on \S*:(\d+)", text)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = "none after SIGTERM"
        if code != 0:
            print(f"attacks: the server's exit status is {code}", file=sys.stderr)

    def used_bytes(self):
        """Returns how much of the memory budget is used, or None if the server does not answer."""
        try:
            connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            return float(re.search(r'matmuld_staging_bytes\{state="used"\} (\S+)', text)[1])
        except (OSError, http.client.HTTPException, TypeError):
            return None


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)] if values else math.nan


def answered(records):
    return [ms for _, ms, end in records if end == "200"]


def answered_percent(records):
    return 100 * len(answered(records)) / len(records) if records else math.nan


def describe(records):
    times = answered(records)
    return f"{len(records)} | {answered_percent(records):.1f} | {percentile(times, 50):.1f} | {percentile(times, 99):.0f}"


def tally_ends(records):
    return collections.Counter(end for _, _, end in records)


def describe_tally(ends):
    return ", ".join(f"{end}: {count}" for end, count in sorted(ends.items())) or "none"


def measure_attack(options, pool, name):
    """Prints the row of an attack. Returns whether the server answered enough honest requests."""
    with Server(options.matmuld, options.budget) as server:
        begin = time.monotonic() + options.quiet_seconds
        end = begin + options.seconds
        honest = pool.apply_async(run_honest, (server.port, end + options.quiet_seconds))
        attack = pool.apply_async(run_attack, (server.port, name, options.budget, begin, end))
        time.sleep(options.quiet_seconds)
        used = []
        while time.monotonic() < end:
            used.append(server.used_bytes())
            time.sleep(TICK_S)
        tally, records = attack.get(), honest.get()
    during = [record for record in records if begin <= record[0] < end]
    phases = [r for r in records if r[0] < begin], during, [r for r in records if r[0] >= end]
    used = [count / MIB for count in used if count is not None] or [math.nan]
    failed = tally_ends(record for record in during if record[2] != "200")
    cells = [name, *map(describe, phases), describe_tally(failed), f"{sum(used) / len(used):.0f}, {max(used):.0f}"]
    print("|", " | ".join([*cells, describe_tally(tally)]), "|", flush=True)
    return options.require is None or answered_percent(during) >= options.require


def measure_overload(options, pool):
    """Prints the table of overload. Returns False if a request got 429 before it had waited MEMORY_WAIT_MS."""
    print("\n| overload by 300^3 | requests | answered | p50 | p99 | ends | waits of 429s: least, p50, most | "
          "earlier than 3 s | goodput/s | % of the first row |\n|---|--:|--:|--:|--:|---|---|--:|--:|--:|")  # fmt: skip
    capacity = None
    for connections, budget in (16, options.budget), (1000, options.budget), (1000, 8 * MIB):
        with Server(options.matmuld, budget) as server:
            until = time.monotonic() + options.seconds
            records = pool.apply(run_honest, (server.port, until, connections, [300], 0))
        goodput = len(answered([r for r in records if r[0] + r[1] / 1000 < until])) / options.seconds
        capacity = capacity or goodput or math.nan
        waits = [ms for _, ms, end in records if end == "429"]
        early = sum(ms < MEMORY_WAIT_MS for ms in waits)
        cells = [f"{connections} in {budget // MIB} MiB", describe(records), describe_tally(tally_ends(records))]
        cells += [", ".join(f"{percentile(waits, percent):.0f}" for percent in (0, 50, 100)), str(early)]
        print("|", " | ".join([*cells, f"{goodput:.0f}", f"{100 * goodput / capacity:.0f}"]), "|", flush=True)
    return options.require is None or early == 0


def parse_size(text):
    number, unit = re.fullmatch(r"(\d+)([KMG]iB)?", text).groups()
    return int(number) << {None: 0, "KiB": 10, "MiB": 20, "GiB": 30}[unit]


def read_cpu_model():
    with open("/proc/cpuinfo") as info:
        return re.search(r"model name\s*: (.*)|$", info.read())[1] or "unknown CPU"


def main():
    parser = argparse.ArgumentParser(description="Attacks a matmuld beside an honest client, and prints a table.")
    parser.add_argument("matmuld")
    parser.add_argument("--budget", type=parse_size, default="1GiB", help="the server's --memory-budget")
    parser.add_argument("--seconds", type=float, default=60, help="of each attack")
    parser.add_argument("--quiet-seconds", type=float, default=10, help="before and after each attack")
    parser.add_argument("--attacks", help="beginnings of names, with commas between them; without it all")
    parser.add_argument("--require", type=float, help="exit with 1 if fewer percent are answered, or if a 429 comes early")
    options = parser.parse_args()
    begins = tuple(options.attacks.split(",")) if options.attacks else ("",)
    names = [name for name in [*make_attacks(options.budget), "overload"] if name.startswith(begins)]
    if not names:
        sys.exit("\n".join(["attacks: no such attack; there are:", *make_attacks(options.budget), "overload"]))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    print(f"{read_cpu_model()}, {os.cpu_count()} cores; budget {options.budget / MIB:.0f} MiB; "
          f"{options.seconds:g} s each; {datetime.date.today()}\n")  # fmt: skip
    phases = [f"{name}: requests | answered | p50 | p99" for name in ("before", "during", "after")]
    print("|", " | ".join(["attack", *phases, "failed during", "used MiB", "replies"]), "|")
    print("|---" + "|--:" * 12 + "|---|---|---|", flush=True)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        passes = [measure_overload(options, pool) if name == "overload" else measure_attack(options, pool, name)
                  for name in names]  # fmt: skip
    sys.exit(not all(passes))


if __name__ == "__main__":
    main()
