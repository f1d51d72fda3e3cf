"""Multiplies by eight Python clients while replicas behind a balancer die: fleet.py URL SECONDS. Prints ok=N lost=N. No
product may be lost, because the client sends again what the balancer cannot, and stores again what is lost."""

import pathlib
import sys
import threading
import time

# In place of this folder, whose numpy.py Python would import instead of NumPy.
sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2] / "clients/python")
import matmuld  # noqa: E402
import numpy as np  # noqa: E402

a, b = np.full((512, 512), 2, np.float32), np.ones((512, 1024), np.float32)
until = time.monotonic() + float(sys.argv[2])
counts = {"ok": 0, "lost": 0}
lock = threading.Lock()


def multiply(client):
    stored = client.put(b, "b")
    while time.monotonic() < until:
        for product in a @ stored, client.product(a, b):
            if not (product.get() == 1024).all():
                raise ValueError("a product is wrong")
            with lock:
                counts["ok"] += 1


def run(client):
    try:
        multiply(client)
    except Exception as error:
        print(repr(error), file=sys.stderr)
        with lock:
            counts["lost"] += 1


# Each client has an affinity of its own, so both replicas store matrices.
threads = [threading.Thread(target=run, args=(matmuld.Client(sys.argv[1]),)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*(f"{name}={count}" for name, count in counts.items()))
