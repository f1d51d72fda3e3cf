"""Tests of products of Dask arrays: MATMULD=PATH python3 -m unittest, in this folder."""

import importlib.util
import json
import re
import signal
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import matmuld
from test_matmuld import TYPES, Server

try:
    import dask
    import dask.array as da
    import distributed
    import matmuld.dask
except ImportError as error:
    raise unittest.SkipTest(str(error))


def peak_mib():
    """Returns the most memory that this process has used. Unlike ru_maxrss, VmHWM does not contain the parent's."""
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\s*(\d+)", status.read()).group(1)) / 1024


class WithServers(unittest.TestCase):
    OPTIONS = ()

    def setUp(self):
        self.servers = [Server(*self.OPTIONS), Server(*self.OPTIONS)]
        for server in self.servers:
            self.addCleanup(lambda server=server: server.process.poll() is None and server.stop())
        self.urls = [server.url for server in self.servers]
        self.random = np.random.default_rng(1)

    def whole(self, *shape, dtype="float32"):
        """Small whole numbers, whose products are exact in every type."""
        return self.random.integers(0, 2, shape).astype(np.dtype(dtype))

    def multiply(self, a, b):
        return matmuld.dask.matmul(a, b, servers=self.urls)

    def check(self, c, a, b, **options):
        """Checks the product c against NumPy's, and that it left nothing on the servers."""
        got = c.compute(**options)
        self.assertEqual((got.shape, got.dtype), (c.shape, c.dtype))
        np.testing.assert_array_equal(got.astype(float), a.astype(float) @ b.astype(float))
        for server in self.servers:
            if server.process.poll() is None:
                self.assertEqual(matmuld.Client(server.url).list(), [])

    def end_servers(self):
        """Ends the servers, so their logs are whole."""
        for server in self.servers:
            server.process.terminate()
            server.process.wait(60)

    def served(self, server, method):
        """Returns the server's successful requests of the method, from its log."""
        whole = server.text().rpartition("\n")[0]  # the server may be writing the last line
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if line.get("method") == method and line["code"] < 300]


class Threads(WithServers):
    def test_types_and_odd_chunks(self):
        for dtype in [*TYPES, "int16"]:
            with self.subTest(dtype):
                a, b = self.whole(50, 70, dtype=dtype), self.whole(70, 30, dtype=dtype)
                c = self.multiply(da.from_array(a, chunks=(17, (30, 1, 39))), da.from_array(b, chunks=(20, 13)))
                self.assertEqual(c.dtype, matmuld.Client(self.urls[0]).matmul(a, b).dtype)
                self.check(c, a, b)

    def test_mixed_types_and_nothing_to_add(self):
        a, b = self.whole(5, 7, dtype="int32"), self.whole(7, 3)
        self.check(self.multiply(da.from_array(a, chunks=2), b), a, b)
        self.check(self.multiply(a[:, :0], b[:0]), a[:, :0], b[:0])

    def test_refusals(self):
        square = da.ones((4, 4), chunks=2)
        for a, b in ((square, square[:3]), (square, square[0]), (square[None], square)):
            self.assertRaisesRegex(ValueError, "shape", self.multiply, a, b)
        self.assertRaisesRegex(TypeError, "complex", self.multiply, square.astype(complex), square)
        self.assertRaisesRegex(ValueError, "list", matmuld.dask.matmul, square, square, self.urls[0])

    def test_each_server_gets_a_block_once(self):
        a, b = self.whole(512, 512), self.whole(512, 512)
        self.check(self.multiply(da.from_array(a, chunks=128), da.from_array(b, chunks=128)), a, b, num_workers=8)
        self.end_servers()
        products = []
        for server in self.servers:
            puts, posts = self.served(server, "PUT"), self.served(server, "POST")
            self.assertTrue(posts)
            self.assertLessEqual(len(puts), 16 + 16)
            self.assertEqual({line["in_bytes"] for line in puts}, {128 * 128 * 4})
            products += posts
        self.assertEqual(len(products), 64)
        self.assertLess(sum(line["out_bytes"] for line in products) - a.nbytes, 64 * 1024)

    def test_a_part_of_the_product(self):
        a, b = self.whole(40, 40), self.whole(40, 40)
        c = self.multiply(da.from_array(a, chunks=10), da.from_array(b, chunks=10))
        self.check(c[-1:, -1:], a[-1:], b[:, -1:])
        self.end_servers()
        self.assertEqual(sum(len(self.served(server, "POST")) for server in self.servers), 4)

    def test_a_product_of_a_product(self):
        a, b = self.whole(40, 40), self.whole(40, 40)
        c = self.multiply(da.from_array(a, chunks=10), da.from_array(b, chunks=10))
        self.check(self.multiply(c, c.T), a @ b, (a @ b).T)

    def test_a_product_of_a_product_is_computed_once(self):
        a = self.whole(40, 40)
        x = da.from_array(a, chunks=(10, 20))
        with mock.patch("matmuld.dask._LOCKS", [threading.Lock()]):  # uploads that nest would wait for each other
            self.check(self.multiply(self.multiply(x, x) + 1, x), a @ a + 1, a, num_workers=4)
        self.end_servers()
        self.assertEqual(sum(len(self.served(server, "POST")) for server in self.servers), 8 * 2 + 8 * 2)

    def test_npy(self):
        whole = np.arange(600.0).reshape(20, 30)
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            for order in "CF":
                np.save(file.name, np.array(whole, order=order))
                x = matmuld.dask.from_npy(file.name, chunks=18)
                for part in (slice(None), (3, 4), (slice(None, None, -1), 5), (slice(2, 19, 3), slice(1, 25)), [1, 19]):
                    np.testing.assert_array_equal(x[part].compute(), whole[part])

    @unittest.skipUnless(importlib.util.find_spec("zarr"), "there is no zarr")
    def test_zarr(self):
        a, b = self.whole(60, 50), self.whole(50, 40)
        with tempfile.TemporaryDirectory() as folder:
            da.from_array(a, chunks=20).to_zarr(f"{folder}/a.zarr")
            c = self.multiply(da.from_zarr(f"{folder}/a.zarr") + 1, da.from_array(b, chunks=10))
            [optimized] = dask.optimize(c)
            self.assertNotIn("from-zarr", str(list(optimized.__dask_graph__())))  # the tasks of C read the blocks
            self.check(c, a + 1, b)

    def test_a_silent_server(self):
        a, b = self.whole(40, 40), self.whole(40, 40)
        for server in self.servers:
            self.addCleanup(server.process.send_signal, signal.SIGCONT)
        self.servers[0].process.send_signal(signal.SIGSTOP)
        with mock.patch("matmuld.dask.Client", lambda url, **_: matmuld.Client(url, timeout_s=0.5, retry_s=1)):
            c = self.multiply(da.from_array(a, chunks=10), da.from_array(b, chunks=10))
            got = c.compute(num_workers=8)
            self.servers[1].process.send_signal(signal.SIGSTOP)
            self.assertRaises(socket.timeout, c.compute)
        np.testing.assert_array_equal(got, a @ b)


