"""Compares products with alpha, beta, C, bias and activation with PyTorch. Usage: epilogue_torch.py URL.

PyTorch computes each result in float64, on the GPU if it has one. Each element must keep the bound of docs/accuracy.md, and
integers must be equal. The table has the largest errors as parts of the bound, also those of PyTorch's result in the same type.
Ends with status 77 without PyTorch.
"""

import functools
import io
import itertools
import json
import sys
import urllib.parse

# Python would import numpy.py and triton.py of this folder if it were on the path.
folder = sys.path.pop(0)
try:
    import numpy as np
    import torch
    from torch.nn import functional
except ImportError as missing:
    print(missing)
    sys.exit(77)
sys.path.insert(0, folder)
from epilogue import NPY, RAW, Server, by_form, by_json  # noqa: E402  (takes the folder from the path)

# The types of operands, how a .npy file names them, and the types of the result
TYPES = {
    "float64": ("<f8", ["float64", "float32"]), "float32": ("<f4", ["float32", "float16", "bfloat16"]),
    "float16": ("<f2", ["float16", "float32"]), "bfloat16": ("<V2", ["bfloat16", "float32"]),
    "float8_e4m3fn": ("<V1", ["float32", "float16", "bfloat16"]), "float8_e5m2": ("<f1", ["float32", "float16", "bfloat16"]),
    "int8": ("|i1", ["int32"]), "uint8": ("|u1", ["int32"]), "bool": ("|b1", ["int32"]), "int32": ("<i4", ["int32"]),
    "int64": ("<i8", ["int64"]),
}  # fmt: skip
VARIANTS = ["auto", "tensor", "tf32", "fp32_tensor", "simt", "tiled_16"]
# m, k and n. Raw bodies of one-byte types have an odd number of bytes before C if k and m + n are odd.
SHAPES = [(1, 1, 1), (3, 5, 2), (17, 0, 9), (70, 40, 67), (33, 129, 64), (300, 257, 129), (512, 768, 640), (1024, 1024, 1024)]
# alpha, beta (None: not given), whether there is a C, whether there is a bias, and what is not finite
CASES = [
    (None, None, False, False, ""), (None, None, True, False, ""), (-1.5, None, False, True, ""), (0.75, -1.25, True, True, ""),
    (None, 0, True, True, "c"), (0, 2, True, True, "ab"), (None, None, True, True, "some"), (-2, 0.5, True, True, "some"),
]  # fmt: skip
ACTIVATIONS = {
    "none": lambda x: x, "relu": functional.relu, "gelu": functional.gelu,
    "gelu_tanh": functools.partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
}  # fmt: skip
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def name_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def npy(tensor):
    file = io.BytesIO()
    descr = TYPES[name_of(tensor)][0]
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": tuple(tensor.shape)})
    return file.getvalue() + raw(tensor)


def csv(tensor):
    rows = tensor.tolist() if tensor.dim() == 2 else [tensor.tolist()]
    return "".join(",".join(map(str, row)).lower() + "\n" for row in rows).encode()


def by_npy(server, operands, options):
    return by_form(server, operands, options, npy)


def by_csv(server, operands, options):
    return by_form(server, operands, options, csv, "csv")


def by_raw(server, operands, options):
    query = options | dict(zip("mkn", (*operands["a"].shape, operands["b"].shape[1])))
    query |= {name: "body" for name in ("c", "bias") if name in operands}
    return server.product(query, b"".join(map(raw, operands.values())), RAW)


def by_name(server, operands, options):
    for name, tensor in operands.items():
        status, _, got = server.ask("PUT", f"/v1/matrices/torch.{name}?dtype={name_of(tensor)}", npy(tensor), NPY)
        assert status in (200, 201), got
    return server.product(options | {f"{name}_from": f"torch.{name}" for name in operands})


def formats(m, k, n):
    """Large matrices are not sent as text, and CSV cannot show a matrix without elements. The counts share no factor with CASES'."""
    if m * k * n > 100**3:
        return [by_npy, by_raw, by_name]
    return [by_json, by_raw, by_npy if k == 0 else by_csv, by_name, by_npy]


def numbers(random, shape, dtype, scale=1.0, flaws=""):
    """Returns random elements of the type: of all values of an integer, or normal ones. flaws "some" adds -0, NaN and infinities."""
    if not dtype.is_floating_point:
        ends = (0, 2) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        return torch.randint(*ends, shape, generator=random).to(dtype)
    elements = torch.randn(shape, generator=random, dtype=torch.float64) * scale
    if flaws == "some" and elements.numel() > 0:
        elements[torch.rand(shape, generator=random) < 0.125] = -0.0
        for one in torch.nan, -torch.inf, torch.inf:
            elements.view(-1)[torch.randint(elements.numel(), (1,), generator=random)] = one
    elif flaws:
        elements[:] = torch.nan
    return elements.to(dtype)


