"""Facts from replies: the timing and check of a product, and the rows of a benchmark, shown as tables."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._http import Headers, shape_of


def _html_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + line("th", head) + "".join(line("td", row) for row in rows) + "</table>"


@dataclass(frozen=True)
class Reply:
    """Facts about a product. `timing` contains the server's times in milliseconds: receive, decode, queue,
    upload, kernel, download, encode and total (docs/http-api.md). `round_trip_ms` is the client's time from
    call to result. `devices` is the number of devices that computed the product. `verify` contains residual,
    bound, passed, rows_unjudged and relative_error, or is None if you did not request the check."""

    shape: Tuple[int, ...]
    dtype: str
    variant: str
    backend: str
    device: str
    devices: int
    path: Optional[str]
    verify: Optional[Dict[str, Any]]
    timing: Dict[str, float]
    round_trip_ms: float
    request_id: str

    def _repr_html_(self) -> str:
        rows: List[Tuple[str, Any]] = [
            (name, getattr(self, name)) for name in ("shape", "dtype", "variant", "backend", "device", "devices", "path", "verify")
        ]
        rows += [(f"{name} ms", f"{ms:.3f}") for name, ms in self.timing.items()]
        rows.append(("round trip ms", f"{self.round_trip_ms:.3f}"))
        return _html_table(["product", ""], [row for row in rows if row[1] is not None])


def _parse_verify(text: str) -> Dict[str, Any]:
    """Reads the header Matmul-Verify. `passed` is None if no row could be checked."""
    values: Dict[str, Any] = {"passed": None, "relative_error": None}
    for name, value in re.findall(r'(\w+)(?:="?([^",]*)"?)?', text):
        if name == "passed":
            values[name] = value != "?0"
        else:
            values[name] = int(value) if name == "rows_unjudged" else float(value)
    return values


def parse_reply(headers: Headers, round_trip_ms: float) -> Reply:
    verify = headers.get("matmul-verify")
    spans = re.findall(r"(\w+);dur=([0-9.eE+-]+)", headers.get("server-timing", ""))
    return Reply(
        shape=shape_of(headers),
        dtype=headers.get("matmul-dtype", ""),
        variant=headers.get("matmul-variant", ""),
        backend=headers.get("matmul-backend", ""),
        device=headers.get("matmul-device", ""),
        devices=int(headers.get("matmul-devices", "1")),
        path=headers.get("matmul-path"),
        verify=_parse_verify(verify) if verify else None,
        timing={name: float(ms) for name, ms in spans},
        round_trip_ms=round_trip_ms,
        request_id=headers.get("x-request-id", ""),
    )


class Benchmark:
    """The rows of POST /v1/benchmark (docs/http-api.md). str() returns them as a table."""

    COLUMNS = ("variant", "backend", "repeats", "median ms", "GFLOP/s", "of blas", "relative error", "max error")

    def __init__(self, reply: Mapping[str, Any]) -> None:
        self.reply = dict(reply)
        self.rows: List[Dict[str, Any]] = reply["rows"]

    def cells(self) -> List[Tuple[str, ...]]:
        def number(value: Any, form: str) -> str:
            return "-" if value is None else format(float(value), form)

        lines: List[Tuple[str, ...]] = []
        for row in self.rows:
            name = f"{row['variant']} ({row['ran']})" if "ran" in row else row["variant"]
            name += f"/{row['tile']}" if row.get("tile") else ""
            if "error" in row:
                lines.append((name, row["backend"], row["error"]["detail"]))
                continue
            lines.append((
                name, row["backend"], str(row["repeats"]), number(row["kernel_ms"]["median"], ".4f"),
                number(row.get("gflops"), ".4g"), number(row.get("of_blas"), ".3f"),
                number(row.get("relative_error"), ".2e"), number(row.get("max_error"), ".4f"),
            ))  # fmt: skip
        return lines

    def __str__(self) -> str:
        lines = [self.COLUMNS, *self.cells()]
        # The last cell of a line is not padded, because it may be the long sentence of an error.
        widths = [max(len(line[i]) for line in lines if len(line) > i + 1) for i in range(len(self.COLUMNS) - 1)]
        return "\n".join("  ".join([cell.ljust(w) for cell, w in zip(line[:-1], widths)] + [line[-1]]) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html_table(self.COLUMNS, self.cells())
