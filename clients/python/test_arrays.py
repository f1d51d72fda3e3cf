"""Tests of operands from other packages, and of files with arrays. A test without its package is skipped."""

import importlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

from matmuld._arrays import as_array, dtype_of, like_operands
from matmuld._files import arrays_of, load


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


ml_dtypes, torch, pandas, scipy = (optional(name) for name in ("ml_dtypes", "torch", "pandas", "scipy.sparse"))
if torch and not ml_dtypes:
    torch = None


class Case(unittest.TestCase):
    def refused(self, operand, *words, error=TypeError):
        """The message begins with the operand's name, and has all the words."""
        with self.assertRaises(error) as caught:
            as_array(operand, "bias")
        message = str(caught.exception)
        self.assertTrue(message.startswith("bias"), message)
        for word in words:
            self.assertIn(word, message)

    def becomes(self, operand, dtype, values):
        array = as_array(operand, "a")
        self.assertIs(type(array), np.ndarray)
        self.assertEqual((array.dtype.name, array.dtype.str[0]), (np.dtype(dtype).name, np.dtype(dtype).str[0]))
        np.testing.assert_array_equal(array.astype(float), values)


class Operands(Case):
    def test_types_of_the_server_are_not_copied(self):
        for dtype in "float64 float32 float16 int64 int32 int8 uint8 bool".split():
            array = np.ones((2, 3), dtype)
            for view in (array, array.T, array[:, ::2], np.asmatrix(array)):
                self.assertTrue(np.shares_memory(as_array(view, "a"), array))

    def test_exact_conversions(self):
        self.becomes([[1, 2.5]], "float64", [[1, 2.5]])
        self.becomes(3, "int64", 3)
        self.becomes(np.int16([-(2**15)]), "int32", [-(2**15)])
        self.becomes(np.array([2**16 - 1], ">u2"), "int32", [2**16 - 1])
        self.becomes(np.uint32([2**32 - 1]), "int64", [2**32 - 1])
        self.becomes(np.array([1, 2], ">f4"), "float32", [1, 2])

    def test_other_types_are_refused_with_advice(self):
        self.refused(np.uint64([1]), "uint64", ".astype(np.int64)")
        self.refused(np.complex64([1]), "complex64", ".real")
        self.refused(np.array(["2020-01-01"], "M8[D]"), "datetime64[D]", ".astype(np.int64)")
        self.refused(np.array(["1.5"]), "<U3", ".astype(np.float64)")
        self.refused(np.array([1, None]), "object", ".astype(np.float64)")
        self.refused(np.zeros(2, [("x", "f4"), ("y", "f4")]), "['x']")
        self.refused(np.zeros(2, "V2"), ".view(")
        if np.longdouble(0).itemsize > 8:
            self.refused(np.zeros(2, np.longdouble), ".astype(np.float64)")
        for nothing in (None, "1", {1}):
            self.refused(nothing, type(nothing).__name__)

    def test_masked_and_ragged(self):
        self.refused(np.ma.masked_array([1.0, 2.0], [False, True]), "masked", ".filled(0)", ".data")
        if np.lib.NumpyVersion(np.__version__) >= "1.24.0":
            self.refused([[1, 2], [3]], "inhomogeneous", error=ValueError)

    def test_a_refused_conversion_says_which_operand(self):
        class Cupy:
            def __array__(self, *_, **__):
                raise TypeError("write .get()")

        self.refused(Cupy(), "write .get()")

    @unittest.skipUnless(scipy, "no scipy")
    def test_sparse(self):
        self.refused(scipy.csr_matrix(np.eye(2)), "csr_matrix", ".toarray()")

    @unittest.skipUnless(ml_dtypes, "no ml_dtypes")
    def test_ml_dtypes(self):
        array = np.ones(2, ml_dtypes.bfloat16)
        self.assertIs(as_array(array, "a"), array)
        self.refused(array.astype(ml_dtypes.int4), "int4", ".astype(np.float32)")
        self.refused(array.astype(ml_dtypes.float8_e4m3fnuz), "float8_e4m3fnuz", ".astype(np.float32)")


