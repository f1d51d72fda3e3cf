"""Tests of stored matrices: MATMULD=PATH python3 -m unittest, in this folder."""

import hashlib
import os
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import matmuld
from matmuld._arrays import dtype_of
from test_matmuld import TWO, TYPES, WithServer


class StoredMatrices(WithServer):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.whole(6, 5), self.whole(5, 4)
        self.B = self.client.put(self.b, "weights")
        self.addCleanup(lambda: [handle.delete() for handle in self.client.list()])

    def test_products(self):
        A = self.client.put(np.asfortranarray(self.a), "a")
        c = self.a @ self.b
        whole = self.client.put(self.b.astype(int), "int")
        for product in A @ self.B, self.a @ self.B, A @ self.b, self.a.astype(int).tolist() @ whole:
            np.testing.assert_array_equal(product.get(), c)
            np.testing.assert_array_equal(product.get(rows=slice(0, 4), variant="naive"), c[:4])
        self.assertEqual((A @ self.B).reduce("sum", "finite", rows=slice(2, None)), {"sum": c[2:].sum(), "finite": True})
        self.assertEqual(repr((A @ self.B).reduce("sum")), repr({"sum": float(c.sum())}))
        self.assertEqual(repr((self.a.astype(int) @ whole).reduce("sum")), repr({"sum": int(c.sum())}))
        C = (A @ self.B).store("c")
        np.testing.assert_array_equal(C.get(cols=slice(1, 2)), c[:, 1:2])
        np.testing.assert_array_equal((C @ [1.0, 2, 3, 4]).client.stored("c").get(), c)
        self.assertEqual(self.client.stored("c").etag, C.etag)
        self.assertRaises(ValueError, matmuld.Client(self.server.url).matmul, self.a, self.B)

    def test_handles_are_like_arrays(self):
        for handle in self.B, self.client.stored("weights"), self.client.list()[-1]:
            self.assertEqual((handle.shape, handle.ndim, handle.dtype, handle.nbytes), ((5, 4), 2, np.float32, 80))
            self.assertEqual((handle.T.shape, handle.T.T.shape, handle.etag), ((4, 5), (5, 4), self.B.etag))
            np.testing.assert_array_equal(np.asarray(handle.T, float), self.b.T)
            np.testing.assert_array_equal(handle.T.get(rows=slice(1, 3), dtype="float16"), self.b.T[1:3])
            self.assertIn("4×5 float32", repr(handle.T))
        A = self.client.put(self.a, "a")
        np.testing.assert_array_equal((self.B.T @ A.T).get(), (self.a @ self.b).T)
        np.testing.assert_array_equal((self.B.T @ A).get(transpose_b=True), (self.a @ self.b).T)
        np.testing.assert_array_equal((self.b.T @ A.T).get(), (self.a @ self.b).T)
        C = (A @ self.B).store("c")
        self.assertEqual((C.shape, C.dtype), ((6, 4), np.float32))
        self.assertIsInstance(np.asarray(A @ self.B), np.ndarray)
        stack = self.client.put(self.whole(2, 3, 4), "stack")
        self.assertRaisesRegex(ValueError, "transpose_a=True", lambda: stack.T)
        self.assertRaises(ValueError, (A @ self.B).get, c=C.T)
        vector = self.client.put([1.0, 2], "vector")
        np.testing.assert_array_equal(vector.T.get(), [1, 2])

    def test_chains(self):
        W = self.client.put(self.whole(4, 4), "w")
        w, bias, c = W.get(), np.float32([1, 2, 3, 4]), self.whole(6, 4)
        x = self.a @ self.b @ w
        before = [handle.name for handle in self.client.list()]
        for product, expected in [
            (self.a @ self.B @ W, x),
            (self.a @ (self.B @ W), x),
            (self.a @ self.B @ w + bias, x + bias),
            (bias + self.a @ self.B @ w + c, x + bias + c),
            (self.a @ self.B + (self.a @ self.B) @ w, self.a @ self.b + x),
            (bias @ W + bias, bias @ w + bias),
            (W @ bias + bias, w @ bias + bias),
            (self.a @ self.B @ W @ W + bias + self.client.put(c, "c2"), x @ w + bias + c),
        ]:
            np.testing.assert_array_equal(product.get(), expected)
            np.testing.assert_array_equal(product.get(dtype=int, cols="0:2"), expected[..., :2])
        self.client.delete("c2")
        self.assertEqual([handle.name for handle in self.client.list()], before)
        C = (self.a @ self.B @ W + c).store("chain")
        np.testing.assert_array_equal(C.get(), x + c)
        self.assertRaisesRegex(ValueError, "one bias", lambda: self.a @ self.B + bias + bias)
        self.assertRaisesRegex(TypeError, "once", (self.a @ self.B + bias).get, bias=bias)
        for name in "weights", "w":
            matmuld.Client(self.server.url).delete(name)
        np.testing.assert_array_equal((self.a @ self.B @ W).get(), x)
        with mock.patch.dict(os.environ, MATMULD_URL="http://127.0.0.1:1"):
            np.testing.assert_array_equal(matmuld.matmul(self.a, self.B), self.a @ self.b)

    def test_list_and_delete(self):
        names = [f"n{i:04}" for i in range(1001)]
        for name in names:
            self.client.put(TWO, name)
        self.assertEqual([handle.name for handle in self.client.list()], [*names, "weights"])
        for name in names:
            self.client.delete(name)
        self.client.delete(self.B)
        self.client.delete(self.B)
        self.assertEqual(self.client.list(), [])

    def test_list_without_ml_dtypes(self):
        dtype_of.cache_clear()
        with mock.patch.dict(sys.modules, ml_dtypes=None):
            handle = self.client.product(TWO, TWO).store("odd", result_dtype="bfloat16")
            self.assertEqual([handle.name for handle in self.client.list()], ["odd", "weights"])
            self.assertIn("bfloat16", repr(handle))
            self.assertRaisesRegex(ImportError, "pip install ml_dtypes", handle.get)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            np.savez(f"{folder}/model.npz", first=self.a, second=self.b)
            handles = self.client.put_file(f"{folder}/model.npz", prefix="model.")
            self.assertEqual(list(handles), ["model.first", "model.second"])
            np.testing.assert_array_equal((handles["model.first"] @ handles["model.second"]).get(), self.a @ self.b)
            np.save(f"{folder}/one.npy", self.a)
            np.testing.assert_array_equal(self.client.put_file(f"{folder}/one.npy", ttl_s=60)["one"].get(), self.a)

    def test_what_to_do(self):
        """Errors say what to write."""
        product = self.a @ self.B
        for call, text in [
            (lambda: self.client.stored("nope"), "no matrix 'nope'"),
            (lambda: (self.a.astype(float) @ self.B).get(), r"astype\('float32'\)"),
            (lambda: (self.b @ self.B).get(), "transpose_b=True"),
            (lambda: product.get(variant="tiled32"), "did you mean 'tiled_32'"),
            (lambda: product.get(varaint="naive"), "did you mean 'variant'"),
            (lambda: product.get(c=np.ones((6, 4), complex)), "astype|real"),
            (lambda: (product + 1).get(), "np.full"),
            (lambda: (product + [1, 2, 3]).get(), "bias has 3 elements, .* 4 columns"),
            (lambda: self.client.put([[1j]], "z"), "the array 'z'.*real"),
            (lambda: self.client.put(7, "z"), "the array 'z' is a number"),
            (lambda: self.client.put(self.a, 7), "name of a matrix is 7"),
            (lambda: product.store("c", rows="0:2"), "whole product"),
            (lambda: self.B[0:4], "rows=slice"),
            (lambda: list(self.B), "rows=slice"),
            (lambda: 2 * product, "alpha="),
        ]:
            with self.assertRaisesRegex((matmuld.Error, TypeError, ValueError), text):
                call()

    def test_not_hashed_before_it_is_rejected(self):
        """Arrays are read for their digest only if the server may have them."""
        self.client.put(self.b, "weights")
        with mock.patch("hashlib.sha256", wraps=hashlib.sha256) as sha256:
            self.assertFalse(self.B.sync())
            self.assertEqual(sha256.call_count, 1)
            large = np.broadcast_to(np.float32(0), (1 << 20, 1 << 20))
            self.refused("too_large", self.client.put, large, "weights")

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
        self.assertRaises(ValueError, (A @ self.B).get, c=other.stored("a"))
        np.testing.assert_array_equal((A @ self.B).get(c=A @ self.B), 2 * (self.a @ self.b))
        for bias in [1, 2, 3, 4], np.ones(4):
            got = (A @ self.B + bias).get()  # the result has the type of the stored matrices
            np.testing.assert_array_equal(got, self.a @ self.b + bias)
            self.assertEqual(got.dtype, np.float32)
        for b, flips in (self.B.T, False), (self.B, True), (self.b, True):
            got = self.client.matmul(expected, b, transpose_b=flips, bias=np.ones(5))
            np.testing.assert_array_equal(got, expected @ self.b.T + 1)

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

    def test_a_product_that_replaces_its_bias_stays(self):
        """A lost matrix is not made from the array that a product has replaced."""
        bias = self.client.put(np.ones(4, np.float32), "bias")
        self.client.product(self.a[0], self.b).store("bias", c=bias)
        bias = self.client.put(np.ones(4, np.float32), "bias")
        self.client.product(self.a[:1], self.b).store("bias", bias=bias)
        matmuld.Client(self.server.url).delete("bias")
        self.refused("no_such_matrix", bias.get)

    def test_replaced_by_another_client(self):
        matmuld.Client(self.server.url).put(self.b + 1, "weights")
        self.assertTrue(self.B.sync())
        np.testing.assert_array_equal((self.a @ self.B).get(), self.a @ self.b)

    def test_deleted_by_another_client(self):
        other = matmuld.Client(self.server.url)
        product = self.a @ self.B
        for use in product.get, lambda: product.store("c").get(), lambda: self.a @ self.B.get():
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
            self.client._send("DELETE", "weights")
            self.refused("no_such_matrix", (self.a @ self.B).get)
        self.assertEqual(sync.call_count, 1)

    def test_a_lost_sum_is_not_its_first_term(self):
        """The array of a handle is not uploaded in place of a product that has replaced the matrix."""
        square = self.whole(4, 4)
        for is_sum in True, False:
            handle = self.client.put(square, "x")
            if is_sum:
                self.client.product(square, square).store("x", c=handle)
            else:
                (square @ handle).store("x")
            self.client._send("DELETE", "x")
            self.refused("no_such_matrix", handle.get)
            self.refused("no_such_matrix", (square @ handle).get)

    def test_a_chain_whose_deletion_fails(self):
        call = self.client._transport.call

        def fail(method, *arguments, **options):
            if method == "DELETE":
                raise ConnectionError
            return call(method, *arguments, **options)

        with mock.patch.object(self.client._transport, "call", fail):
            np.testing.assert_array_equal((self.a @ self.B @ self.b.T).get(), self.a @ self.b @ self.b.T)

    def test_ttl(self):
        """The life begins with the last put."""
        for ttl_s in 100, 1:
            self.client.put(self.b, "brief", ttl_s=ttl_s)
        time.sleep(1.5)
        self.assertRaises(matmuld.Error, self.client.stored, "brief")


if __name__ == "__main__":
    unittest.main()
