"""Measures two API keys that share a device: 12 connections with large products, and one with products of 64³.

Usage: fair.py PORT EDGE SECONDS. EDGE is the edge of the large products. Runs the small products alone, the large ones
alone, and both. Prints the median time of a small product in milliseconds and the large products a second, each alone
and beside the other.
"""

import http.client
import statistics
import sys
import threading
import time

LARGE, SMALL = "large-key-0123456789", "small-key-0123456789"


class Sender(threading.Thread):
    """Sends one product of zeros again and again, until `until`. Keeps the seconds of each product."""

    def __init__(self, port, key, edge, until):
        super().__init__()
        self.port, self.key, self.edge, self.until, self.seconds = port, key, edge, until, []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = bytes(8 * self.edge * self.edge)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/octet-stream"}
        while (begin := time.monotonic()) < self.until:
            connection.request("POST", f"/v1/matmul?m={self.edge}&k={self.edge}&n={self.edge}", body, headers)
            reply = connection.getresponse()
            content = reply.read()
            if reply.status != 200:
                sys.exit(f"{reply.status} {content[:200]}")
            self.seconds.append(time.monotonic() - begin)


def run(port, seconds, *edges):
    """Returns the seconds of all products of each edge."""
    begin = time.monotonic()
    senders = [
        Sender(port, SMALL if edge == 64 else LARGE, edge, begin + seconds)
        for edge in edges
        for _ in range(1 if edge == 64 else 12)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    taken = time.monotonic() - begin
    times = {edge: [taken for sender in senders if sender.edge == edge for taken in sender.seconds] for edge in edges}
    return times, taken


def main():
    port, edge, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    run(port, 1, edge)  # the server learns how long such a product takes
    for name, edges in (("alone", [64]), ("alone", [edge]), ("beside", [64, edge])):
        times, taken = run(port, seconds, *edges)
        if 64 in times:
            print(f"small-{name} {statistics.median(times[64]) * 1e3:.3f}")
        if edge in times:
            print(f"large-{name} {len(times[edge]) / taken:.3f}")


main()
