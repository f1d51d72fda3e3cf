"""Tests of what a type checker says: python3 -m unittest, in this folder."""

import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

RIGHT = """
import numpy as np
import matmuld

a = np.ones((2, 2))
client = matmuld.Client()
W = client.put(a, "w")
matmuld.matmul(a, a, variant="naive", dtype="float32")
client.matmul(a, a, rows=slice(0, 4), activation="relu", c=W)
(a @ W @ W.T + a).store("x", ttl_s=60, verify=True).get(rows="0:4")


async def multiply(client: matmuld.AsyncClient) -> int:
    V = await client.put(a, "v")
    await client.matmul(a, V, variant="naive", backend="cpu")
    await (a @ V @ V.T + a).store("x", ttl_s=60)
    return V.ndim
"""

# Each line is wrong.
WRONG = """
matmuld.matmul(a, a, varaint="naive")
client.matmul(a, a, varaint="naive")
client.matmul(a, a, activation="rely")
client.product(a, a).get(varaint="naive")
client.product(a, a).store("x", varaint="naive")
aio.matmul(a, a, varaint="naive")
aio.product(a, a).get(varaint="naive")
matmuld.Client(retry=3)
matmuld.AsyncClient(retry=3)
aio.put(a, "w").shape
matmuld.AsynClient()
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Typing(unittest.TestCase):
    def test_mypy(self):
        """Checks the package too."""
        wrong = WRONG.strip().splitlines()
        head = ["import matmuld, numpy as np; a = np.ones(2); client = matmuld.Client(); aio = matmuld.AsyncClient()"]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "right.py").write_text(RIGHT)
            pathlib.Path(folder, "wrong.py").write_text("\n".join(head + wrong))
            files = ["-p", "matmuld", "-m", "right", "-m", "wrong"]
            command = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", folder, *files]
            path = f"{pathlib.Path(__file__).parent}:{folder}"
            checked = subprocess.run(command, cwd=folder, env={"MYPYPATH": path}, stdout=subprocess.PIPE, universal_newlines=True)
        errors = [line for line in checked.stdout.splitlines() if ": error:" in line]
        found = {int(match[1]) for match in (re.match(r"wrong\.py:(\d+):", line) for line in errors) if match}
        self.assertEqual([line for line in errors if not line.startswith("wrong.py:")], [])
        self.assertEqual(found, set(range(2, 2 + len(wrong))), checked.stdout)


if __name__ == "__main__":
    unittest.main()
