#!/usr/bin/env python3
"""Writes tests/conformance.md, or fails if it is not what the tests prove: each row that the documents of HLO
ask for, the tests that name it, and whether they ran compiled on the layouts that the row needs.

usage: conformance.py RECORDS [--write]

Tests name their rows in a comment, `ROWS: 17, 18-20`. A section of tests/hlo names them for itself:
hlo_test --record writes, for each that passed, the rows and the layouts it ran compiled on into
RECORDS/NAME. Elsewhere (units, tests/cli, tests/errors) the comment says so itself: `ROWS: 193 (written,
permuted, tiled)`. That those tests passed is what CTest sees to: they are fixtures of this one.

A row below is `NUMBER NEEDS WHAT`; what it needs is `*` (compiled, with the layout as written, a permuted and
a tiled one), `c` (compiled: the row is about one layout, or has no array), or `-` (text and addresses, where
nothing is compiled).
"""

import argparse
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
TABLE = TESTS / "conformance.md"
NEEDS = {"*": {"written", "permuted", "tiled"}, "c": {"written"}, "-": set()}

ROWS = """
# Shapes and layouts as text
1 c an op as a line of text
2 c no layout given: the default one
3 - shapes on operands, `%` before names
4 * a fusion with its kind and its computation
5 c modules hold computations hold instructions; one entry
6 * computations inside: of map, reduce, while, conditional
7 - shapes as protos
8 * dimensions of size 0
9 * scalars, arrays of one element
10 - dimensions above size 1 are counted
11 - dimensions count from 0, sizes in this order
12 - dimension -1 is the last one
13 c tuples of tuples
14 c tokens
15 - minor_to_major: read, printed, checked
16 - the default layout of a new shape
17 c the layout {0,1}
18 c the layout {1,0}
19 * any permutation
20 - from a multi-index to the linear index
21 - and back
22 - tail padding
23 c memory spaces S(n)
24 * layouts of the entry's parameters and results
25 * a copy from one layout to another
# Tiles
26 c T(2,2) on f32[3,5]
27 c padding makes tiles whole; what is in it has no effect
28 - the linear index without tiles
29 - the linear index with one tile
30 c row-major across tiles and inside them
31 c a tile of fewer dimensions than the array
32 c tiling is pad, reshape and transpose
33 - how many tiles there are
34 c repeated tiles, T(2,4)(2,1)
35 c the second tile cuts dimensions of the first
36 c the second tile cuts across tiles
37 c dimensions joined by `*`
38 c several dimensions joined
39 c no tiles
40 * T(8,128)
41 c T(2,128), T(4,128)
42 * T(8,128)(2,1) of 16 bits
43 * T(8,128)(4,1) of 8 bits
44 c T(32,128)(32,1) of single bits
45 - bytes of tiled and padded buffers
46 * arithmetic on tiled arrays
# Elementwise
47 * add
48 * subtract
49 * multiply
50 * divide
51 * remainder
52 * power
53 * maximum
54 * minimum
55 * and, or, xor of truth values
56 * and, or, xor of integers
57 * shift-left
58 * shift-right-arithmetic
59 * shift-right-logical
60 * atan2
61 * complex
62 * a scalar operand is broadcast
63 * operand dimensions of size 1 are expanded
64 * broadcast_dimensions between ranks
65 * compare as IEEE says
66 * compare in total order
67 * compare with broadcasting
68 * abs
69 * cbrt
70 * ceil
71 * count-leading-zeros
72 * cosine
73 * erf
74 * exponential
75 * exponential-minus-one
76 * floor
77 * imag
78 * is-finite
79 * log
80 * log-plus-one
81 * logistic
82 * negate
83 * not
84 * popcnt
85 * real
86 * round-nearest-afz
87 * round-nearest-even
88 * rsqrt
89 * sign
90 * sine
91 * sqrt
92 * tan
93 * tanh
94 * functions of scalars
95 * clamp between arrays
96 * clamp between scalars
97 * select by an array
98 * select by a scalar
99 * select between tuples
100 * convert, each type to each
101 * bitcast-convert of one width
102 * bitcast-convert to narrower elements
103 * bitcast-convert to wider elements
104 * reduce-precision
105 * iota
# Moving data
106 * broadcast into new leading dimensions
107 * broadcast along named dimensions
108 * reshape in order
109 * reshape in another order
110 * reshape between a scalar and an array
111 * collapse
112 * transpose
113 * reverse
114 * concatenate
115 * slice with strides
116 * dynamic-slice, starts clamped
117 * dynamic-update-slice, starts clamped
118 * pad at the edges
119 * pad by less than nothing
120 * pad between elements
121 * gather: batch and offset dimensions, slice sizes
122 * gather: collapsed dimensions
123 * gather: a start index of fewer dimensions
124 * gather: where the index vector lies
125 * gather: indices of many dimensions
126 * gather: sorted indices
127 * scatter: windows and index map
128 * scatter: which argument comes first
129 * scatter: updates out of bounds
130 * scatter of several operands
131 * scatter: unique and sorted indices, duplicates
132 - scatter: what is refused
133 * tuple
134 * get-tuple-element
# Reductions and windows
135 * reduce over some dimensions, by any computation
136 * reduce over all
137 * reduce of nothing is the initial value
138 * reduce of several operands
139 * reduce-window with strides
140 * reduce-window with padding
141 * reduce-window with dilation
142 * reduce-window of several operands
143 * reduce-window whose windows overlap
144 * select-and-scatter
145 * select-and-scatter whose windows overlap
146 * select-and-scatter: padding, initial value, order
147 * map
148 * sort of a line
149 * sort along any dimension
150 * sort of several operands
151 * sort, stable
# Linear algebra
152 * dot of vectors and matrices
153 * dot: contracting dimensions
154 * dot: batch dimensions
155 * convolution of any rank
156 * convolution with strides
157 * convolution with padding
158 * convolution with base dilation
159 * convolution with window dilation
160 * convolution in feature groups
161 * convolution in batch groups
162 * convolution, SAME and VALID
163 * batch-norm-training
164 * batch-norm-inference
165 * batch-norm-grad
166 * cholesky
167 * cholesky of complex numbers
168 * triangular-solve from both sides
169 * triangular-solve, both triangles, unit diagonal
170 * triangular-solve, transposed
171 * fft
172 * inverse fft
173 * fft of real numbers
174 * inverse fft to real numbers
# Control flow
175 * call
176 * composite call
177 * conditional by a truth value
178 * conditional by an index
179 * while
180 * custom-call of a C function
181 - custom-call that nobody serves
182 * opt-barrier
183 * fusion
# Random numbers
184 * rng, uniform
185 * rng, normal
186 * rng-bit-generator, ThreeFry
187 * rng-bit-generator, Philox
188 * rng-bit-generator, the default
# Dynamic sizes
189 * get-dimension-size
190 * set-dimension-size
191 * reductions see no padding
# Several devices
192 c replica-id
193 * all-gather
194 * all-reduce
195 * a sum across replicas
196 * all-to-all
197 * collective-permute
198 * reduce-scatter
199 c after-all
200 * infeed
201 * send
202 * recv
203 c channels: order, no cycles
"""


