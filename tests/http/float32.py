#!/usr/bin/env -S python3 -IS
"""Numbers as raw little-endian float32 data, for the scripts of this folder: shells hold no bytes.

    float32.py encode          numbers on stdin, separated by space, as bytes on stdout
    float32.py decode          bytes on stdin as numbers on stdout, one a line; nine digits tell all apart
    float32.py fill COUNT X    COUNT times the number X as bytes
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