class Product:
    """A and B of a type, A·B and |A|·|B|."""

    def __init__(self, random, dtype, shape, flaws):
        self.m, self.k, self.n = shape
        scale = max(self.k, 1) ** -0.25  # so elements of A·B are about 1
        self.dtype = dtype
        self.a = numbers(random, (self.m, self.k), dtype, scale, flaws)
        self.b = numbers(random, (self.k, self.n), dtype, scale, flaws)
        if dtype.is_floating_point:
            a, b = (one.to(torch.float64).to(DEVICE) for one in (self.a, self.b))
            self.exact, self.absolute = a @ b, a.abs() @ b.abs()
        else:
            self.exact = self.a.to(torch.int64) @ self.b.to(torch.int64)  # wraps around, on the CPU only

    def bound(self, variant, on_gpu):
        """Returns the bound of each element of A·B by a variant."""
        unit, least = self.units()
        factor = 2 * (self.k + 8) * unit
        if variant == "tf32":
            factor = 2**-10 + 2**-22 + 2 * factor
        elif on_gpu and variant != "tiled_16" and self.dtype.itemsize <= 2:  # tensor cores cut off
            factor = max(2 * factor, 2**-6 if self.dtype.itemsize == 1 else 0)
        return factor * self.absolute + self.k * least

    def units(self):
        """Returns the unit of rounding and the least positive number of the type of the sums."""
        sums = torch.finfo(torch.float64 if self.dtype == torch.float64 else torch.float32)
        return sums.eps / 2, sums.tiny * sums.eps


def expect_integers(product, operands, alpha, beta, activation, result):
    d = product.exact * alpha
    d = d + operands["c"].to(torch.int64) * beta if "c" in operands else d
    d = (d + operands["bias"].to(torch.int64) if "bias" in operands else d).to(result)
    return ACTIVATIONS[activation](d)


def expect_floats(product, bound, operands, alpha, beta, activation, result):
    """Returns D before its rounding, and how far an element may be from it. What float64 adds counts as well."""
    unit, least = product.units()
    terms = [(product.exact * alpha, product.absolute * abs(alpha))] if alpha else []
    for name, factor in ("c", beta), ("bias", 1):
        if name in operands and factor:
            term = operands[name].to(torch.float64).to(DEVICE) * factor
            terms.append((term, term.abs()))
    zeros = torch.zeros(product.m, product.n, dtype=torch.float64, device=DEVICE)
    x = sum((term for term, _ in terms), zeros)
    total = sum((absolute for _, absolute in terms), zeros)
    error = (abs(alpha) * bound if alpha else 0) + (4 * unit + (product.k + 8) * 2**-53) * total + least
    d = ACTIVATIONS[activation](x)
    if activation != "none":
        error = 1.13 * error + 8 * (unit + 2**-53) * (1 if activation in ("sigmoid", "tanh") else x.abs())
    if activation in ("gelu", "gelu_tanh", "silu"):
        d = torch.where(x == -torch.inf, 0, d)  # NaN in PyTorch
    to = torch.finfo(result)
    if to.eps / 2 > unit:
        error = error + to.eps / 2 * (d.abs() + error) + to.tiny * to.eps / 2
    return d, error


def compare(got, d, error, activation):
    """Returns whether each element is right, and the largest error as a part of the bound."""
    got = got.to(d.device)
    parts = (got.to(torch.float64) - d).abs() / error
    right = (got == d.to(got.dtype)) | (got.isnan() & d.isnan()) | (parts <= 1)
    if activation == "relu":
        right &= got.isnan() | ~got.signbit()
    largest = torch.where(right & ~parts.isfinite(), 0, parts).nan_to_num(torch.inf, torch.inf)
    return right, largest.max().item()


def by_torch(product, operands, alpha, beta, activation, result):
    """Returns PyTorch's result in the wider one of the two types."""
    wider = max(product.dtype, result, key=lambda dtype: dtype.itemsize)
    a, b, c, bias = (operands[name].to(DEVICE if wider.is_floating_point else "cpu").to(wider) for name in ("a", "b", "c", "bias"))
    return ACTIVATIONS[activation](torch.addmm(c, a, b, beta=beta, alpha=alpha) + bias).to(result)


