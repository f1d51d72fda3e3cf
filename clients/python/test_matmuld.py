"""Tests of the client against servers that they start: MATMULD=PATH python3 -m unittest, in this folder."""

import io
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import matmuld
from matmuld import __main__ as command_line
from matmuld._handles import encode

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

TYPES = "float64 float32 float16 int64 int32 int8 uint8 bool".split()
if ml_dtypes:
    TYPES += ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
# Types of operands with the type of C, if C has another type than the operands.
WIDER = {"int8": "int32", "uint8": "int32", "bool": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}


class Server:
    """A matmuld on a free port."""

    def __init__(self, *options, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("MATMULD")}
        self.log = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(
            [os.environ["MATMULD"], "--backend", "cpu", "--port", "0", "--lame-duck-ms", "0", *options],
            stdout=subprocess.DEVNULL, stderr=self.log, env={**clean, **environment},
        )  # fmt: skip
        limit = time.monotonic() + 60
        while '"message":"ready"' not in self.text():
            if time.monotonic() > limit or self.process.poll() is not None:
                self.process.kill()
                raise RuntimeError("the server does not start: " + self.text())
            time.sleep(0.02)
        self.url = re.search(r"listening on (https?://[^\s\"]+)", self.text()).group(1)

    def text(self):
        with open(self.log.name) as log:
            return log.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        assert status == 0, f"exit status {status}: {self.text()}"
        self.log.close()


TWO = np.float32([[2]])


class WithServer(unittest.TestCase):
    OPTIONS = ()
    ENVIRONMENT = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS, **cls.ENVIRONMENT)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.client = matmuld.Client(self.server.url, key=self.ENVIRONMENT.get("MATMULD_API_KEY"))
        self.addCleanup(self.client.close)
        self.random = np.random.default_rng(1)

    def whole(self, *shape, dtype="float32"):
        """Small whole numbers, whose products are exact in every type."""
        return self.random.integers(0, 2, shape).astype(np.dtype(dtype))

    def check(self, a, b, **parameters):
        got = self.client.matmul(a, b, **parameters)
        expected = np.matmul(np.asarray(a).astype(float), np.asarray(b).astype(float))
        self.assertEqual(np.shape(got), expected.shape)
        np.testing.assert_array_equal(np.asarray(got).astype(float), expected)
        return got

    def refused(self, code, call, *arguments, **parameters):
        with self.assertRaises(matmuld.Error) as caught:
            call(*arguments, **parameters)
        self.assertEqual(caught.exception.code, code)
        self.assertTrue(caught.exception.detail)
        return caught.exception