@unittest.skipUnless(torch, "no torch, or no ml_dtypes")
class Tensors(Case):
    def test_types(self):
        for dtype in "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int8 uint8 bool".split():
            with self.subTest(dtype):
                tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype))
                self.becomes(tensor.T, dtype, [[0, 1], [1, 0], [1, 1]])
                array = as_array(tensor, "a")
                back = like_operands(array, [1, tensor])
                self.assertEqual((back.dtype, back.data_ptr()), (tensor.dtype, tensor.data_ptr()))

    def test_detached_and_resolved(self):
        self.becomes(torch.ones(2, requires_grad=True), "float32", [1, 1])
        self.becomes(torch.tensor([1 + 2j]).conj().imag, "float32", [-2])
        self.becomes(torch.tensor([1], dtype=torch.int16), "int32", [1])

    def test_refused(self):
        self.refused(torch.eye(2).to_sparse(), "sparse", ".to_dense()")
        self.refused(torch.zeros(2, dtype=torch.float8_e4m3fnuz), "float8_e4m3fnuz", ".to(torch.float32)")
        self.refused(torch.tensor([1j]).conj(), "complex64", ".real")

    def test_without_ml_dtypes(self):
        dtype_of.cache_clear()
        with mock.patch.dict(sys.modules, ml_dtypes=None), self.assertRaisesRegex(ImportError, "pip install ml_dtypes"):
            as_array(torch.ones(2, dtype=torch.bfloat16), "a")

    def test_numbers_and_arrays(self):
        tensor = torch.ones(2)
        self.assertEqual(like_operands(np.float32(3), [tensor]).shape, ())
        self.assertEqual(like_operands(np.ones(2), [tensor.to("meta"), tensor]).device.type, "meta")
        result = np.ones(2)
        self.assertIs(like_operands(result, [result, 1.5]), result)

    @unittest.skipUnless(torch and torch.cuda.is_available(), "no GPU")
    def test_gpu(self):
        tensor = torch.ones(2, dtype=torch.bfloat16, device="cuda")
        self.becomes(tensor, "bfloat16", [1, 1])
        self.assertEqual(like_operands(as_array(tensor, "a"), [tensor]).device, tensor.device)


