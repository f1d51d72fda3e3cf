#!/usr/bin/env python3
"""Sends one request repeatedly and prints a line of figures: requests=N ok=N refused=N ... p99_ms=MS.

By default each connection sends its next request after the reply (a closed loop). This program starts wrk for
small bodies, because Python would be too slow, and sends large bodies itself, because wrk reads only 8 KiB at
a time. With --rate, requests are sent at fixed times (an open loop), and the time of a request counts from
when it was due.

"refused" counts replies 429 and 503 with Retry-After. "unsent" counts requests that were due while all
connections were busy. --spans adds the mean of each span in Server-Timing, outside_ms (median of a request's
time minus its kernel time) and rest_ms (duration of the run minus the sum of kernel times).
"""

import argparse
import itertools
import json
import os
import queue
import random
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

SPANS = ("receive", "decode", "queue", "upload", "kernel", "download", "encode", "total")
WRK_BYTES_MAX = 1 << 20  # body and reply; beyond it wrk is the bottleneck
BLOCK = 65521  # number of random values that repeat; prime, so rows differ
NPY_HEAD_BYTES = 128
REPLY_S = 120
LUA = """
local function read(name) local file = io.open(name, "rb") local text = file:read("*a") file:close() return text end
local whole = read("{folder}/head") .. read("{folder}/body")
request = function() return whole end
done = function(summary, latency)
    local errors = summary.errors
    io.write(string.format("wrk %d %d %d %f %f %f %f %f\\n", summary.requests, errors.status,
        errors.connect + errors.read + errors.write + errors.timeout, summary.duration / 1e6, latency.mean / 1e3,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--form", choices=("raw", "json", "multipart"), default="raw")
    parser.add_argument("--shape", default="4x4x4", help="MxKxN of the product")
    parser.add_argument("--query", default="", help="more of the query")
    parser.add_argument("--file", help="a whole request, in place of a product")
    parser.add_argument("--connections", type=int, help="1; of an open loop at most 1024")
    parser.add_argument("--seconds", type=float, default=1, help="after this no request begins")
    parser.add_argument("--unchecked", action="store_true", help="take any reply for the product")
    parser.add_argument("--expect", default="200", help="statuses with commas")
    parser.add_argument("--requests", type=int, default=0, help="of each connection of a closed loop")
    parser.add_argument("--threads", type=int, default=1, help="of wrk")
    parser.add_argument("--warm", type=int, default=1, help="requests of each connection that are not counted")
    parser.add_argument("--spans", action="store_true")
    parser.add_argument("--refusals", action="store_true", help="count other replies, which otherwise end the run")
    parser.add_argument("--rate", type=float, default=0, help="requests a second of an open loop")
    parser.add_argument("--kill", type=int, help="a process that gets SIGTERM")
    parser.add_argument("--after", type=float, default=0, help="seconds until then")
    parser.add_argument("--burst", type=int, default=0, help="requests at once just before")
    options = parser.parse_args()
    options.m, options.k, options.n = map(int, options.shape.split("x"))
    options.expect = set(map(int, options.expect.split(",")))
    options.connections = options.connections or (1024 if options.rate else 1)
    options.is_checked = not options.unchecked and not options.file
    return options


class Message:
    """The request, and the data to check the product."""

    def __init__(self, options):
        self.options, m, k, n = options, options.m, options.k, options.n
        if options.file:
            with open(options.file, "rb") as file:
                self.head, self.body, self.reply_bytes = file.read(), b"", 0
            return
        draw, count = random.Random(1), m * k + k * n
        block = struct.pack(f"<{BLOCK}f", *(draw.uniform(-1, 1) for _ in range(BLOCK)))
        elements = (block * (count // BLOCK + 1))[: 4 * count]
        self.numbers = memoryview(elements).cast("f")
        self.body = getattr(self, "make_" + options.form)(elements, m, k, n)
        self.reply_bytes = 4 * m * n * (3 if options.form == "json" else 1)
        types = {"raw": "application/octet-stream", "json": "application/json", "multipart": "multipart/form-data; boundary=edge"}
        query = "&".join(filter(None, (f"m={m}&k={k}&n={n}" if options.form == "raw" else "", options.query)))
        self.head = (f"POST /v1/matmul?{query} HTTP/1.1\r\nHost: {options.host}:{options.port}\r\n"
                     f"Content-Type: {types[options.form]}\r\nContent-Length: {len(self.body)}\r\n\r\n").encode()

    def make_raw(self, elements, m, k, n):
        return elements

    def make_json(self, elements, m, k, n):
        def rows(first, count, width):
            lines = (self.numbers[first + row * width : first + (row + 1) * width] for row in range(count))
            return "[" + ",".join("[" + ",".join(format(number, ".9g") for number in line) + "]" for line in lines) + "]"

        return f'{{"a": {rows(0, m, k)}, "b": {rows(m * k, k, n)}}}'.encode()

    def make_multipart(self, elements, m, k, n):
        def part(name, rows, cols, data):
            head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}"
            return (f'--edge\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.npy"\r\n'
                    "Content-Type: application/octet-stream\r\n\r\n").encode() + \
                b"\x93NUMPY\x01\x00v\x00" + f"{head:<117}\n".encode() + data + b"\r\n"

        return part("a", m, k, elements[: 4 * m * k]) + part("b", k, n, elements[4 * m * k :]) + b"--edge--\r\n"

    def check(self, body):
        """Checks the length and some elements of a product. Returns what is wrong, or None."""
        m, k, n = self.options.m, self.options.k, self.options.n
        if self.options.form == "json":
            rows = json.loads(body.tobytes())["c"]
            product = [number for row in rows for number in row]
        else:
            product = body[NPY_HEAD_BYTES if self.options.form == "multipart" else 0 :]
            if len(product) != 4 * m * n:
                return f"the product has {len(product)} bytes, not {4 * m * n}"
            product = product.cast("B").cast("f")
        for at in (0, n - 1, m // 2 * n + n // 2, m * n - 1):
            row, col = divmod(at, n)
            right = sum(self.numbers[row * k + i] * self.numbers[m * k + i * n + col] for i in range(k))
            if abs(product[at] - right) > 1e-4 * k**0.5:
                return f"element {row}, {col} of the product is {product[at]}, not {right}"
        return None


class Connection:
    """Sends requests one after another. All replies go to one buffer, so its pages are mapped already."""

    def __init__(self, message):
        self.message, self.options = message, message.options
        self.socket, self.buffer, self.was_checked = None, bytearray(1 << 16), False
        # If the server rejects a request, the server can leave a part of the body unread.
        self.may_be_refused = self.options.refusals or self.options.rate > 0

    def connect(self):
        self.socket = socket.create_connection((self.options.host, self.options.port), REPLY_S)
        self.socket.setblocking(True)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", REPLY_S, 0))

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def was_closed(self):
        """Returns True if the server has closed the connection since the last reply."""
        if self.socket is None:
            return False
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def send(self):
        """Returns False if the reply came before the whole body was sent."""
        self.socket.sendall(self.message.head)
        if not self.may_be_refused:
            self.socket.sendall(self.message.body)
            return True
        rest, poll = memoryview(self.message.body), select.poll()
        poll.register(self.socket, select.POLLIN | select.POLLOUT)
        while rest:
            if poll.poll(REPLY_S * 1000)[0][1] & ~select.POLLOUT:
                return False
            try:
                rest = rest[self.socket.send(rest, socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                pass
        return True

    def receive(self):
        """Returns status, headers and body."""
        text = b""
        while b"\r\n\r\n" not in text:
            part = self.socket.recv(1 << 16)
            if not part:
                raise ConnectionError("closed by the server")
            text += part
        head, _, start = text.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length, at = int(headers["content-length"]), len(start)
        if length > len(self.buffer):
            self.buffer = bytearray(length)
        body = memoryview(self.buffer)[:length]
        body[:at] = start
        while at < length:
            got = self.socket.recv_into(body[at:], 0, socket.MSG_WAITALL)
            if got == 0:
                raise ConnectionError("closed by the server")
            at += got
        return int(first.split()[1]), headers, body

    def ask(self, due=None):
        """Sends one request. Returns the outcome, milliseconds, Server-Timing, and what was wrong."""
        begun = due or time.monotonic()
        try:
            if self.was_closed():
                self.close()
            if self.socket is None:
                self.connect()
            is_sent = self.send()
            status, headers, body = self.receive()
        except OSError as error:
            self.close()
            return "lost", (time.monotonic() - begun) * 1e3, "", str(error)
        ms, told = (time.monotonic() - begun) * 1e3, None
        fate = "ok" if status in self.options.expect else "bad"
        if fate == "bad" and status in (429, 503) and "retry-after" in headers:
            fate = "refused"
        if status == 200 and self.options.is_checked and (self.options.rate or not self.was_checked):
            self.was_checked, told = True, self.message.check(body)
            fate = "bad" if told else fate
        if not is_sent or headers.get("connection", "").lower() == "close":
            self.close()
        return fate, ms, headers.get("server-timing", ""), told or f"status {status}: {body[:300].tobytes()}"


class Tally:
    """Counts how requests ended. Threads share it."""

    def __init__(self):
        self.times = {fate: [] for fate in ("ok", "refused", "bad", "lost")}
        self.spans, self.outside = dict.fromkeys(SPANS, 0.0), []
        self.unsent, self.begun, self.ended, self.trouble, self.lock = 0, 0.0, 0.0, None, threading.Lock()

    def add(self, fate, ms, timing, told):
        with self.lock:
            self.times[fate].append(ms)
            if fate == "ok":
                self.ended = time.monotonic()
                took = {name: float(rest) for name, _, rest in (part.strip().partition(";dur=") for part in timing.split(",")) if rest}
                for name in SPANS:
                    self.spans[name] += took.get(name, 0)
                self.outside.append(ms - took.get("kernel", 0))
            elif fate != "refused":
                self.trouble = self.trouble or told

    def show(self, has_spans):
        ok, refused, count = self.times["ok"], self.times["refused"], len(self.times["ok"])
        seconds = max(self.ended - self.begun, 0)
        figures = {"requests": sum(map(len, self.times.values())) + self.unsent}
        figures.update((fate, len(self.times[fate])) for fate in ("ok", "refused", "bad", "lost"))
        figures.update(unsent=self.unsent, seconds=seconds, rate=count / seconds if seconds else 0,
                       mean_ms=sum(ok) / max(count, 1), p50_ms=percentile(ok, 50), p99_ms=percentile(ok, 99),
                       max_ms=max(ok, default=0), refused_p99_ms=percentile(refused, 99))
        if has_spans:
            figures.update(outside_ms=statistics.median(self.outside or [0]), rest_ms=seconds * 1e3 - self.spans["kernel"])
            figures.update((f"{name}_mean_ms", self.spans[name] / max(count, 1)) for name in SPANS)
        show(figures)


def show(figures):
    print(*(f"{name}={value}" if isinstance(value, int) else f"{name}={value:.4f}" for name, value in figures.items()))


def percentile(times, hundredths):
    return sorted(times)[-(-len(times) * hundredths // 100) - 1] if times else 0


def run_closed(message, tally):
    options = message.options
    failed, start = [], threading.Barrier(options.connections + 1)

    def run():
        connection, done = Connection(message), 0
        replies = [connection.ask() for _ in range(options.warm)]
        start.wait()
        until = time.monotonic() + options.seconds
        while not failed and (done < options.requests if options.requests else time.monotonic() < until):
            replies.append(connection.ask())
            tally.add(*replies[-1])
            done += 1
            if replies[-1][0] != "ok" and not options.refusals:
                break
        if not options.refusals:
            failed.extend(told for fate, _, _, told in replies if fate != "ok")

    threads = [threading.Thread(target=run) for _ in range(options.connections)]
    for thread in threads:
        thread.start()
    start.wait()
    tally.begun = time.monotonic()
    for thread in threads:
        thread.join()
    return failed


def run_open(message, tally):
    options, idle, jobs = message.options, threading.Semaphore(message.options.connections), queue.SimpleQueue()
    counts, threads, begun = True, [], time.monotonic()
    waiting = threading.Semaphore(0)  # counts idle threads

    def run():
        connection = Connection(message)
        while (job := jobs.get()) is not None:
            reply = connection.ask(job[0])
            if job[1]:
                tally.add(*reply)
            idle.release()
            waiting.release()

    def begin(due):
        if not idle.acquire(blocking=False):
            tally.unsent += counts
            return
        if not waiting.acquire(blocking=False):
            threads.append(threading.Thread(target=run, daemon=True))
            threads[-1].start()
        jobs.put((due, counts))

    tally.begun, until = begun, begun + options.seconds
    for number in itertools.count():
        due = begun + number / options.rate
        if due >= until:
            break
        time.sleep(max(0, due - time.monotonic()))
        if options.kill and counts and due >= begun + options.after:
            for index in range(options.burst):
                if index == options.burst // 2:
                    time.sleep(0.05)  # half of the requests have time to arrive
                begin(time.monotonic())
            counts = False
            os.kill(options.kill, signal.SIGTERM)
            until = time.monotonic() + 0.2
        begin(due)
    for thread in threads:
        jobs.put(None)
    for thread in threads:
        thread.join(max(0, until + REPLY_S - time.monotonic()))
    return []


def run_wrk(message):
    """Checks one product, then prints wrk's figures."""
    options = message.options
    fate, _, _, told = Connection(message).ask()
    if fate != "ok":
        sys.exit(f"steady: {told}")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in ("head", message.head), ("body", message.body), ("lua", LUA.replace("{folder}", folder).encode()):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(data)
        seconds = max(1, round(options.seconds))
        command = ["wrk", "-t", str(min(options.threads, options.connections)), "-c", str(options.connections), "-d", f"{seconds}s",
                   "--timeout", f"{REPLY_S}s", "-s", f"{folder}/lua", f"http://{options.host}:{options.port}"]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    requests, bad, lost, *rest = next(line for line in output.splitlines() if line.startswith("wrk ")).split()[1:]
    if int(bad) + int(lost) > 0:
        sys.exit(f"steady: {bad} replies with another status, {lost} lost")
    seconds, mean, p50, p99, most = map(float, rest)
    show({"requests": int(requests), "ok": int(requests), "refused": 0, "bad": 0, "lost": 0, "unsent": 0, "seconds": seconds,
          "rate": int(requests) / seconds, "mean_ms": mean, "p50_ms": p50, "p99_ms": p99, "max_ms": most})


def main():
    options = parse()
    message, tally = Message(options), Tally()
    is_plain = not (options.rate or options.requests or options.spans or options.refusals)
    if is_plain and len(message.body) + message.reply_bytes <= WRK_BYTES_MAX:
        return run_wrk(message)
    failed = run_open(message, tally) if options.rate else run_closed(message, tally)
    if failed or tally.trouble:
        print("steady:", (failed or [tally.trouble])[0], file=sys.stderr)
    if failed or (not options.rate and not tally.times["ok"]):
        sys.exit(1)
    tally.show(options.spans)


main()
