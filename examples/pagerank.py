#!/usr/bin/env python3
"""PageRank of a random web with NumPy. The matrix is sent once, and the vector is returned at the end.

    pagerank.py [PAGES [URL]]    (default: 2000 http://127.0.0.1:8080)
"""

import io
import json
import sys
import urllib.request

import numpy

PAGES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
URL = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8080"


def call(method, path, body=b"", accept="application/json"):
    request = urllib.request.Request(URL + path, body or None, {"Accept": accept}, method=method)
    with urllib.request.urlopen(request) as reply:
        return reply.read()


def store(name, matrix):
    file = io.BytesIO()
    numpy.save(file, matrix.astype(numpy.float32))
    call("PUT", f"/v1/matrices/{name}", file.getvalue())


# The element at row i, column j is set if page j links to page i. Each page links to itself, so each page has
# a link.
links = numpy.random.default_rng(1).random((PAGES, PAGES)) < 10 / PAGES
numpy.fill_diagonal(links, True)
store("links", 0.85 * links / links.sum(axis=0) + 0.15 / PAGES)
store("rank", numpy.full(PAGES, 1 / PAGES))

largest, steps = -1.0, 0
while steps < 100:
    before, steps = largest, steps + 1
    reply = json.loads(call("POST", "/v1/matmul?a_from=links&b_from=rank&out=rank&reduce=max,sum"))
    largest = reply["reduce"]["max"]
    if abs(largest - before) < 1e-6 * largest:
        break

rank = numpy.load(io.BytesIO(call("GET", "/v1/matrices/rank", accept="application/x-npy")))
print(f"after {steps} steps, the sum of all being {reply['reduce']['sum']:.4f}:")
for page in numpy.argsort(-rank)[:5]:
    print(f"page {page} {rank[page]:.6f}")
for name in "links", "rank":
    call("DELETE", f"/v1/matrices/{name}")