class Products(WithServer):
    def test_types(self):
        for dtype in TYPES:
            with self.subTest(dtype):
                c = self.check(self.whole(5, 7, dtype=dtype), self.whole(7, 3, dtype=dtype))
                self.assertEqual(c.dtype, np.dtype(WIDER.get(dtype, dtype)))
                self.assertEqual(self.client.last.dtype, c.dtype.name)

    def test_mixed_types_become_what_numpy_makes_of_them(self):
        self.assertEqual(self.check(self.whole(2, 3, dtype="int32"), self.whole(3, 2)).dtype, np.float64)
        self.check([[1, 2]], [[3.5], [4]])
        self.assertEqual(self.check(self.whole(2, 3, dtype="int8"), self.whole(3, 2, dtype="uint8")).dtype, np.int32)
        if ml_dtypes:
            e4m3, e5m2 = (self.whole(2, 2, dtype=dtype) for dtype in TYPES[-2:])
            self.assertRaisesRegex(TypeError, "astype", self.client.matmul, e4m3, e5m2)

    def test_big_endian(self):
        self.check(self.whole(2, 3, dtype=">f4"), self.whole(3, 2, dtype=">f4"))

    def test_result_dtype(self):
        self.assertEqual(self.check(self.whole(2, 3), self.whole(3, 2), result_dtype="float16").dtype, np.float16)

    def test_shapes(self):
        for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3, 5)), ((8, 1, 5, 4), (3, 4, 6)),
                     ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((2, 3), (3, 0))]:  # fmt: skip
            with self.subTest((a, b)):
                self.check(self.whole(*a), self.whole(*b))

    def test_layouts(self):
        a, b, stack = self.whole(20, 30), self.whole(30, 10), self.whole(4, 30, 20)
        b.flags.writeable = False
        for x in a, np.asfortranarray(a), self.whole(40, 60)[::2, ::2], a[::-1], stack.swapaxes(-1, -2):
            for y in b, np.asfortranarray(b):
                self.check(x, y)

    def test_flags(self):
        a, b = self.whole(20, 30), self.whole(30, 10)
        for yes, no in (True, False), (1, 0), (np.True_, np.False_), (np.int64(1), np.array(False)), (1.0, None):
            for x in a.T, a.T.copy():
                np.testing.assert_array_equal(self.client.matmul(x, b, transpose_a=yes, transpose_b=no), a @ b)
            np.testing.assert_array_equal(self.client.matmul(a, b.T, transpose_b=yes, transpose_a=no), a @ b)
            self.client.matmul(a, b, verify=yes)
            self.assertTrue(self.client.last.verify["passed"])
        for flag in "transpose_a", "transpose_b", "verify":
            for wrong in "true", "false", "1", "0", "", 2, [], TWO, object():
                with self.assertRaisesRegex(TypeError, f"{flag} is .*True or False"):
                    self.client.matmul(a, b, **{flag: wrong})

    def test_fortran_order_is_not_copied(self):
        a = np.asfortranarray(self.whole(20, 30))
        product = self.client.product(a, a.T)
        query, body = encode({"a": product.a, "b": product.b}, {})
        self.assertEqual((query["transpose_a"], query.get("transpose_b")), ("true", None))
        for part in body:
            self.assertTrue(np.shares_memory(np.frombuffer(part, np.uint8), a))

    def test_bad_operands(self):
        for a, b in [(3, [1, 2]), ([[1]], 2.0)]:
            self.assertRaises(ValueError, self.client.matmul, a, b)
        self.assertIn("1", self.refused("bad_shape", self.client.matmul, [[1, 2]], [[5, 6]]).detail)
        self.assertRaises(TypeError, self.client.matmul, [[1j]], [[1j]])
        self.assertRaises(TypeError, self.client.matmul, [[1]], [[1]], out="x")

    def test_gemm(self):
        """Each type of result, with arrays of other types, Fortran order, a broadcast stack and a number."""
        for dtype in TYPES:
            with self.subTest(dtype):
                a, b, c, bias = (
                    self.whole(5, 7, dtype=dtype),
                    self.whole(7, 3, dtype=dtype),
                    self.whole(3, 5, dtype=int).T,
                    [1, 2, -3],
                )
                d = self.client.matmul(a, b, c=c, alpha=2, beta=-3, bias=bias, activation="relu")
                self.assertEqual(d.dtype, np.dtype(WIDER.get(dtype, dtype)))
                expected = np.maximum(2 * (a.astype(float) @ b.astype(float)) - 3 * c + bias, 0)
                np.testing.assert_array_equal(d.astype(float), expected)
        a, b, c = self.whole(4, 2, 3), self.whole(3, 5), self.whole(2, 5)
        np.testing.assert_array_equal(self.client.matmul(a, b, c=c), a @ b + c)
        self.assertEqual(self.client.matmul(c[0], c[1], c=3, alpha=2), 2 * (c[0] @ c[1]) + 3)
        np.testing.assert_array_equal(
            self.client.matmul(c[0], b.T, bias=c[0, :3] / 2, result_dtype="float16"), c[0] @ b.T + c[0, :3] / 2
        )
        with mock.patch.dict(os.environ, MATMULD_URL=self.server.url):
            np.testing.assert_allclose(matmuld.gemm(a, b, c, 0.5, 2, activation="tanh"), np.tanh(0.5 * (a @ b) + 2 * c), 1e-6)
            np.testing.assert_array_equal(matmuld.gemm(a, b, c[None]), a @ b + c)

    def test_bad_gemm(self):
        a, b = self.whole(2, 3, dtype="int32"), self.whole(3, 5, dtype="int32")
        self.assertRaises(TypeError, self.client.matmul, a, b, c=np.ones((2, 5)))
        self.assertRaises(ValueError, self.client.matmul, a, b, bias=np.ones((1, 5), int))
        self.assertRaises(TypeError, self.client.matmul, a, b, c_from="c")
        self.refused("bad_shape", self.client.matmul, a, b, c=np.ones((5, 2), int))
        self.refused("bad_request", self.client.matmul, a, b, beta=2)
        self.refused("unsupported", self.client.matmul, a, b, activation="tanh")

    def test_parts(self):
        a, b = self.whole(6, 5), self.whole(5, 4)
        c = self.client.matmul(a, b, rows=slice(1, 3), cols=slice(None, 2))
        np.testing.assert_array_equal(c, (a @ b)[1:3, :2])
        self.assertRaises(ValueError, self.client.matmul, a, b, rows=slice(0, 4, 2))
        self.refused("bad_request", self.client.matmul, a, b, rows=slice(0, 7))

    def test_last(self):
        self.assertIsNone(self.client.last)
        self.check(self.whole(64, 64), self.whole(64, 64), variant="tiled_16", verify=True, devices="auto")
        last = self.client.last
        self.assertEqual(last.devices, 1)
        self.assertEqual((last.variant, last.backend, last.shape), ("tiled_16", "cpu", (64, 64)))
        self.assertEqual(set(last.timing), set("receive decode queue upload kernel download encode total".split()))
        self.assertTrue(0 < last.timing["kernel"] <= last.timing["total"] <= last.round_trip_ms, last)
        self.assertIs(last.verify["passed"], True)
        self.assertEqual(last.verify["rows_unjudged"], 0)
        self.assertLessEqual(last.verify["residual"], last.verify["bound"])
        self.assertIn("tiled_16", last._repr_html_())
        thread = threading.Thread(target=self.client.matmul, args=(TWO, TWO))
        thread.start()
        thread.join()
        self.assertIs(self.client.last, last)
        self.client.matmul([[np.inf]], [[1.0]], verify=True)
        self.assertIsNone(self.client.last.verify["passed"])

    def test_variants(self):
        names = {row["name"] for row in self.client.variants() if row["backend"] == "cpu" and row["op"] == "matmul"}
        self.assertIn("naive", names)
        self.assertIn("tiled_17", self.refused("unsupported", self.client.matmul, [[1]], [[1]], variant="tiled_17").detail)

    def test_threads_share_a_client(self):
        wrong = []

        def multiply(edge):
            a = np.full((edge, edge), edge, np.float32)
            for _ in range(50):
                c = self.client.matmul(a, a)
                if not (c == edge**3).all() or self.client.last.shape != (edge, edge):
                    wrong.append(edge)

        threads = [threading.Thread(target=multiply, args=(edge,)) for edge in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertLessEqual(len(self.client._transport.servers[0].free), 8)

    def test_connection_is_kept(self):
        for _ in range(3):
            self.client.matmul(TWO, TWO)
        self.refused("bad_shape", self.client.matmul, [[1, 2]], [[5, 6]])
        [(*_, connection)] = self.client._transport.servers[0].free
        port = connection.sock.getsockname()
        self.client.matmul(TWO, TWO)
        self.assertEqual(connection.sock.getsockname(), port)

    def test_one_line(self):
        with mock.patch.dict(os.environ, MATMULD_URL=self.server.url):
            np.testing.assert_array_equal(matmuld.matmul(TWO, TWO), [[4]])
        self.assertRaises(OSError, matmuld.matmul, TWO, TWO, url="http://127.0.0.1:1")
        with self.assertRaisesRegex(ConnectionError, "no TLS there"):
            matmuld.matmul(TWO, TWO, url=self.server.url.replace("http", "https"))
        self.assertRaises(ValueError, matmuld.Client, "127.0.0.1:8080")

    def test_benchmark(self):
        for arguments, status in [(["32"], 0), (["8", "--dtype", "x"], 1)]:
            with (
                mock.patch.object(sys, "argv", ["matmuld", "bench", "--url", self.server.url, *arguments]),
                mock.patch("sys.stdout", io.StringIO()) as printed,
            ):
                with mock.patch("sys.stderr", io.StringIO()) as complaint:
                    self.assertEqual(command_line.main(), status)
            if status == 0:
                for word in "m=32", "median ms", "tiled_32", "auto (":
                    self.assertIn(word, printed.getvalue())
            else:
                self.assertIn("unsupported", complaint.getvalue())
        table = self.client.benchmark(np.int64(20), 20, 20, dtype=np.float64, variants=["naive", "tiled_16"], repeats=2)
        self.assertEqual([row["repeats"] for row in table.rows], [2, 2])
        self.assertIn("<td>naive</td>", table._repr_html_())

    def test_version_is_the_project_s(self):
        text = subprocess.run([os.environ["MATMULD"], "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertIn(matmuld.__version__, text.split())


class Keys(WithServer):
    ENVIRONMENT = {"MATMULD_API_KEY": "a-key-of-32-characters-0123456789"}

    def test_key(self):
        self.check(TWO, TWO)
        matmuld.Client(self.server.url, key=self.ENVIRONMENT["MATMULD_API_KEY"] + "\n").matmul(TWO, TWO)  # read from a file
        error = self.refused("unauthorized", matmuld.Client(self.server.url, key="wrong").matmul, TWO, TWO)
        self.assertEqual(error.status, 401)
        self.assertEqual(pickle.loads(pickle.dumps(error)).code, "unauthorized")
        large = np.zeros((1500, 1500), np.float32)  # so large that the server rejects it before all is sent
        self.refused("unauthorized", matmuld.Client(self.server.url).matmul, large, large)


class Limits(WithServer):
    OPTIONS = ("--max-body", "1MiB")

    def test_too_large(self):
        for edge in 400, 3000:
            error = self.refused("too_large", self.client.matmul, np.zeros((edge, edge)), np.zeros((edge, edge)))
            self.assertEqual(error.problem["limit"], 1 << 20)
        self.check(TWO, TWO)


if __name__ == "__main__":
    unittest.main()
