"""python -m matmuld bench URL [M K N]: prints a table of the variants' times at a server. The key is $MATMULD_API_KEY."""

from __future__ import annotations

import argparse
import os
import sys

from . import Client, Error


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m matmuld")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser("bench", help="time the variants and print a table")
    bench.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:8080")
    bench.add_argument("sizes", metavar="M K N", nargs="*", type=int, help="the shape: A is M×K, B is K×N (default: 512)")
    bench.add_argument("--dtype", default="float32", help="the element type (default: float32)")
    options = parser.parse_args()
    if len(options.sizes) not in (0, 1, 3):
        parser.error("give no sizes, one for a square, or M, K and N")
    m, k, n = options.sizes if len(options.sizes) == 3 else (options.sizes or [512]) * 3
    try:
        result = Client(options.url, os.environ.get("MATMULD_API_KEY")).benchmark(m, k, n, dtype=options.dtype)
    except (Error, OSError, ValueError) as error:
        print(f"matmuld: {error}", file=sys.stderr)
        return 1
    print(f"matmul m={m} k={k} n={n} {options.dtype} on {result.reply['device']}\n\n{result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
