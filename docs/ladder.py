#!/usr/bin/env python3
"""Draws the ladder of kernels as a bar chart: docs/ladder.py FIGURES.csv >docs/ladder.svg

./dev bench kernels writes FIGURES.csv to build/bench. The file may begin with comment lines.
"""

import csv
import sys

RUNGS = ["naive_uncoalesced", "naive", "tiled_8", "tiled_16", "tiled_32", "register_tiled", "vectorized",
         "warp_tiled", "simt", "blas", "fp32_tensor"]
EDGES = {"1024": "#9ec5f8", "4096": "#1f5fb4"}  # edges of the cubes, and colours of the bars
LEFT, TOP, BAR, GAP, AXIS = 150, 64, 13, 12, 560  # pixels


def read(path):
    """Returns the rows of the cubes on a GPU, by edge and variant."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {(row["m"], row["variant"]): row for row in rows
            if row["backend"] == "cuda" and row["transpose_b"] == "0" and row["gflops"]
            and row["m"] == row["k"] == row["n"]}


def main():
    rows = read(sys.argv[1])
    rate = {key: float(row["gflops"]) / 1000 for key, row in rows.items()}
    about = rows["4096", "blas"]
    scale = AXIS / max(rate[edge, rung] for edge in EDGES for rung in RUNGS)
    height = TOP + len(RUNGS) * (2 * BAR + GAP) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="820" height="{height}" font-family="sans-serif" font-size="13">',
           '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="15">float32 products on one {about["device"]}, in TFLOP/s (% of cuBLAS)</text>']
    for index, (edge, colour) in enumerate(EDGES.items()):
        x = LEFT + 90 * index
        out.append(f'<rect x="{x}" y="36" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="47">{edge}³</text>')
    out.append(f'<text x="{LEFT + 190}" y="47" fill="#555">median kernel times, {about["date"][:10]}</text>')
    for index, rung in enumerate(RUNGS):
        y = TOP + index * (2 * BAR + GAP)
        name = "cuBLAS" if rung == "blas" else rung
        out.append(f'<text x="{LEFT - 8}" y="{y + BAR + 5}" text-anchor="end">{name}</text>')
        for line, (edge, colour) in enumerate(EDGES.items()):
            value = rate[edge, rung]
            percent = 100 * value / rate[edge, "blas"]
            out.append(f'<rect x="{LEFT}" y="{y + BAR * line}" width="{value * scale:.1f}" height="{BAR - 1}" fill="{colour}"/>'
                       f'<text x="{LEFT + value * scale + 5:.1f}" y="{y + BAR * line + 11}" font-size="11">'
                       f'{value:.1f} ({percent:.0f}%)</text>')
    print("\n".join(out + ["</svg>"]))


main()
