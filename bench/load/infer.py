"""Times one product by /v1 (raw) and by /v2 (binary data) in turn, over two kept connections.

Usage: infer.py PORT EDGE [REPEATS]. Prints the median times in milliseconds, and their ratio.
"""

import array
import http.client
import json
import random
import statistics
import sys
import time


def ask(connection, path, body, headers):
    """Returns the seconds of one request, and the last bytes of its reply."""
    begin = time.perf_counter()
    connection.request("POST", path, body, headers)
    reply = connection.getresponse()
    content = reply.read()
    if reply.status != 200:
        sys.exit(f"{path}: {reply.status} {content[:200]}")
    return time.perf_counter() - begin, content[-16:]


def main():
    port, edge = int(sys.argv[1]), int(sys.argv[2])
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    numbers = array.array("f", [random.random() for _ in range(edge)])
    operands = numbers.tobytes() * (2 * edge)  # the rows of A and B are all the same
    tensor = {"shape": [edge, edge], "datatype": "FP32", "parameters": {"binary_data_size": 4 * edge * edge}}
    head = json.dumps({"inputs": [{"name": name, **tensor} for name in "AB"], "parameters": {"binary_data_output": True}})
    requests = (
        (f"/v1/matmul?m={edge}&k={edge}&n={edge}", operands, {"Content-Type": "application/octet-stream"}),
        ("/v2/models/matmul/infer", head.encode() + operands, {"Inference-Header-Content-Length": str(len(head))}),
    )
    connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in requests]
    times = ([], [])
    for turn in range(repeats + 10):
        ends = []
        for index in (0, 1) if turn % 2 else (1, 0):
            seconds, end = ask(connections[index], *requests[index])
            ends.append(end)
            if turn >= 10:
                times[index].append(seconds * 1e3)
        if ends[0] != ends[1]:
            sys.exit("the results differ")
    raw, infer = (statistics.median(each) for each in times)
    print(f"{edge}: /v1 {raw:.3f} ms, /v2 {infer:.3f} ms, ratio {infer / raw:.3f}")


main()
