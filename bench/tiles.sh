#!/bin/sh
# ./dev bench tiles: products in tiles, which may use a quarter of the GPU memory that they need. Prints the
# forecast and the measured times, keeps them in build/bench/tiles-DATE.txt, and writes a timeline of each product
# to build/bench/tiles-DATE-TYPE.csv. Needs 20 GB of host memory. Takes about two minutes on an H200.
# Usage: tiles.sh BUILD_FOLDER [TYPE EDGE]…, in the top folder.
set -eu

tiles=$1/tests/kernels/tiles
shift
[ $# -gt 0 ] || set -- float32 24576 bfloat16 32768 float64 16384
mkdir -p build/bench
name=build/bench/tiles-$(date -u +%Y-%m-%dT%H%M%S)
failed=0
while [ $# -ge 2 ]; do
    echo "$1, $2 x $2 x $2"
    "$tiles" "$1" "$2" "$2" "$2" "$name-$1.csv" || failed=$?
    shift 2
done >"$name.txt"
cat "$name.txt"
exit "$failed"
