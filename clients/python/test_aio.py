"""Tests of the client for asyncio: MATMULD=PATH python3 -m unittest, in this folder."""

import asyncio
import re
import tempfile
import threading
import time
import unittest
import urllib.request

import numpy as np

import matmuld
from test_matmuld import TWO, WithServer
from test_retries import BUSY, FOUR, Fake

LARGE = np.ones((1400, 1400))


class Async(WithServer, unittest.IsolatedAsyncioTestCase):
    OPTIONS = ("--max-kernel-ms", "299999", "--queue-wait-ms", "299999")  # a slow machine may start the product that is cancelled

    async def asyncSetUp(self):
        asyncio.get_running_loop().slow_callback_duration = 60  # unittest's debug mode else reports a slow machine
        self.client = matmuld.AsyncClient(self.server.url)
        self.a, self.b = self.whole(6, 5), self.whole(5, 4)

    async def asyncTearDown(self):
        await self.client.close()

    def cancelled(self):
        text = urllib.request.urlopen(self.server.url + "/metrics").read().decode()
        return sum(map(int, re.findall(r"(?m)^\w*cancelled_total{.*} (\d+)", text)))

    async def test_products(self):
        np.testing.assert_array_equal(await self.client.matmul(self.a, self.b, variant="naive"), self.a @ self.b)
        self.assertEqual((self.client.last.variant, self.client.last.shape), ("naive", (6, 4)))
        with self.assertRaises(matmuld.Error) as caught:
            await self.client.matmul(self.a, self.a)
        self.assertEqual(caught.exception.code, "bad_shape")
        with self.assertRaises(TypeError):
            await self.client.matmul(self.a, self.b, varaint="naive")
        self.assertIn("naive", [row["name"] for row in await self.client.variants()])
        self.assertEqual(len((await self.client.benchmark(8, 8, 8, variants=["naive"])).rows), 1)

    async def test_handles(self):
        W = await self.client.put(self.b, "w")
        self.assertEqual((W.name, W.shape, W.dtype, W.ndim, W.nbytes), ("w", (5, 4), np.float32, 2, 80))
        self.assertEqual([handle.name for handle in await self.client.list()], ["w"])
        self.assertFalse(await W.sync())
        np.testing.assert_array_equal(await W.T.get(rows="0:2"), self.b.T[:2])
        bias = np.float32([1, 2, 3, 4, 5])
        for product in self.a @ W @ W.T + bias, bias + self.client.product(self.a, W) @ W.T:
            np.testing.assert_array_equal(await product.get(), self.a @ self.b @ self.b.T + bias)
            np.testing.assert_array_equal(await product, self.a @ self.b @ self.b.T + bias)
        self.assertRaisesRegex(TypeError, "await", np.asarray, W)
        self.assertEqual(await (self.a @ W).reduce("sum"), {"sum": (self.a @ self.b).sum()})
        C = await (self.a @ W).store("c")
        np.testing.assert_array_equal(await self.client.matmul(self.a, W, c=C), 2 * (self.a @ self.b))
        np.testing.assert_array_equal(await (await self.client.stored("c")).get(dtype=int), self.a @ self.b)
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            np.save(file.name, TWO)
            [(name, handle)] = (await self.client.put_file(file.name, prefix="from-")).items()
        self.assertEqual(await handle.get(), 2)
        for matrix in W, name, "c":
            await self.client.delete(matrix)
        self.assertEqual(await self.client.list(), [])

    async def test_each_task_has_its_last_product(self):
        async def multiply(edge):
            ones = np.ones((edge, edge), np.float32)
            for _ in range(20):
                self.assertEqual((await self.client.matmul(ones, ones))[0, 0], edge)
                await self.client.variants()
                self.assertEqual(self.client.last.shape, (edge, edge))

        await asyncio.gather(*map(multiply, range(1, 9)))
        self.assertIsNone(self.client.last)

    async def test_cancelled_work_ends(self):
        """The only thread is free within a second, the server stops too, a chain leaves no inner product, and the
        client keeps its server."""
        before = await asyncio.to_thread(self.cancelled)
        async with matmuld.AsyncClient([self.server.url, Fake(FOUR).url], connections=1) as client:
            for product in client.product(LARGE, LARGE), client.product(LARGE[:, :1], LARGE[:1]) @ LARGE:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(product.get(variant="naive"), 1)
                begun = time.monotonic()
                self.assertEqual(await client.list(), [])
                self.assertLess(time.monotonic() - begun, 1)
        while self.cancelled() < before + 2:
            self.assertLess(time.monotonic() - begun, 10)
            await asyncio.sleep(0.1)

    async def test_cancelled_retries_end(self):
        fake = Fake(*[BUSY.replace(b"After: 1", b"After: 20")] * 2)
        async with matmuld.AsyncClient(fake.url, connections=1) as client:
            for _ in range(2):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.matmul(TWO, TWO), 0.3)
        self.assertEqual(len(fake.seen), 2)

    async def test_progress_is_called_in_the_loop(self):
        seen = []
        client = matmuld.AsyncClient(self.server.url, progress=lambda *facts: seen.append((threading.current_thread(), *facts)))
        await client.matmul(TWO, TWO)
        here = threading.current_thread()
        self.assertEqual(seen, [(here, "upload", 4, 8), (here, "upload", 8, 8), (here, "download", 4, 4)])
        await client.close()


if __name__ == "__main__":
    unittest.main()