def rows_of(text):
    """[(number, needs, what)] with None for number at a heading."""
    rows = []
    for line in text.strip().splitlines():
        if line.startswith("# "):
            rows.append((None, None, line[2:]))
        else:
            number, needs, what = line.split(" ", 2)
            rows.append((int(number), needs, what))
    return rows


def claim_of(line):
    """(numbers, layouts) of `17, 18-20 (written, tiled)`."""
    numbers, _, layouts = line.partition("(")
    found = set()
    for part in numbers.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found, set(re.findall(r"\w+", layouts))


def claims_of_records(records):
    """(test, claim) of every section that passed; fails where a section that names rows is not among them."""
    for path in sorted((TESTS / "hlo").rglob("*.hlo")):
        name = ".".join(path.relative_to(TESTS).with_suffix("").parts)
        named = len(re.findall(r"^// ROWS: ", path.read_text(), re.M))
        record = records / name
        passed = record.read_text().splitlines() if record.exists() else []
        if len(passed) != named:
            sys.exit(f"{name}: {len(passed)} of the {named} sections that name rows passed in this build")
        for line in passed:
            yield name.removeprefix("hlo."), claim_of(line)


def claims_of_sources():
    """(test, claim) of the comments elsewhere."""
    sources = [*TESTS.glob("*/*.cc"), *TESTS.glob("cli/*.test"), *TESTS.glob("errors/*.hlo")]
    for path in sorted(sources):
        folder = path.parent.name
        test = {"cli": f"cli.{path.stem}", "errors": "errors"}.get(folder, f"unit.{folder}")
        for line in re.findall(r"^(?://|#) ROWS: (.*)$", path.read_text(), re.M):
            yield test, claim_of(line)


def table(claims):
    """(text, complaints)."""
    text = "# Conformance\nThe rows that the documents of HLO ask for, as the tests prove them. Written by conformance.py; CTest compares.\n"
    complaints = []
    for number, needs, what in rows_of(ROWS):
        if number is None:
            text += f"\n## {what}\n| row | what | tests | pass |\n|--:|---|---|---|\n"
            continue
        mine = [(test, layouts) for test, (numbers, layouts) in claims if number in numbers]
        tests = list(dict.fromkeys(test for test, _ in mine))
        missing = NEEDS[needs] - set().union(*(layouts for _, layouts in mine))
        if not mine:
            complaints.append(f"row {number} ({what}) has no test")
        elif missing:
            complaints.append(f"row {number} ({what}): nothing ran compiled on layouts {', '.join(sorted(missing))}")
        text += f"| {number} | {what} | {', '.join(tests)} | {'yes' if mine and not missing else 'no'} |\n"
    return text, complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    claims = [*claims_of_sources(), *claims_of_records(options.records)]
    text, complaints = table(claims)
    if options.write:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        complaints.append("conformance.md is not what the tests prove: write it anew with --write")
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