@unittest.skipUnless(pandas, "no pandas")
class Frames(Case):
    def frame(self, **columns):
        return pandas.DataFrame(columns)

    def nullable(self, *values, dtype="Int64"):
        return pandas.array(values, dtype=dtype)

    def test_numbers(self):
        frame = pandas.DataFrame(np.eye(2, dtype=np.float32))
        self.assertTrue(np.shares_memory(as_array(frame, "a"), np.asarray(frame)))
        self.becomes(self.frame(x=[1, 2], y=[True, False]), "int64", [[1, 1], [2, 0]])
        self.becomes(self.frame(x=self.nullable(1, 2), y=[0.5, np.nan]), "float64", [[1, 0.5], [2, np.nan]])
        self.becomes(pandas.Series(self.nullable(1, 2, dtype="Int16")), "int32", [1, 2])

    def test_refused(self):
        self.refused(self.frame(x=[1, 2], name=["u", "v"]), "column 'name' (", '.select_dtypes("number")')
        self.refused(self.frame(day=pandas.to_datetime(["2020-01-01"])), "column 'day' (datetime64")
        self.refused(self.frame(x=self.nullable(1, None), y=[1.5, 2]), "column 'x' (Int64)", ".fillna(0)")
        self.refused(pandas.Series(self.nullable(1, None, dtype="boolean")), "the series (boolean)", ".fillna(0)")
        self.refused(pandas.Series(["u"]), "the series", ".astype(float)")
        self.refused(pandas.DataFrame([["u"] * 9]), "and 4 more")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.array = np.arange(6, dtype=np.float32).reshape(2, 3)

    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def safetensors(self, header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return self.write("x.safetensors", (len(text) if length is None else length).to_bytes(8, "little") + text + data)

    def broken(self, path, *words):
        with self.assertRaises(ValueError) as caught:
            dict(arrays_of(path))
        for word in (str(path), *words):
            self.assertIn(word, str(caught.exception))

    def test_npy(self):
        path = self.folder / "weights.npy"
        np.save(path, self.array)
        [(name, array)] = arrays_of(path)
        self.assertEqual(name, "weights")
        self.assertIsInstance(array, np.memmap)
        np.testing.assert_array_equal(load(str(path)), self.array)
        self.broken(self.write("half.npy", path.read_bytes()[:-1]))
        np.save(path, np.array([None]), allow_pickle=True)
        self.broken(path)

    def test_npz(self):
        path = self.folder / "x.npz"
        np.savez(path, a=self.array, b=[1, 2])
        arrays = dict(arrays_of(path))
        self.assertEqual(list(arrays), ["a", "b"])
        np.testing.assert_array_equal(arrays["a"], self.array)
        with self.assertRaisesRegex(ValueError, "more than one array"):
            load(path)
        self.broken(self.write("half.npz", path.read_bytes()[:-30]))
        np.savez(path, a=np.array([None]))
        self.broken(path)
        np.savez_compressed(path, a=np.arange(50) ** 7)
        content = path.read_bytes()
        self.broken(self.write("bits.npz", content[:80] + b"\xff" * 60 + content[140:]), "decompressing")

    def test_csv(self):
        for text in ("1,2.5\n3,4\n", "\ufeff1;2.5\n3;4\n"):
            np.testing.assert_array_equal(load(self.write("x.csv", text.encode())), [[1, 2.5], [3, 4]])
        self.assertEqual(load(self.write("row.CSV", b"1,2")).shape, (1, 2))
        self.broken(self.write("head.csv", b"x,y\n1,2\n"))

    def test_safetensors(self):
        float32 = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
        empty = {"dtype": "I64", "shape": [0, 3], "data_offsets": [24, 24]}
        path = self.safetensors({"__metadata__": {"format": "pt"}, "w": float32, "none": empty}, self.array.tobytes())
        arrays = dict(arrays_of(path))
        np.testing.assert_array_equal(arrays["w"], self.array)
        self.assertEqual((arrays["none"].shape, arrays["none"].dtype.name), ((0, 3), "int64"))
        self.assertFalse(arrays["w"].flags.writeable)  # mapped from the file

    def test_broken_safetensors(self):
        tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
        self.broken(self.write("x.safetensors", b""))
        self.broken(self.safetensors(b"{}", length=3), "header ends at byte 11")
        self.broken(self.safetensors(b"{]"), "header cannot be read")
        self.broken(self.safetensors(b"[" * 100_000))
        for header in ([1], 1, {"w": {"dtype": "F32"}}):
            self.broken(self.safetensors(header))
        self.broken(self.safetensors({"w": {**tensor, "dtype": "F4"}}, bytes(8)), "'w'", "F4", "BF16")
        for change in ({"shape": [3]}, {"shape": [-1]}, {"shape": [-2, -1]}, {"shape": [2.0]}, {"data_offsets": [1, 9]},
                       {"data_offsets": [-8, 0]}):  # fmt: skip
            with self.subTest(change):
                self.broken(self.safetensors({"w": {**tensor, **change}}, bytes(8)))

    @unittest.skipUnless(torch and optional("safetensors"), "no torch, ml_dtypes or safetensors")
    def test_safetensors_of_the_package(self):
        names = "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 int64 int32 int16 int8 uint8 bool".split()
        tensors = {name: torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, name)) for name in names}
        optional("safetensors.torch").save_file(tensors, self.folder / "x.safetensors")
        arrays = dict(arrays_of(self.folder / "x.safetensors"))
        self.assertEqual(sorted(arrays), sorted(names))
        for name, array in arrays.items():
            self.assertEqual(array.dtype.name, name)
            np.testing.assert_array_equal(array.astype(float), [[0, 1], [1, 1]])

    def test_other_suffix(self):
        self.broken("model.pt", ".npy, .npz, .safetensors or .csv")


class Imports(unittest.TestCase):
    def test_no_package_but_numpy_is_imported(self):
        code = "import sys, matmuld._files; print([x for x in ('torch', 'pandas', 'scipy', 'ml_dtypes') if x in sys.modules])"
        self.assertEqual(subprocess.check_output([sys.executable, "-c", code], text=True).strip(), "[]")
