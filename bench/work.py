"""How much a program must move and compute, read off its HLO text: the roof's side of the scoreboard.

Bytes are operands read once plus results written once, at the entry. Where the text shows that only a
part is touched, the part counts: of a parameter that is only gathered or sliced at run time, what comes
out; and a donated parameter that comes back is not counted as written. Operations are those of `dot` and
`convolution` (whose paddings count too), in every computation that runs, times the trip count of the loops
around it (a loop's count is the one integer
constant its condition compares with, as JAX prints fori_loop and scan).
"""

import math
import re

import hlo_signature

_BITS = re.compile(r"(\d+)")
_LINE = re.compile(r"^\s+(?:ROOT )?(\S+) = (\(.*?\)|\S+) ([a-z-]+)\((.*?)\)(.*)$")
_ARRAY = re.compile(r"^([a-z][a-z0-9]*)\[([0-9,]*)\]")


def item_bytes(dtype):
    return 1 if dtype == "pred" else int(_BITS.search(dtype)[1]) // 8


def array_bytes(leaf):
    dtype, dims = leaf
    return item_bytes(dtype) * math.prod(dims)


def _computations(text):
    """{name: [(instruction, shape, opcode, operands, attributes)]}, and the entry's name."""
    found, entry, lines = {}, None, None
    for line in text.split("\n"):
        if line.endswith("{") and not line.startswith(("HloModule", " ")):
            words = line.split()
            name = words[1] if words[0] == "ENTRY" else words[0]
            entry = name if words[0] == "ENTRY" else entry
            lines = found[name] = []
        elif lines is not None and (match := _LINE.match(line)):
            name, shape, opcode, operands, attributes = match.groups()
            lines.append((name, shape, opcode, operands.split(", "), attributes))
    return found, entry


def _dims(shape):
    match = _ARRAY.match(shape)
    return match[1], [int(d) for d in match[2].split(",") if d]


def _touched(computations, name, number, whole):
    """Bytes of parameter `number` of a computation that are read, of `whole`."""
    lines = computations[name]
    parameter = next((line[0] for line in lines if line[2] == "parameter" and line[3] == [str(number)]), None)
    total = 0
    for _, shape, opcode, operands, attributes in lines:
        if parameter not in operands or opcode == "parameter":
            continue
        if opcode in ("gather", "dynamic-slice") and parameter not in operands[1:]:
            total += array_bytes(_dims(shape))
        elif opcode == "call":
            callee = re.search(r"to_apply=(\S+?)(,|$)", attributes)[1]
            total += sum(_touched(computations, callee, k, whole)
                         for k, operand in enumerate(operands) if operand == parameter)
        else:
            return whole
    return min(total, whole)


def traffic(text):
    """(bytes read, bytes written)"""
    parameters, results = hlo_signature.signature(text)
    donated = hlo_signature.donations(text)
    computations, entry = _computations(text)
    return (sum(_touched(computations, entry, k, array_bytes(p)) for k, p in enumerate(parameters)),
            sum(array_bytes(r) for leaf, r in enumerate(results) if leaf not in donated))


def operations(text):
    """(operations of contractions, element type of the widest share of them or "f32")"""
    computations, entry = _computations(text)
    by_type = {}

    def trip_count(condition):
        constants = [int(operands[0]) for _, shape, opcode, operands, _ in computations[condition]
                     if opcode == "constant" and shape in ("s32[]", "s64[]")]
        return constants[0] if len(constants) == 1 else 1

    def visit(name, times):
        shapes = {}
        for instruction, shape, opcode, operands, attributes in computations[name]:
            shapes[instruction] = shape
            if opcode == "dot":
                dtype, left = _dims(shapes[operands[0]])
                contracted = re.search(r"lhs_contracting_dims=\{([0-9,]*)\}", attributes)
                axes = [int(d) for d in contracted[1].split(",") if d] if contracted else []
                count = 2 * math.prod(_dims(shape)[1]) * math.prod(left[a] for a in axes)
                by_type[dtype] = by_type.get(dtype, 0) + times * count
            elif opcode == "convolution":
                dtype, kernel = _dims(shapes[operands[1]])
                output = re.search(r"dim_labels=\w+_(\w+)->", attributes)[1].index("o")
                count = 2 * math.prod(_dims(shape)[1]) * math.prod(kernel) // kernel[output]
                by_type[dtype] = by_type.get(dtype, 0) + times * count
            elif opcode == "call":
                visit(re.search(r"to_apply=(\S+?)(,|$)", attributes)[1], times)
            elif opcode == "while":
                condition = re.search(r"condition=(\S+?)(,|$)", attributes)[1]
                visit(re.search(r"body=(\S+?)(,|$)", attributes)[1], times * trip_count(condition))

    visit(entry, 1)
    if not by_type:
        return 0, "f32"
    return sum(by_type.values()), max(by_type, key=by_type.get)
