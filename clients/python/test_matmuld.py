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


class Fake:
    """A server that sends the next of its raw replies to each request, and then closes the connection."""

    def __init__(self, *replies, reads_bodies=True):
        self.reads_bodies = reads_bodies
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.replies, self.seen = list(replies), []
        threading.Thread(target=self.play, daemon=True).start()

    def play(self):
        for reply in self.replies:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as file:
                head = b"".join(iter(file.readline, b"\r\n")).decode()
                length = re.search(r"(?i)content-length: (\d+)", head)
                if self.reads_bodies and length:
                    file.read(int(length.group(1)))
                self.seen.append(head)
                connection.sendall(reply)
        self.listener.close()


def reply(status, *headers, body=b""):
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode() + body


TWO = np.float32([[2]])
FOUR = reply("200 OK", "Content-Type: application/octet-stream", "Matmul-Shape: 1, 1", "Matmul-Dtype: float32",
             body=np.float32(4).tobytes())  # fmt: skip
BUSY = reply("429 Busy", "Retry-After: 1")


class WithServer(unittest.TestCase):
    OPTIONS = ()
    ENVIRONMENT = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS, **cls.ENVIRONMENT)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.client = matmuld.Client(self.server.url, self.ENVIRONMENT.get("MATMULD_API_KEY"))
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
        query, body = self.client.product(a, a.T)._encode({}, {})
        self.assertEqual((query["transpose_a"], query.get("transpose_b")), ("true", None))
        for part in body:
            self.assertTrue(np.shares_memory(np.frombuffer(part, np.uint8), a))

    def test_bad_operands(self):
        for a, b in [(3, [1, 2]), ([[1]], 2.0)]:
            self.assertRaises(ValueError, self.client.matmul, a, b)
        self.assertIn("1", self.refused("bad_shape", self.client.matmul, [[1, 2]], [[5, 6]]).detail)
        self.refused("unsupported", self.client.matmul, [[1j]], [[1j]])
        self.assertRaises(TypeError, self.client.matmul, [[1]], [[1]], out="x")

    def test_gemm(self):
        """Each type of result, with arrays of other types, Fortran order, a broadcast stack and a number."""
        for dtype in TYPES:
            with self.subTest(dtype):
                a, b, c, bias = self.whole(5, 7, dtype=dtype), self.whole(7, 3, dtype=dtype), self.whole(3, 5, dtype=int).T, [1, 2, -3]
                d = self.client.matmul(a, b, c=c, alpha=2, beta=-3, bias=bias, activation="relu")
                self.assertEqual(d.dtype, np.dtype(WIDER.get(dtype, dtype)))
                expected = np.maximum(2 * (a.astype(float) @ b.astype(float)) - 3 * c + bias, 0)
                np.testing.assert_array_equal(d.astype(float), expected)
        a, b, c = self.whole(4, 2, 3), self.whole(3, 5), self.whole(2, 5)
        np.testing.assert_array_equal(self.client.matmul(a, b, c=c), a @ b + c)
        self.assertEqual(self.client.matmul(c[0], c[1], c=3, alpha=2), 2 * (c[0] @ c[1]) + 3)
        np.testing.assert_array_equal(self.client.matmul(c[0], b.T, bias=c[0, :3] / 2, result_dtype="float16"), c[0] @ b.T + c[0, :3] / 2)
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
        self.check(self.whole(64, 64), self.whole(64, 64), variant="tiled_16", verify=True)
        last = self.client.last
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
        self.assertLessEqual(len(self.client._call._free), 8)

    def test_connection_is_kept(self):
        for _ in range(3):
            self.client.matmul(TWO, TWO)
        self.refused("bad_shape", self.client.matmul, [[1, 2]], [[5, 6]])
        [(*_, connection)] = self.client._call._free
        port = connection.sock.getsockname()
        self.client.matmul(TWO, TWO)
        self.assertEqual(connection.sock.getsockname(), port)

    def test_one_line(self):
        with mock.patch.dict(os.environ, MATMULD_URL=self.server.url):
            np.testing.assert_array_equal(matmuld.matmul(TWO, TWO), [[4]])
        self.assertRaises(OSError, matmuld.matmul, TWO, TWO, url="http://127.0.0.1:1")
        self.assertRaises(ValueError, matmuld.Client, "127.0.0.1:8080")

    def test_benchmark(self):
        for arguments, status in [(["bench", self.server.url, "32"], 0), (["bench", self.server.url, "8", "--dtype", "x"], 1)]:
            with mock.patch.object(sys, "argv", ["matmuld", *arguments]), mock.patch("sys.stdout", io.StringIO()) as printed:
                with mock.patch("sys.stderr", io.StringIO()) as complaint:
                    self.assertEqual(command_line.main(), status)
            if status == 0:
                for word in "m=32", "median ms", "tiled_32", "auto (":
                    self.assertIn(word, printed.getvalue())
            else:
                self.assertIn("unsupported", complaint.getvalue())
        table = self.client.benchmark(20, 20, 20, variants=["naive", "tiled_16"], repeats=2)
        self.assertEqual([row["repeats"] for row in table.rows], [2, 2])
        self.assertIn("<td>naive</td>", table._repr_html_())

    def test_version_is_the_project_s(self):
        text = subprocess.run([os.environ["MATMULD"], "--version"], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertIn(matmuld.__version__, text.split())


class StoredMatrices(WithServer):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.whole(6, 5), self.whole(5, 4)
        self.B = self.client.put(self.b, "weights")
        self.addCleanup(self.B.delete)

    def test_products(self):
        A = self.client.put(np.asfortranarray(self.a), "a")
        c = self.a @ self.b
        whole = self.client.put(self.b.astype(int), "int")
        for product in A @ self.B, self.a @ self.B, A @ self.b, self.a.astype(int).tolist() @ whole:
            np.testing.assert_array_equal(product.get(), c)
            np.testing.assert_array_equal(product.get(rows=slice(0, 4), variant="naive"), c[:4])
        self.assertEqual((A @ self.B).reduce("sum", "finite", rows=slice(2, None)), {"sum": c[2:].sum(), "finite": True})
        C = (A @ self.B).store("c")
        np.testing.assert_array_equal(C.get(cols=slice(1, 2)), c[:, 1:2])
        np.testing.assert_array_equal((C @ [1.0, 2, 3, 4]).client.stored("c").get(), c)
        self.assertEqual(self.client.stored("c").etag, C.etag)
        self.assertRaises(TypeError, lambda: (A @ self.B) @ self.b)
        self.assertRaises(ValueError, matmuld.Client(self.server.url).matmul, self.a, self.B)

    def test_gemm(self):
        A, bias = self.client.put(self.a, "a"), self.client.put(np.ones(4, np.float32), "bias")
        other = matmuld.Client(self.server.url)
        other.stored("bias").delete()
        acc = (A @ self.B).store("acc", bias=bias)
        expected = self.a @ self.b + 1
        for c in acc, expected:
            np.testing.assert_array_equal((A @ self.B).get(c=c, beta=2), self.a @ self.b + 2 * expected)
        for _ in range(3):
            acc = (A @ self.B).store("acc", c=acc)
        np.testing.assert_array_equal(acc.get(), 4 * (self.a @ self.b) + 1)
        mine, theirs = self.client.stored("acc"), other.stored("acc")
        mine.client.product(self.a, self.b).store("acc", c=mine)
        error = self.refused("precondition_failed", other.product(self.a, self.b).store, "acc", c=theirs)
        self.assertEqual(error.status, 412)
        mine.client.product(self.a, self.b).store("acc", c=mine)  # the handle knows the value that its client stored
        np.testing.assert_array_equal(mine.get(), 6 * (self.a @ self.b) + 1)
        acc = self.client.put(expected, "acc")
        other.stored("acc").delete()
        self.refused("no_such_matrix", (A @ self.B).store, "acc", c=acc)
        self.refused("unsupported", (A @ self.B).get, bias=np.ones(4))
        self.assertRaises(ValueError, (A @ self.B).get, c=other.stored("a"))
        self.assertRaises(TypeError, (A @ self.B).get, c=A @ self.B)

    def test_types(self):
        for dtype in TYPES:
            with self.subTest(dtype):
                array = self.whole(3, 2, dtype=dtype)
                got = self.client.put(array, "typed").get()
                self.assertEqual((got.dtype, got.tobytes()), (array.dtype, array.tobytes()))
        self.assertRaises(ValueError, self.client.put, 3, "number")

    def test_uploaded_once(self):
        self.assertEqual(self.client.put(self.b.copy(), "weights").etag, self.B.etag)
        self.assertFalse(self.B.sync())
        self.b[0, 0] += 1
        self.assertTrue(self.B.sync())
        np.testing.assert_array_equal(self.B.get(), self.b)
        self.assertTrue(self.client.put(self.b.reshape(4, 5), "weights").get().shape == (4, 5))

    def test_replaced_by_another_client(self):
        matmuld.Client(self.server.url).put(self.b + 1, "weights")
        self.assertTrue(self.B.sync())
        np.testing.assert_array_equal((self.a @ self.B).get(), self.a @ self.b)

    def test_deleted_by_another_client(self):
        other = matmuld.Client(self.server.url)
        product = self.a @ self.B
        for use in product.get, lambda: product.store("c").get(), lambda: (self.a @ self.B.get()):
            other.stored("weights").delete()
            np.testing.assert_array_equal(use(), self.a @ self.b)

    def test_what_has_no_array_is_not_healed(self):
        handle = self.client.stored("weights")
        self.B.delete()
        self.refused("no_such_matrix", (self.a @ handle).get)
        handle.delete()
        with self.assertRaises(matmuld.Error) as caught:
            self.client.stored("weights")
        self.assertEqual(caught.exception.status, 404)

    def test_healed_only_once(self):
        with mock.patch.object(matmuld.Stored, "sync", return_value=False) as sync:
            self.B.client._call.call("DELETE", "/v1/matrices/weights")
            self.refused("no_such_matrix", (self.a @ self.B).get)
        self.assertEqual(sync.call_count, 1)

    def test_ttl(self):
        self.client.put(self.b, "brief", ttl_s=1)
        time.sleep(1.5)
        self.assertRaises(matmuld.Error, self.client.stored, "brief")


class Keys(WithServer):
    ENVIRONMENT = {"MATMULD_API_KEY": "a-key-of-32-characters-0123456789"}

    def test_key(self):
        self.check(TWO, TWO)
        error = self.refused("unauthorized", matmuld.Client(self.server.url, "wrong").matmul, TWO, TWO)
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


class Retries(unittest.TestCase):
    def play(self, *replies, **options):
        self.fake = Fake(*replies)
        return matmuld.Client(self.fake.url, **options)

    def test_retry_after(self):
        client = self.play(BUSY, reply("503 Stopping", "Retry-After: 1"), FOUR)
        begun = time.monotonic()
        self.assertEqual(client.matmul(TWO, TWO), 4)
        self.assertGreaterEqual(time.monotonic() - begun, 2)
        self.assertEqual(self.fake.seen[0], self.fake.seen[2])

    def test_refused_results_are_repeated(self):
        self.play(BUSY, reply("200 OK", 'ETag: "1"')).product(TWO, TWO).store("c")
        self.assertEqual(len(self.fake.seen), 2)

    def test_no_longer_than_allowed(self):
        for answer in reply("429 Busy", "Retry-After: 2"), reply("503 Down"), reply("500 Wrong", "Retry-After: 0"):
            with self.assertRaises(matmuld.Error) as caught:
                self.play(answer, FOUR, retry_s=1.5).matmul(TWO, TWO)
            self.assertEqual(caught.exception.code, "http_" + answer[9:12].decode())
            self.assertEqual(len(self.fake.seen), 1)

    def test_closed_connections(self):
        self.assertEqual(self.play(b"", FOUR).matmul(TWO, TWO), 4)
        self.assertRaises(ConnectionError, self.play(b"", b"", FOUR).matmul, TWO, TWO)
        self.assertEqual(len(self.fake.seen), 2)

    def test_refused_before_the_body_is_read(self):
        fake = Fake(reply("413 Too large"), reads_bodies=False)
        with self.assertRaises(matmuld.Error) as caught:
            matmuld.Client(fake.url).matmul(np.zeros((2000, 2000)), np.zeros((2000, 2000)))
        self.assertEqual(caught.exception.status, 413)

    def test_what_is_stored_is_not_repeated(self):
        self.assertRaises(ConnectionError, self.play(b"", FOUR).product(TWO, TWO).store, "c")
        self.assertEqual(len(self.fake.seen), 1)

    def test_a_proxy_that_lost_the_server(self):
        lost = reply("502 Bad Gateway")
        self.assertEqual(self.play(lost, FOUR).matmul(TWO, TWO), 4)
        for replies, call in ((lost, lost), lambda product: product.get()), ((lost, FOUR), lambda product: product.store("c")):
            with self.assertRaises(matmuld.Error) as caught:
                call(self.play(*replies).product(TWO, TWO))
            self.assertEqual(caught.exception.code, "http_502")
        self.assertEqual(len(self.fake.seen), 1)

    def test_affinity(self):
        """Requests about stored matrices have the client's text, also if a copy of the client sends them."""
        ok, texts = reply("200 OK", 'ETag: "1"'), []
        for affinity in None, None, "team", "":
            client = self.play(ok, ok, FOUR, ok, FOUR, ok, FOUR, reply("204 Gone"), FOUR, affinity=affinity)
            handle = client.put(TWO, "b")
            pickle.loads(pickle.dumps(client)).stored("b")
            (TWO @ handle).get(), client.product(TWO, TWO).store("c"), client.matmul(TWO, TWO, bias=handle)
            handle.sync(), handle.get(), handle.delete(), client.matmul(TWO, TWO)
            *stored, other = [re.findall(r"(?im)^matmul-affinity: (\S+)", head) for head in self.fake.seen]
            self.assertEqual((len(stored), stored), (8, 8 * stored[:1]))
            self.assertEqual(other, [])
            texts.append(stored[0])
        self.assertEqual(texts[2:], [["team"], []])
        self.assertEqual(len({text for [text] in texts[:2]}), 2)

    def test_replies_that_break_off(self):
        for answer in FOUR[:-1], b"HTTP", FOUR.replace(b"1, 1", b"2, 2"):
            self.assertRaises(ConnectionError, self.play(answer, FOUR).matmul, TWO, TWO)
            self.assertEqual(len(self.fake.seen), 1)

    def test_old_connections_carry_no_result_to_store(self):
        client = matmuld.Client("http://127.0.0.1:1")
        for repeatable, age_s, is_reused in (True, 60, True), (False, 1, True), (False, 60, False):
            connection = client._call._acquire(True)
            client._call._free.append((os.getpid(), time.monotonic() - age_s, connection))
            self.assertIs(client._call._acquire(repeatable) is connection, is_reused)

    def test_threads_that_close_a_client(self):
        client = matmuld.Client("http://127.0.0.1:1")
        connection = client._call._acquire(True)
        client._call._free.extend([(0, 0.0, connection)] * 100_000)
        failed = []

        def close():
            try:
                client.close()
            except IndexError as error:
                failed.append(error)

        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=close) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_silence(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        client = matmuld.Client("http://127.0.0.1:%d" % listener.getsockname()[1], timeout_s=0.2)
        self.assertRaises(socket.timeout, client.matmul, TWO, TWO)


if __name__ == "__main__":
    unittest.main()
