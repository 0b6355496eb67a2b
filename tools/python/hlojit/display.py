"""Programs as pictures for notebooks: SVG, made here, without a network.

A box is an instruction of the entry computation, mostly a kernel; a row of boxes needs only the rows above.
Tuples and the constants that are not large are left out: edges go straight to what is read.
"""

from __future__ import annotations

import dataclasses
import html
import re

from hlojit.arrays import DTYPES

_LINE = re.compile(r"^\s*(?:ROOT )?%?(?P<name>[\w.-]+) = (?P<shape>\(.*?\)|\S+) (?P<op>[\w-]+)\((?P<operands>[^)]*)\)(?P<rest>.*)$")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<=]*)\]")
_WIDTH, _HEIGHT, _GAP, _FONT = 230, 44, 26, 12
_PASSES_ON = ("tuple", "get-tuple-element", "bitcast")
_COLOURS = {"parameter": "#dbe9f6", "fusion": "#fde3c8", "constant": "#eeeeee"}


@dataclasses.dataclass
class _Box:
    name: str
    what: str
    shape: str
    operands: list[str]
    row: int = 0
    column: int = 0


def _bytes(shape: str) -> int:
    total = 0
    for element, dims in _ARRAY.findall(shape):
        count = 1
        for d in filter(None, dims.replace("<=", "").split(",")):
            count *= int(d)
        total += count * DTYPES[element].itemsize if element in DTYPES else 0
    return total


def _size(n: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _boxes(text: str) -> list[_Box]:
    entry = text[text.index("\nENTRY"):] if "\nENTRY" in text else text
    stands_for: dict[str, list[str]] = {}
    boxes: dict[str, _Box] = {}
    for line in entry.splitlines()[1:]:
        found = _LINE.match(line)
        if not found:
            continue
        operands = [] if found["op"] in ("parameter", "constant", "iota") else re.findall(
            r"%?([\w.-]+)(?:,|$)", re.sub(r"/\*.*?\*/", "", found["operands"]))
        reads = list(dict.fromkeys(r for o in operands for r in stands_for.get(o, [])))
        if found["op"] in _PASSES_ON or (found["op"] == "constant" and _bytes(found["shape"]) < 1024):
            stands_for[found["name"]] = reads
            continue
        kernel = re.search(r'"kernel":"(\w+)"', found["rest"])
        what = f"{found['op']}: {kernel[1]}" if kernel else found["op"]
        box = _Box(found["name"], what, re.sub(r"\{[^}]*\}", "", found["shape"]), reads)
        box.row = max((boxes[o].row + 1 for o in reads), default=0)
        box.column = sum(b.row == box.row for b in boxes.values())
        boxes[box.name] = box
        stands_for[box.name] = [box.name]
    return list(boxes.values())


def kernel_graph(text: str) -> str:
    """The entry computation of an HLO text as an SVG picture."""
    boxes = _boxes("\n" + text)
    at = {b.name: (b.column * (_WIDTH + _GAP) + _GAP, b.row * (_HEIGHT + 2 * _GAP) + _GAP) for b in boxes}
    width = max((x for x, _ in at.values()), default=0) + _WIDTH + _GAP
    height = max((y for _, y in at.values()), default=0) + _HEIGHT + _GAP
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'font-family="monospace" font-size="{_FONT}">']
    for b in boxes:
        x, y = at[b.name]
        for operand in b.operands:
            fx, fy = at[operand]
            out.append(f'<line x1="{fx + _WIDTH / 2}" y1="{fy + _HEIGHT}" x2="{x + _WIDTH / 2}" y2="{y}" stroke="#888"/>')
    for b in boxes:
        x, y = at[b.name]
        colour = _COLOURS.get(b.what.split(":")[0], "#dff0d8")
        shape = b.shape if len(b.shape) <= 24 else b.shape[:23] + "…"
        out.append(f'<g><title>{html.escape(f"{b.name} = {b.shape}")}</title><rect x="{x}" y="{y}" width="{_WIDTH}" '
                   f'height="{_HEIGHT}" rx="4" fill="{colour}" stroke="#555"/>'
                   f'<text x="{x + 8}" y="{y + 18}">{html.escape(b.what)}</text>'
                   f'<text x="{x + 8}" y="{y + 36}">{html.escape(shape)}, {_size(_bytes(b.shape))}</text></g>')
    return "\n".join([*out, "</svg>"])
