"""The command line: python -m matmuld COMMAND --help."""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any, Callable, Dict, Iterable, Optional, Sequence

import numpy as np

from . import Client, Error, Stored
from ._files import load

# Options of `multiply` that become parameters of Client.matmul.
_PARAMETERS = ("variant", "dtype", "transpose_a", "transpose_b", "alpha", "beta", "activation", "c", "bias")


class _Bar:
    """Shows a transfer in one line of the terminal, and erases the line at the end of the transfer."""

    WIDTH = 24

    def __init__(self) -> None:
        self._what, self._begun, self._shown = "", 0.0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        if done == total:
            self.erase()
            return
        now = time.monotonic()
        if what != self._what:
            self._what, self._begun = what, now
        elif now - self._shown < 0.1:
            return
        self._shown = now
        bar = "#" * (done * self.WIDTH // total)
        rate = f", {done / (now - self._begun) / 1e6:.0f} MB/s" if now > self._begun else ""
        text = f"{what} [{bar:.<{self.WIDTH}}] {100 * done // total} %, {done / 1e6:.1f} of {total / 1e6:.1f} MB{rate}"
        sys.stderr.write(f"\r{text}\033[K")
        sys.stderr.flush()

    def erase(self) -> None:
        if self._what:
            sys.stderr.write("\r\033[K")
            self._what = ""


def _output(name: str) -> str:
    if pathlib.Path(name).suffix.lower() not in (".npy", ".csv"):
        raise argparse.ArgumentTypeError(f"{name!r} has another suffix than .npy and .csv")
    return name


def _write(result: Any, output: Optional[str]) -> None:
    """Writes a .npy file, a .csv file, or without a name CSV to the standard output."""
    array = np.asarray(result)
    if output and output.lower().endswith(".npy"):
        if array.dtype.kind == "V":
            raise ValueError(f"a .npy file has no type {array.dtype}: add --dtype float32")
        np.save(output, array)
    elif array.ndim > 2:
        raise ValueError(f"CSV has no stacks, but the result has {array.ndim} dimensions: write a .npy file")
    else:
        rows = array.reshape(-1, 1) if array.ndim < 2 else array
        np.savetxt(output or sys.stdout, rows.view(np.uint8) if rows.dtype == bool else rows, "%s", ",")


def _print_table(handles: Iterable[Stored]) -> None:
    rows = [("name", "shape", "type", "bytes")]
    rows += [(x.name, "×".join(map(str, x.shape)), x.dtype.name, str(x.nbytes)) for x in handles]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, shape, dtype, size in rows:
        print(f"{name:{widths[0]}}  {shape:{widths[1]}}  {dtype:{widths[2]}}  {size:>{widths[3]}}")


def _multiply(client: Client, options: argparse.Namespace) -> None:
    def operand(text: Optional[str]) -> Any:
        return text and (client.stored(text[1:]) if text.startswith("@") else load(text))

    parameters: Dict[str, Any] = {name: getattr(options, name) for name in _PARAMETERS}
    parameters.update(c=operand(options.c), bias=operand(options.bias))
    if parameters["bias"] is not None and 1 in parameters["bias"].shape:
        parameters["bias"] = np.ravel(parameters["bias"])  # CSV has no vectors
    _write(client.matmul(operand(options.a), operand(options.b), **parameters), options.output)


def _put(client: Client, options: argparse.Namespace) -> None:
    if options.name:
        _print_table([client.put(load(options.file), options.name, ttl_s=options.ttl)])
    else:
        _print_table(client.put_file(options.file, prefix=options.prefix, ttl_s=options.ttl).values())


def _get(client: Client, options: argparse.Namespace) -> None:
    _write(client.stored(options.name).get(rows=options.rows, cols=options.cols, dtype=options.dtype), options.output)


def _list(client: Client, options: argparse.Namespace) -> None:
    _print_table(client.list())


def _delete(client: Client, options: argparse.Namespace) -> None:
    client.delete(options.name)


def _bench(client: Client, options: argparse.Namespace) -> None:
    m, k, n = options.sizes if len(options.sizes) == 3 else (options.sizes or [512]) * 3
    result = client.benchmark(m, k, n, dtype=options.dtype)
    print(f"matmul m={m} k={k} n={n} {options.dtype} on {result.reply['device']}\n\n{result}")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m matmuld", epilog="The key is the environment variable MATMULD_API_KEY.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[Client, argparse.Namespace], None], text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text.capitalize() + ".", epilog=parser.epilog)
        added.set_defaults(run=run)
        added.add_argument("--url", help="the server (default: MATMULD_URL, or http://127.0.0.1:8080)")
        return added

    def result_options(added: argparse.ArgumentParser) -> None:
        added.add_argument("-o", "--output", metavar="FILE", type=_output, help=".npy or .csv (default: prints CSV)")
        added.add_argument("--dtype", type=np.dtype, help="convert the result to this type")

    multiply = command("multiply", _multiply, "multiply two matrices")
    multiply.add_argument(
        "a", metavar="A", help="a .npy, .csv, .npz or .safetensors file of one array, or @NAME of a stored matrix"
    )
    multiply.add_argument("b", metavar="B", help="the second operand, also a file or @NAME")
    result_options(multiply)
    multiply.add_argument("--variant", help="the kernel (default: the server chooses)")
    multiply.add_argument("--transpose-a", action="store_true", help="transpose A")
    multiply.add_argument("--transpose-b", action="store_true", help="transpose B")
    multiply.add_argument("-c", metavar="C", help="a matrix to add, a file or @NAME")
    multiply.add_argument("--bias", help="a vector to add to each row, a file or @NAME")
    multiply.add_argument("--alpha", help="a factor of A·B")
    multiply.add_argument("--beta", help="a factor of C")
    multiply.add_argument("--activation", help="none, relu, gelu, gelu_tanh, silu, sigmoid or tanh")

    put = command("put", _put, "store each array of a file on the server")
    put.add_argument("file", metavar="FILE", help="a .npy, .csv, .npz or .safetensors file")
    naming = put.add_mutually_exclusive_group()
    naming.add_argument("--name", help="the name of the file's only array (default: the name in the file, or the file's)")
    naming.add_argument("--prefix", default="", help="a text before each name")
    put.add_argument("--ttl", metavar="S", type=int, help="the server deletes the matrices after so many seconds")

    get = command("get", _get, "fetch a stored matrix")
    get.add_argument("name", metavar="NAME")
    result_options(get)
    get.add_argument("--rows", metavar="FIRST:END", help="only these rows, such as 0:4")
    get.add_argument("--cols", metavar="FIRST:END", help="only these columns")

    command("list", _list, "list the stored matrices")
    command("delete", _delete, "delete a stored matrix").add_argument("name", metavar="NAME")

    bench = command("bench", _bench, "time the variants and print a table")
    bench.add_argument("sizes", metavar="M K N", nargs="*", help="the shape: A is M×K, B is K×N (default: 512)")
    bench.add_argument("--dtype", default="float32", help="the element type (default: float32)")

    options = parser.parse_args(arguments)
    if options.run is _bench:
        if len(options.sizes) not in (0, 1, 3) or not all(size.isdigit() for size in options.sizes):
            bench.error("give no sizes, one for a square, or M, K and N")
        options.sizes = [int(size) for size in options.sizes]
    return options


def main() -> int:
    options = _parse(sys.argv[1:])
    bar = _Bar() if sys.stderr.isatty() else None
    complaint, status = "", 0
    try:
        options.run(Client(options.url, progress=bar), options)
    except KeyboardInterrupt:
        status = 130
    except (Error, OSError, ValueError, TypeError, ImportError) as error:
        complaint, status = f"matmuld: {error}\n", 1
    if bar:
        bar.erase()
    sys.stderr.write(complaint)
    return status


if __name__ == "__main__":
    sys.exit(main())
