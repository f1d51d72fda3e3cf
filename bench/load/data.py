"""Multiplies several kinds of data with the variant fp32_tensor. For each kind, prints the number of
repaired elements, the median kernel times of fp32_tensor and simt in ms, and the error ‖C−R‖/‖R‖ in the
Frobenius norm. R is NumPy's product in float64. Usage: data.py PORT EDGE COUNT"""

import pathlib
import statistics
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "clients" / "python"))
import matmuld

port, edge, count = map(int, sys.argv[1:])
client = matmuld.Client(f"http://127.0.0.1:{port}")
random = np.random.default_rng(1)


def normal():
    return random.standard_normal((edge, edge), np.float32)


def outlier(size):
    a = normal()
    a[:, 5] *= size
    return a


def softmax(a):
    a = np.exp(a - a.max(axis=1, keepdims=True))
    return a / a.sum(axis=1, keepdims=True)


def without_row_5(b, step=1):
    b[5, ::step] = 0
    return b


def of_columns(first, second, others):
    a = np.full((edge, edge), others, np.float32)
    a[:, 0], a[:, 1] = first, second
    return a


def log_normal(width):
    return normal() * np.exp(width * normal())


KINDS = {
    "U(-1,1)": lambda: (random.uniform(-1, 1, (edge, edge)), random.uniform(-1, 1, (edge, edge))),
    "A = sign(N), B = 0.02 N": lambda: (np.sign(normal()), 0.02 * normal()),
    "A = softmax(4 N) by rows": lambda: (softmax(4 * normal()), normal()),
    "one column of A times 1e4": lambda: (outlier(1e4), normal()),
    "A and B = N exp(2 N)": lambda: (log_normal(2), log_normal(2)),
    "one column of A times 1e4, its row of B 0": lambda: (outlier(1e4), without_row_5(normal())),
    "one column of A times 1e5, its row of B 0 in every 16th column": lambda: (outlier(1e5), without_row_5(normal(), 16)),
    "columns 2^37, 1, 1024 by rows 0, 1, 61/2^31": lambda: (of_columns(2.0**37, 1, 1024), of_columns(0, 1, 61 / 2.0**31).T),
    "A = max(N, 0)": lambda: (np.maximum(normal(), 0), normal()),
    "A = N where N > 2, else 0": lambda: (np.where((a := normal()) > 2, a, 0), normal()),
    "A and B of a Cauchy distribution": lambda: (random.standard_cauchy((edge, edge)), random.standard_cauchy((edge, edge))),
    "A: random walks along rows": lambda: (np.cumsum(normal(), axis=1), normal()),
    "one column of A times 1e6, its row of B 0": lambda: (outlier(1e6), without_row_5(normal())),
    "A and B = N exp(4 N)": lambda: (log_normal(4), log_normal(4)),
}


def run(a, b, variant):
    """Returns the product, its path, and the kernels' time in ms."""
    c = client.matmul(a, b, variant=variant)
    return c, client.last.path, client.last.timing["kernel"]


print("| data | path | fp32_tensor, ms | simt, ms | error | error of simt |\n|---|---|--:|--:|--:|--:|")
for name, make in KINDS.items():
    a, b = (np.ascontiguousarray(x, np.float32) for x in make())
    right = a.astype(np.float64) @ b.astype(np.float64)
    times, errors = {}, {}
    for _ in range(count):
        for variant in ("fp32_tensor", "simt"):
            c, reached, ms = run(a, b, variant)
            times.setdefault(variant, []).append(ms)
            if variant == "fp32_tensor":
                path = reached
    for variant in times:
        errors[variant] = np.linalg.norm(run(a, b, variant)[0] - right) / np.linalg.norm(right)
    print(f"| {name} | {path} | {statistics.median(times['fp32_tensor']):.3f} | {statistics.median(times['simt']):.3f} "
          f"| {errors['fp32_tensor']:.2g} | {errors['simt']:.2g} |", flush=True)
