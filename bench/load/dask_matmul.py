"""Multiplies two float32 matrices in Dask's blocks on servers, and beside that by Dask alone, with NumPy or CuPy
blocks. The operands are .npy files, and C stays on the workers. Checks a first product against NumPy's. Prints
`matmuld S` and `beside S` for each of COUNT rounds. With a PID, kills that server in the middle of a last product,
checks the product, and prints `dead S`.

Usage: dask_matmul.py EDGE BLOCK COUNT WORKERS numpy|cupy URL,… [PID]"""

import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

import distributed
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "clients" / "python"))
import matmuld.dask


def by_servers(a, b):
    return matmuld.dask.matmul(a, b, servers=urls)


def by_numpy(a, b):
    return a @ b


def by_cupy(a, b):
    import cupy

    a, b = (x.map_blocks(cupy.asarray, dtype=x.dtype, meta=cupy.empty((0, 0), x.dtype)) for x in (a, b))
    return (a @ b).map_blocks(cupy.asnumpy, dtype=a.dtype, meta=np.empty((0, 0), a.dtype))


def timed(multiply):
    """Returns the product, which is on the workers, and the seconds until its last block is there."""
    begun = time.perf_counter()
    c = multiply(a, b).persist()
    distributed.wait(c)
    return c, time.perf_counter() - begun


def check(c):
    np.testing.assert_allclose(c.compute(), right, rtol=edge * 2.0**-24)


if __name__ == "__main__":
    edge, block, count, workers = map(int, sys.argv[1:5])
    beside = {"numpy": by_numpy, "cupy": by_cupy}[sys.argv[5]]
    urls = sys.argv[6].split(",")
    cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=None)
    with tempfile.TemporaryDirectory() as folder, cluster, distributed.Client(cluster):
        random = np.random.default_rng(1)
        for name in "ab":
            np.save(f"{folder}/{name}.npy", random.random((edge, edge), np.float32))
        a, b = (matmuld.dask.from_npy(f"{folder}/{name}.npy", block) for name in "ab")
        right = np.load(f"{folder}/a.npy") @ np.load(f"{folder}/b.npy")
        c, took = timed(by_servers)
        check(c)
        for _ in range(count):
            print("matmuld", timed(by_servers)[1], flush=True)
            print("beside", timed(beside)[1], flush=True)
        if len(sys.argv) > 7:
            threading.Timer(took / 2, os.kill, (int(sys.argv[7]), signal.SIGKILL)).start()
            c, took = timed(by_servers)
            check(c)
            print("dead", took)
