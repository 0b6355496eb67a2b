"""Programs as pictures for notebooks: SVG, made here, without a network.

A box is an instruction of the entry computation, mostly a kernel; a row of boxes needs only the rows above. A
kernel's time is measured: it is cut out as a program of its own and run on made-up numbers, alone, so that the sum
is what the whole would take without anything between its kernels. The bar at a box's foot is its share of the
slowest one's time.
"""

from __future__ import annotations

import dataclasses
import html

from hlojit import _core, arrays

_WIDTH, _HEIGHT, _GAP, _FONT = 230, 62, 26, 12
_COLOURS = {"parameter": "#dbe9f6", "fusion": "#fde3c8", "constant": "#eeeeee"}
_CALLS = 5
#: What is measured beside fusions: work of their own that ends whatever the numbers are (loops may not).
_STEPS = ("cholesky", "fft", "rng-bit-generator", "sort", "topk", "triangular-solve")


@dataclasses.dataclass(frozen=True)
class Node:
    """An instruction of a program: what it is, which nodes it reads (by number), and what it moves."""

    name: str
    opcode: str
    kind: str
    """of a kernel: "nest", "rows", ...; else empty"""
    shape: str
    operands: tuple[int, ...]
    bytes_read: int
    bytes_written: int
    seconds: float | None = None
    """least of a few calls; None where nothing was measured (parameters, loops, calls)"""


def nodes(module: "_core.Module") -> list[Node]:
    """A module's entry computation in order; tuples, their elements, bitcasts and small constants left out."""
    return [Node(name, opcode, kind, shape, tuple(operands), read, written)
            for name, opcode, kind, shape, operands, read, written in module.graph()]


def measured(module: "_core.Module", options: "_core.Options") -> list[Node]:
    """The same of an optimised module, each kernel with its time."""
    out = []
    for node in nodes(module):
        if node.kind or node.opcode in _STEPS:
            kernel = _core.compile(module.extract(node.name), options)
            inputs = [arrays.made_up(shape) for shape in kernel.parameters()]
            if all(i is not None for i in inputs):
                node = dataclasses.replace(node, seconds=kernel.seconds(_CALLS, *inputs))
        out.append(node)
    return out


def _size(n: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _places(graph: list[Node]) -> list[tuple[int, int]]:
    """The upper left corner of each box."""
    rows: list[int] = []
    filled: dict[int, int] = {}
    places = []
    for node in graph:
        row = max((rows[k] + 1 for k in node.operands), default=0)
        column = filled[row] = filled.get(row, -1) + 1
        rows.append(row)
        places.append((column * (_WIDTH + _GAP) + _GAP, row * (_HEIGHT + 2 * _GAP) + _GAP))
    return places


def _box(node: Node, x: int, y: int, slowest: float) -> str:
    lines = [f"{node.opcode}: {node.kind}" if node.kind else node.opcode,
             node.shape if len(node.shape) <= 30 else node.shape[:29] + "…",
             _size(node.bytes_written)]
    bar = ""
    if node.seconds is not None:
        moved = node.bytes_read + node.bytes_written
        lines[2] = f"{_time(node.seconds)}, {_size(moved)}, {moved / node.seconds / 1e9:.1f} GB/s"
        bar = (f'<rect x="{x}" y="{y + _HEIGHT - 4}" width="{_WIDTH * node.seconds / slowest:.1f}" height="4" '
               'fill="#c0504d"/>')
    texts = "".join(f'<text x="{x + 8}" y="{y + 18 + 17 * k}">{html.escape(line)}</text>' for k, line in enumerate(lines))
    return (f'<g><title>{html.escape(f"{node.name} = {node.shape}")}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="4" fill="{_COLOURS.get(node.opcode, "#dff0d8")}" stroke="#555"/>{bar}{texts}</g>')


def picture(graph: list[Node]) -> str:
    """The nodes as an SVG picture."""
    places = _places(graph)
    width = max((x for x, _ in places), default=0) + _WIDTH + _GAP
    height = max((y for _, y in places), default=0) + _HEIGHT + _GAP
    slowest = max((n.seconds for n in graph if n.seconds is not None), default=1.0)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'font-family="monospace" font-size="{_FONT}">']
    for node, (x, y) in zip(graph, places):
        for fx, fy in (places[k] for k in node.operands):
            out.append(f'<line x1="{fx + _WIDTH / 2}" y1="{fy + _HEIGHT}" x2="{x + _WIDTH / 2}" y2="{y}" stroke="#888"/>')
    out += [_box(node, x, y, slowest) for node, (x, y) in zip(graph, places)]
    return "\n".join([*out, "</svg>"])
