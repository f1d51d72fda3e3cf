#!/usr/bin/env -S python3 -IS
"""Converts between text and raw little-endian float32 data, which shell variables cannot hold.

    float32.py encode          reads numbers separated by spaces, writes bytes
    float32.py decode          reads bytes, writes a number on each line, with nine digits so no bit is lost
    float32.py fill COUNT X    writes the number X COUNT times as bytes
"""

import struct
import sys

task, *arguments = sys.argv[1:]
if task == "encode":
    sys.stdout.buffer.write(b"".join(struct.pack("<f", float(word)) for word in sys.stdin.read().split()))
elif task == "decode":
    data = sys.stdin.buffer.read()
    rest = len(data) % 4
    for (number,) in struct.iter_unpack("<f", data[: len(data) - rest]):
        print(f"{number:.9g}")
    if rest:
        print(f"and {rest} bytes that make no number")
elif task == "fill":
    count, number = arguments
    sys.stdout.buffer.write(int(count) * struct.pack("<f", float(number)))
else:
    sys.exit(__doc__)
