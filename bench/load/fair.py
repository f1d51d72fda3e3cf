"""Measures two API keys that share a device: 12 connections with large products, and one with products of 64³.

Usage: fair.py PORT EDGE SECONDS. EDGE is the edge of the large products, whose operands the server generates. Runs the
small products alone, the large ones alone, and both. Prints the median time of a small product in milliseconds and the
large products a second, each alone and beside the other.
"""

import http.client
import multiprocessing
import statistics
import sys
import time

SMALL, LARGE_COUNT = 64, 12


def send(port, edge, until, taken):
    """Sends one product again and again until `until`, in a process of its own. Puts the seconds of each in `taken`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    query = f"/v1/matmul?m={edge}&k={edge}&n={edge}"
    headers = {"Authorization": f"Bearer {'small' if edge == SMALL else 'large'}-key-0123456789"}
    body = None
    if edge == SMALL:
        body = bytes(8 * edge * edge)
        headers["Content-Type"] = "application/octet-stream"
    else:
        query += "&a_from=uniform(1)&b_from=uniform(2)&reply=none"
    seconds = []
    while (begin := time.monotonic()) < until:
        connection.request("POST", query, body, headers)
        reply = connection.getresponse()
        content = reply.read()
        if reply.status != 200:
            sys.exit(f"{reply.status} {content[:200]}")
        seconds.append(time.monotonic() - begin)
    taken.put(seconds)


def run(port, seconds, *edges):
    """Returns the seconds of each product by edge, and the seconds of the whole run."""
    begin, queues = time.monotonic(), {edge: multiprocessing.Queue() for edge in edges}
    counts = {edge: 1 if edge == SMALL else LARGE_COUNT for edge in edges}
    for edge, count in counts.items():
        for _ in range(count):
            multiprocessing.Process(target=send, args=(port, edge, begin + seconds, queues[edge])).start()
    times = {edge: [one for _ in range(count) for one in queues[edge].get(timeout=seconds + 90)] for edge, count in counts.items()}
    return times, time.monotonic() - begin


def main():
    port, edge, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    run(port, 1, edge)  # the server learns how long such a product takes
    for name, edges in (("alone", [SMALL]), ("alone", [edge]), ("beside", [SMALL, edge])):
        times, taken = run(port, seconds, *edges)
        if SMALL in times:
            print(f"small-{name} {statistics.median(times[SMALL]) * 1e3:.3f}")
        if edge in times:
            print(f"large-{name} {len(times[edge]) / taken:.3f}")


if __name__ == "__main__":
    main()
