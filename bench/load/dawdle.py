#!/usr/bin/env python3
"""Runs slow clients, which send heads or bodies, or read replies, a few bytes at a time. Prints `ready` when
all clients have begun. At the end prints for each kind the number of clients, how many connections the
service has closed, and when it closed the first and the last one: heads=N ended=N first_s=SECONDS
last_s=SECONDS
"""

import argparse
import select
import socket
import time

TICK_S = 0.02
CLAIM_MIN = 65536
RECEIVE_BUFFER_BYTES = 8192  # small, so unread bytes stay in the service


def parse():
    parser = argparse.ArgumentParser(description="Each caller sends or takes --bytes in --every-ms, until the service ends it.")
    parser.add_argument("--port", type=int, required=True)
    for kind in "heads", "bodies", "readers":
        parser.add_argument("--" + kind, type=int, default=0)
    parser.add_argument("--bytes", type=int, default=1)
    parser.add_argument("--every-ms", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--shape", default="1024x1x1024", help="MxKxN of the product whose body or reply it is")
    parser.add_argument("--request", help="METHOD TARGET, without a body, whose reply readers take in place of a product's")
    parser.add_argument("--claim", type=int, help="heads of bodies promise so many bytes, half of that, and so on to 64 KiB")
    return parser.parse_args()


def make_head(request, length):
    return (
        f"{request} HTTP/1.1\r\nHost: localhost\r\nAccept: application/octet-stream\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def make_product_head(m, k, n):
    return make_head(f"POST /v1/matmul?m={m}&k={k}&n={n}", 4 * (m * k + k * n))


def claimed(claim, index):
    """Returns k of a product whose operands have as many bytes as this client's part of --claim."""
    claims = [claim]
    while claims[-1] // 2 >= CLAIM_MIN:
        claims.append(claims[-1] // 2)
    return claims[index % len(claims)] // 8


class Caller:
    def __init__(self, options, kind, index, due):
        self.kind, self.due, self.ended = kind, due, None
        m, k, n = map(int, options.shape.split("x"))
        head, body = make_product_head(m, k, n), bytes(4 * (m * k + k * n))
        if options.claim and kind == "bodies":
            head = make_product_head(1, claimed(options.claim, index), 1)
        if options.request and kind == "readers":
            head, body = make_head(options.request, 0), b""
        self.socket = socket.socket()
        if kind == "readers":  # must be set before connecting
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.socket.connect(("127.0.0.1", options.port))
        self.left = memoryview(head[:-1] if kind == "heads" else body)
        try:
            if kind != "heads":
                self.socket.sendall(head)
            if kind == "readers":
                self.socket.sendall(self.left)
        except OSError:
            pass  # a refused client is found when it is checked
        self.socket.setblocking(False)

    def go_on(self, count):
        """Returns False if the service has closed the connection."""
        try:
            if self.kind == "readers":
                return len(self.socket.recv(count)) > 0
            if self.left:
                self.left = self.left[self.socket.send(self.left[:count]) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True


def main():
    options = parse()
    kinds = {kind: getattr(options, kind) for kind in ("heads", "bodies", "readers")}
    begun, every_s, count = time.monotonic(), options.every_ms / 1e3, sum(kinds.values())
    callers, poll = {}, select.poll()
    for kind in kinds:
        for index in range(kinds[kind]):
            due = time.monotonic() + len(callers) * every_s / count  # spread over the interval
            caller = Caller(options, kind, index, due)
            callers[caller.socket.fileno()] = caller
            poll.register(caller.socket, select.POLLRDHUP)
    print("ready", flush=True)
    while (now := time.monotonic()) < begun + options.seconds and any(caller.ended is None for caller in callers.values()):
        hung_up = {descriptor for descriptor, _ in poll.poll(0)}
        for descriptor, caller in callers.items():
            if caller.ended is not None or (descriptor not in hung_up and now < caller.due):
                continue
            caller.due += every_s
            if descriptor in hung_up or not caller.go_on(options.bytes):
                caller.ended = now - begun
                poll.unregister(descriptor)
        time.sleep(TICK_S)
    for kind in kinds:
        ended = [caller.ended for caller in callers.values() if caller.kind == kind and caller.ended is not None] or []
        print(f"{kind}={kinds[kind]} ended={len(ended)} first_s={min(ended, default=0):.2f} last_s={max(ended, default=0):.2f}")


main()
