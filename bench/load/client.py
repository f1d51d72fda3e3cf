"""Compares clients/python with a plain socket that sends the same bytes. Multiplies float32 matrices of
EDGE×EDGE elements COUNT times with each. Prints `client MS` and `socket MS`, the median times. Usage:
client.py PORT EDGE COUNT"""

import pathlib
import socket
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "clients" / "python"))
import matmuld

port, edge, count = map(int, sys.argv[1:])
a, b = np.random.default_rng(1).random((2, edge, edge), np.float32)
client = matmuld.Client(f"http://127.0.0.1:{port}")
plain = socket.create_connection(("127.0.0.1", port))
plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
head = (f"POST /v1/matmul?m={edge}&k={edge}&n={edge} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {a.nbytes + b.nbytes}\r\n\r\n").encode()


def by_socket():
    """Returns the product's bytes as an array."""
    plain.sendall(head)
    plain.sendall(a)
    plain.sendall(b)
    received = b""
    while b"\r\n\r\n" not in received:
        received += plain.recv(65536)
    start, _, rest = received.partition(b"\r\n\r\n")
    assert start.startswith(b"HTTP/1.1 200"), start
    c = np.empty((edge, edge), np.float32)
    view, at = memoryview(c).cast("B"), len(rest)
    view[:at] = rest
    while at < len(view):
        at += plain.recv_into(view[at:])
    return c


def timed(multiply):
    begun = time.perf_counter()
    multiply()
    return (time.perf_counter() - begun) * 1000


assert np.allclose(by_socket(), client.matmul(a, b), rtol=1e-4)  # BLAS adds up in varying order
runs = [(timed(lambda: client.matmul(a, b)), timed(by_socket)) for _ in range(count)]
for name, times in zip(("client", "socket"), zip(*runs)):
    print(name, statistics.median(times))