class Comparison:
    """Sends requests to one backend, and keeps the failures and the largest errors."""

    def __init__(self, url):
        self.server = Server(urllib.parse.urlsplit(url).netloc)
        rows = json.loads(self.server.ask("GET", "/v1/variants")[2])["variants"]
        rows = [row for row in rows if row["op"] == "matmul" and row["available"]]
        self.backend = "cuda" if any(row["backend"] == "cuda" for row in rows) else "cpu"
        self.dtypes = {row["name"]: row["dtypes"] for row in rows if row["backend"] == self.backend}
        self.random = torch.Generator().manual_seed(54)
        self.failures = []

    def ask(self, product, operands, options, send):
        """Returns D as a tensor."""
        got = np.ascontiguousarray(send(self.server, operands, options | {"backend": self.backend}))
        assert got.shape == (product.m, product.n), f"the shape is {got.shape}"
        got = torch.from_numpy(got.view(np.int16)).view(torch.bfloat16) if got.dtype.kind == "V" else torch.from_numpy(got)
        assert name_of(got) == options["result_dtype"], f"the type is {got.dtype}"
        return got

    def check(self, product, options, case, send):
        """Sends one product. Returns the largest errors: of all, of the server beside PyTorch, of PyTorch, and between the two."""
        alpha, beta, with_c, with_bias, flaws = case
        activation, result = options["activation"], getattr(torch, options["result_dtype"])
        operands = {"a": product.a, "b": product.b}
        if with_c:
            operands["c"] = numbers(self.random, (product.m, product.n), result, 1, flaws.replace("ab", ""))
        if with_bias:
            operands["bias"] = numbers(self.random, (product.n,), result, 1, flaws if flaws == "some" else "")
        if not result.is_floating_point:
            alpha, beta = (one and int(4 * one) * (torch.iinfo(result).max // 8) for one in (alpha, beta))
        options = options | {key: value for key, value in (("alpha", alpha), ("beta", beta)) if value is not None}
        alpha, beta = (1 if one is None else one for one in (alpha, beta))
        what = f"{product.m}×{product.k}×{product.n} {send.__name__} {options} {', '.join(operands)}; NaN: {flaws or 'none'}"
        try:
            got = self.ask(product, operands, options, send)
        except AssertionError as wrong:
            self.failures.append(f"{what}: {wrong}")
            return 0, 0, 0, 0
        if result.is_floating_point:
            bound = product.bound(options["variant"], self.backend == "cuda")
            d, error = expect_floats(product, bound, operands, alpha, beta, activation, result)
        else:
            d, error = expect_integers(product, operands, alpha, beta, activation, result), 0
        right, part = compare(got, d, error, activation)
        if not right.all():
            at = tuple((~right).nonzero()[0].tolist())
            self.failures.append(f"{what}: {(~right).sum()} wrong, at {at} {got[at]}, not {d[at]}; {part:.3g} of the bound")
        if options["variant"] != "auto" or flaws or not (with_c and with_bias):
            return part, 0, 0, 0
        own = by_torch(product, operands, alpha, beta, activation, result)
        return part, part, compare(own, d, error, activation)[1], compare(got, own, error, activation)[1]

    def check_type(self, name, results, turns):
        """Checks all results of a type of operands, and prints their rows of the table."""
        dtype = getattr(torch, name)
        activations, data = (list(ACTIVATIONS), ("", "ab", "some")) if dtype.is_floating_point else (["none", "relu"], ("",))
        errors = {result: [] for result in results}
        for shape in SHAPES if self.backend == "cuda" else SHAPES[:-1]:
            products = {flaws: Product(self.random, dtype, shape, flaws) for flaws in data}
            for result, variant, activation in itertools.product(results, VARIANTS, activations):
                if name not in self.dtypes.get(variant, []) or (variant in ("simt", "fp32_tensor") and result != "float32"):
                    continue
                turn = next(turns)
                case, sends = CASES[turn % len(CASES)], formats(*shape)
                options = {"dtype": name, "result_dtype": result, "variant": variant, "activation": activation}
                product = products.get(case[-1], products[""])
                errors[result].append(self.check(product, options, case, sends[turn % len(sends)]))
        for result, rows in errors.items():
            largest = " | ".join(f"{max(column):.3g}" for column in zip(*rows))
            print(f"| {name} | {result} | {len(rows)} | {largest} |", flush=True)


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    comparison, turns = Comparison(sys.argv[1]), itertools.count()
    print(f"PyTorch {torch.__version__} on {DEVICE}, matmuld on {comparison.backend}. Errors are parts of the bound.")
    print("| operands | D | requests | largest error | auto with C and bias | PyTorch | between the two |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for name, (_, results) in TYPES.items():
        comparison.check_type(name, results, turns)
    print("".join(f"WRONG {failure}\n" for failure in comparison.failures), end="")
    print(f"{next(turns)} requests, {len(comparison.failures)} failures")
    sys.exit(1 if comparison.failures else 0)


main()
