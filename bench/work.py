"""How much a program must move and compute, read off its HLO text: the roof's side of the scoreboard.

Bytes are operands read once plus results written once, at the entry. Where the text shows that only a
part is touched, the part counts: of a parameter that is only gathered or sliced at run time, what comes
out; and a donated parameter that comes back is not counted as written.

Operations are counted in every computation that runs, times the trip count of the loops around it (a loop's
count is the one integer constant its condition compares with, as JAX prints fori_loop and scan; of branches
none is counted). Those of contractions, a multiply-add two: `dot`, `convolution` (whose paddings count too, what
dilates its input not), `fft`, `cholesky`, `triangular-solve`. Those of elements: one for what an instruction does, a
third where three go into one (rotations, functions of three bits), ten multiply-adds for a function such as exp,
none for what may go into another instruction or is a movement; a sort's comparisons. Each is the least that any code
needs: what is broadcast is computed before, a sum is an addition an element, narrow integers are free.
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


_FUNCTIONS = frozenset("""exponential exponential-minus-one log log-plus-one logistic tanh sine cosine tan erf power
    atan2 cbrt""".split())
_INSTRUCTIONS = frozenset("""add subtract multiply divide maximum minimum remainder sqrt rsqrt compare select floor ceil
    round-nearest-even round-nearest-afz clamp popcnt""".split())
_OF_BITS = frozenset("and or xor shift-left shift-right-logical shift-right-arithmetic".split())
_ONE_TO_ONE = frozenset("convert copy reshape transpose reverse negate abs bitcast-convert".split())
_OF_A_FUNCTION = 20  # ten multiply-adds


def _called(attributes, role):
    return re.search(rf"{role}=(\S+?)(,|$)", attributes)[1]


def _contraction(opcode, shapes, shape, operands, attributes):
    """(operations, element type) of an instruction that contracts; None of any other."""
    if opcode == "dot":
        dtype, left = _dims(shapes[operands[0]])
        contracted = re.search(r"lhs_contracting_dims=\{([0-9,]*)\}", attributes)
        axes = [int(d) for d in contracted[1].split(",") if d] if contracted else []
        return 2 * math.prod(_dims(shape)[1]) * math.prod(left[a] for a in axes), dtype
    if opcode == "convolution":
        dtype, kernel = _dims(shapes[operands[1]])
        output = re.search(r"dim_labels=\w+_(\w+)->", attributes)[1].index("o")
        dilated = re.search(r"lhs_dilate=([0-9x]+)", attributes)
        zeros = math.prod(int(n) for n in dilated[1].split("x")) if dilated else 1
        return 2 * math.prod(_dims(shape)[1]) * math.prod(kernel) // kernel[output] // zeros, dtype
    if opcode == "fft":
        lengths = [int(n) for n in re.search(r"fft_length=\{([0-9,]*)\}", attributes)[1].split(",")]
        dtype, dims = _dims(shape)
        # Split radix; half of it where the values of one side are real.
        points = math.prod(dims) * (1 if re.search(r"fft_type=I?FFT", attributes) else 0.5)
        return int(4 * points * sum(math.log2(n) for n in lengths)), "f64" if dtype in ("c128", "f64") else "f32"
    if opcode == "cholesky":
        dtype, dims = _dims(shape)
        return math.prod(dims) * dims[-1] // 3, dtype
    if opcode == "triangular-solve":
        dtype, dims = _dims(shapes[operands[0]])
        return math.prod(_dims(shape)[1]) * dims[-1], dtype
    return None


def _rate_of(dtype):
    """The type whose multiply-adds tell how fast elements of this one are computed; None: not counted."""
    if dtype in ("f64", "s64", "u64", "c128"):
        return "f64"
    return "f32" if dtype in ("f32", "s32", "u32", "f16", "bf16", "c64") else None


class _Elements:
    """Of a computation's instructions, how many elements of each differ, and what they take."""

    def __init__(self):
        self.different = {}

    def of(self, name, shape, opcode, operands, attributes):
        """(operations, type) of the instruction."""
        if opcode == "sort":
            dtype, dims = _dims(shape.lstrip("("))
            along = dims[int(re.search(r"dimensions=\{(\d+)\}", attributes)[1])]
            return math.prod(dims) * math.log2(max(along, 1)), _rate_of(dtype)
        if not (match := _ARRAY.match(shape)):
            return 0, None
        dtype, dims = match[1], [int(d) for d in match[2].split(",") if d]
        of_operands = [self.different.get(operand, 1) for operand in operands]
        count = math.prod(dims)
        if opcode == "constant":
            count = 1 if "..." not in operands[0] and "{" not in operands[0] else count
        elif opcode == "iota":
            count = dims[int(re.search(r"iota_dimension=(\d+)", attributes)[1])] if dims else 1
        elif opcode in _FUNCTIONS | _INSTRUCTIONS | _OF_BITS | _ONE_TO_ONE | {"broadcast"}:
            count = min(count, max(of_operands, default=1))
        self.different[name] = count
        if opcode in _FUNCTIONS:
            return count * _OF_A_FUNCTION, _rate_of(dtype)
        if opcode in _INSTRUCTIONS:
            return count, _rate_of(dtype)
        if opcode in _OF_BITS:
            return count / 3, _rate_of(dtype)
        if opcode in ("reduce", "reduce-window"):
            return max(of_operands), _rate_of(dtype)
        return 0, None


def operations(text):
    """(operations of contractions by element type, those of elements by the type whose rate they have)"""
    computations, entry = _computations(text)
    contractions, elements = {}, {}

    def trip_count(condition):
        constants = [int(operands[0]) for _, shape, opcode, operands, _ in computations[condition]
                     if opcode == "constant" and shape in ("s32[]", "s64[]")]
        return constants[0] if len(constants) == 1 else 1

    def visit(name, times):
        shapes, values = {}, _Elements()
        for instruction, shape, opcode, operands, attributes in computations[name]:
            shapes[instruction] = shape
            count, dtype = values.of(instruction, shape, opcode, operands, attributes)
            if dtype:
                elements[dtype] = elements.get(dtype, 0) + times * count
            if found := _contraction(opcode, shapes, shape, operands, attributes):
                contractions[found[1]] = contractions.get(found[1], 0) + times * found[0]
            elif opcode == "call":
                visit(_called(attributes, "to_apply"), times)
            elif opcode == "while":
                visit(_called(attributes, "body"), times * trip_count(_called(attributes, "condition")))

    visit(entry, 1)
    return contractions, elements
