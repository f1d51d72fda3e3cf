"""Tests the clients that generators.sh has generated: python use.py URL. The server limits bodies to 1 MiB."""

import io
import struct
import sys

import httpx
import models
from generated import Client
from generated.api.description import list_variants
from generated.api.products import benchmark, multiply, transpose
from generated.api.store import read_matrix, store_matrix
from generated.models import BenchmarkRequest, MatmulRequest, MultiplyFilesBody, OperandSource, StoreRequest, TransposeRequest
from generated.types import File

A, B, C = [[1, 2], [3, 4]], [[5, 6], [7, 8]], [[19, 22], [43, 50]]
url = sys.argv[1]
client = Client(base_url=url, headers={"Accept": "application/json"})


def same(expected, got):
    assert got == expected, f"expected {expected}, got {got}"


def csv(matrix):
    return File(io.BytesIO("\n".join(",".join(map(str, row)) for row in matrix).encode()), "matrix.csv", "text/csv")


def floats(*elements):
    return File(io.BytesIO(struct.pack(f"<{len(elements)}f", *elements)))


same(C, multiply.sync(client=client, body=MatmulRequest(a=A, b=B)).c)
same([[C]], multiply.sync(client=client, body=MatmulRequest(a=[[A]], b=[[B]])).c)
same(A, multiply.sync(client=client, body=MatmulRequest(a=A, b=OperandSource(from_="identity()"), n=2)).c)
same(C, multiply.sync(client=client, body=floats(1, 2, 3, 4, 5, 6, 7, 8), m=2, k=2, n=2).c)
same(C, multiply.sync(client=client, body=MultiplyFilesBody(a=csv(A), b=csv(B))).c)
same(True, multiply.sync(client=client, body=MatmulRequest(a=A, b=B, verify=True)).verify.passed)
same([[1, 3], [2, 4]], transpose.sync(client=client, body=TransposeRequest(a=A)).c)
same([2, 2], store_matrix.sync("a", client=client, body=StoreRequest(a=A)).shape)
same(A, read_matrix.sync("a", client=client).a)
same("naive", benchmark.sync(client=client, body=BenchmarkRequest(m=2, k=2, n=2, variants=["naive"])).rows[0].variant)
same("auto", list_variants.sync(client=client).default)

for status, code, body, options in [
    (422, "bad_shape", MatmulRequest(a=[[1, 2]], b=[[1, 2]]), {}),
    (412, "precondition_failed", MatmulRequest(a=A, b=B), {"out": "a", "if_none_match": "*"}),
    (413, "too_large", floats(*[0] * 300_000), {"m": 1, "k": 150_000, "n": 1}),
]:
    reply = multiply.sync_detailed(client=client, body=body, **options)
    same((status, code), (reply.status_code, reply.parsed.code))

body = models.MatmulRequest(a=A, b=B).model_dump_json(exclude_unset=True)
reply = httpx.post(f"{url}/v1/matmul", content=body, headers={"Content-Type": "application/json"})
same(C, models.MatmulReply.model_validate_json(reply.text).c.root.root)