class SmallStore(WithServers):
    OPTIONS = ("--store-memory", "400KiB")

    def test_a_store_for_few_blocks(self):
        a, b = self.whole(512, 512), self.whole(512, 512)
        self.check(self.multiply(da.from_array(a, chunks=128), da.from_array(b, chunks=128)), a, b, num_workers=4)

    def test_a_long_sum(self):
        a, b = self.whole(128, 128 * 60), self.whole(128 * 60, 128)
        self.check(self.multiply(da.from_array(a, chunks=128), da.from_array(b, chunks=128)), a, b)


class Cluster(WithServers):
    def cluster(self, **options):
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, **options)
        self.addCleanup(cluster.close)
        client = distributed.Client(cluster)
        self.addCleanup(client.close)
        return client

    def test_a_server_dies(self):
        self.cluster(processes=False)
        a, b = self.whole(640, 640), self.whole(640, 640)
        future = self.multiply(da.from_array(a, chunks=64), da.from_array(b, chunks=64).persist()).persist()
        while not all(len(self.served(server, "POST")) > 50 for server in self.servers):
            time.sleep(0.01)
        self.servers[0].process.kill()
        self.assertFalse(all(part.done() for part in distributed.futures_of(future)))
        self.servers[0].process.wait()
        self.check(future, a, b)

    def test_operands_larger_than_the_workers(self):
        """Each operand has 128 MiB, and a worker 256 MB."""
        client = self.cluster(processes=True, memory_limit="256MB")
        before = client.run(peak_mib)
        with tempfile.TemporaryDirectory() as folder:
            a = np.lib.format.open_memmap(f"{folder}/a.npy", "w+", "float32", (256, 131072))
            a[:] = self.whole(256, 512).repeat(256, 1)
            np.save(f"{folder}/b.npy", np.ascontiguousarray(a.T))
            read = matmuld.dask.from_npy
            c = self.multiply(read(f"{folder}/a.npy", (128, 8192)), read(f"{folder}/b.npy", (8192, 128)))
            np.testing.assert_array_equal(c.compute(), a @ a.T)
        for worker, mib in client.run(peak_mib).items():
            self.assertLess(mib - before[worker], 64)


if __name__ == "__main__":
    unittest.main()
