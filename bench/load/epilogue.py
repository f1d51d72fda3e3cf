"""Prints kernel times of square products with epilogues, by the server's benchmark and by PyTorch on the same GPU.

Usage: epilogue.py PORT EDGE. Each line is WHAT.DTYPE and the median time in milliseconds.
"""

import json
import statistics
import sys
import urllib.request

import torch

EPILOGUES = {
    "plain": None,
    "all": {"beta": 1, "bias": True, "activation": "relu"},
    "sum": {"beta": 1},
    "bias": {"bias": True, "activation": "relu"},
}


def served_ms(port, edge, dtype, epilogue):
    """Returns the median kernel time of the server's `auto`."""
    body = {"m": edge, "k": edge, "n": edge, "dtype": dtype, "variants": ["cuda:auto"], "repeats": 60}
    if epilogue:
        body["epilogue"] = epilogue
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/benchmark", json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["rows"][0]["kernel_ms"]["median"]


def torch_ms(run):
    """Returns the median time of 60 calls on the GPU, after 10 that do not count."""
    times = []
    for index in range(70):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(100_000)  # calls are enqueued before the GPU is free, so launching is not timed
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        if index >= 10:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    port, edge = int(sys.argv[1]), int(sys.argv[2])
    for dtype in ("float32", "bfloat16", "float16", "float64"):
        for what, epilogue in EPILOGUES.items():
            print(f"{what}.{dtype}", served_ms(port, edge, dtype, epilogue))
        kind = getattr(torch, dtype)
        a, b, c = (torch.rand(edge, edge, device="cuda", dtype=kind) for _ in range(3))
        bias, out = torch.rand(edge, device="cuda", dtype=kind), torch.empty_like(c)
        print(f"torch-plain.{dtype}", torch_ms(lambda: torch.mm(a, b, out=out)))
        print(f"torch-sum.{dtype}", torch_ms(lambda: torch.addmm(c, a, b, out=out)))
        print(f"torch-bias.{dtype}", torch_ms(lambda: torch._addmm_activation(bias, a, b, out=out)))


main()
