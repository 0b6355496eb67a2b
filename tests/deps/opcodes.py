#!/usr/bin/env python3
"""Keeps what is known of an op in the op's own places.

A pass that switches over opcodes restates what the op table (compiler/ir/ops.h) or an access relation
(compiler/analysis/access.h) says, and a new op has to find it. So only the files below may tell opcodes
apart: by a switch, by a table with a row an opcode, or by a chain of four or more comparisons. Fails on a
file that does and is not named, and on a name that is no longer needed.

usage: opcodes.py ROOT      exit code 1 and a line per finding if there is any
       opcodes.py --self-test
"""

import pathlib
import re
import sys
import tempfile

ALLOWED = {
    "which attributes an op takes": [
        "compiler/text/attributes.cc",
    ],
    "an op's operands, attributes and shape": [
        "compiler/verify/elementwise_rules.cc",
        "compiler/verify/shape_inference.cc",
        "compiler/verify/verifier.cc",
    ],
    "what an op means to the oracle": [
        "compiler/eval/elementwise.cc",
        "compiler/eval/elementwise_complex.cc",
        "compiler/eval/elementwise_float.cc",
        "compiler/eval/evaluator.cc",
        "compiler/eval/scalar_function.cc",
    ],
    "which elements an op reads": [
        "compiler/analysis/access.cc",
        "compiler/analysis/access_reductions.cc",
    ],
    "which layouts and run-time sizes an op hands on": [
        "compiler/passes/dynamic_rules.cc",
        "compiler/passes/layout_rules.cc",
    ],
    "simpler forms of an op": [
        "compiler/passes/devices.cc",
        "compiler/passes/expand.cc",
        "compiler/passes/simplify_arithmetic.cc",
        "compiler/passes/simplify_control.cc",
        "compiler/passes/simplify_movement.cc",
    ],
    "an op as vector code": [
        "codegen/nest/element_emitter.cc",
        "codegen/number/complexes.cc",
        "codegen/number/elementwise.cc",
        "codegen/number/floats.cc",
        "codegen/number/integers.cc",
    ],
    "an op as a call of the runtime": [
        "runtime/collectives/collectives.cc",
        "runtime/collectives/queues.cc",
        "runtime/pjrt/manual.cc",
        "runtime/pjrt/program.cc",
        "runtime/steps.cc",
    ],
    "the error an op may make": [
        "tools/error_bound.cc",
        "tools/error_rules.cc",
        "tools/meet.cc",
    ],
    "an op to be drawn": [
        "tools/fuzz/census.cc",
        "tools/fuzz/windows.cc",
    ],
}

# What these know of ops belongs in the op table or follows from access relations: none may join them.
OWED = [
    "codegen/entry.cc",
    "codegen/nest/accesses.cc",
    "codegen/nest/reducer.cc",
    "compiler/analysis/dataflow.cc",
    "compiler/analysis/reorder.cc",
    "compiler/analysis/steps.cc",
    "compiler/ir/instruction.cc",
    "compiler/passes/inline_calls.cc",
    "compiler/passes/layouts.cc",
    "compiler/passes/legalize_check.cc",
    "compiler/passes/synchronous.cc",
    "compiler/plan/contraction.cc",
    "compiler/plan/cost.cc",
    "compiler/plan/kernel.cc",
]

ROOMS = ["layout", "compiler", "codegen", "runtime", "tools"]
CHAIN = 4  # comparisons in one statement
ROWS = 4   # of a table in one file

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
CASE = re.compile(r"\bswitch\s*\(|\bcase\s+(\w+::)*k(\w+)\s*:")
COMPARED = re.compile(r"(?:\bis\(|[!=]=\s*)(?:Opcode::)?k(\w+)\b")
ROW = re.compile(r"^\s*\{\{?(?:Opcode::)?k(\w+),", re.M)


def opcodes_of(text):
    return set(re.findall(r"^\s*X\((\w+), \"", text, re.M))


def tells_apart(text, opcodes):
    """How a file tells opcodes apart, as words; empty if it does not."""
    text = COMMENT.sub("", text)
    unqualified = "using enum Opcode" in text
    found = []
    switches, counted = 0, False
    for match in CASE.finditer(text):
        if match.group(0).startswith("switch"):
            counted = False
        elif match.group(2) in opcodes and (match.group(1) == "Opcode::" or (not match.group(1) and unqualified)):
            switches += not counted
            counted = True
    if switches:
        found.append(f"{switches} switch{'es' if switches > 1 else ''} over opcodes")
    named = [m for m in ROW.finditer(text) if m.group(1) in opcodes]
    named = [m for m in named if "Opcode::" in m.group(0) or unqualified]
    if len(named) >= ROWS:
        found.append(f"a table of {len(named)} rows by opcode")
    for statement in re.split(r"[;{}]", text):
        compared = {m.group(1) for m in COMPARED.finditer(statement)} & opcodes
        if len(compared) >= CHAIN:
            found.append(f"a chain of {len(compared)} comparisons with opcodes")
    return found


def scan(root, allowed):
    """(number of files read, findings)"""
    opcodes = opcodes_of((root / "compiler/ir/ops.h").read_text())
    if not opcodes:
        return 0, ["compiler/ir/ops.h: no rows found"]
    findings, needed, count = [], set(), 0
    for room in ROOMS:
        for file in sorted((root / room).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            path = file.relative_to(root).as_posix()
            count += 1
            found = tells_apart(file.read_text(), opcodes)
            if found:
                needed.add(path)
            if found and path not in allowed:
                findings.append(f"{path}: {', '.join(found)}; ask the op table or the access relation instead")
    findings += [f"{path}: tells no opcodes apart any more; take it off the list" for path in sorted(allowed - needed)]
    return count, findings


def self_test():
    """Each file that must be found, and some that must not."""
    rows = 'enum X {};\n#define OPS(X) \\\n  X(Add, "add") \\\n  X(And, "and") \\\n  X(Or, "or") \\\n  X(Dot, "dot")\n'
    wrong = {
        "compiler/a.cc": "switch (i.opcode) {\n  case Opcode::kAdd: return 1;\n}\n",
        "compiler/b.cc": "using enum Opcode;\nswitch (o) {\n  case kAdd:\n  case kDot: break;\n}\n",
        "codegen/c.cc": "bool f = i->is(Opcode::kAdd) || i->is(Opcode::kAnd) ||\n  i->is(Opcode::kOr) || o == Opcode::kDot;\n",
        "runtime/d.h": "Row rows[] = {\n  {Opcode::kAdd, 1},\n  {Opcode::kAnd, 2},\n  {Opcode::kOr, 3},\n  {Opcode::kDot, 4},\n};\n",
        "tools/unneeded.cc": "int x;\n",
    }
    right = {
        "compiler/ir/ops.h": rows,
        "compiler/e.cc": "// switch (o) { case Opcode::kAdd: }\nbool f = i->is(Opcode::kAdd) || i->is(Opcode::kAnd);\n",
        "compiler/f.cc": "switch (c) {\n  case OpClass::kDot: break;\n  case Kind::kAdd: break;\n}\n",
        "layout/g.cc": "switch (c) {\n  case kAdd: break;\n}\n",
        "runtime/named.cc": "switch (o) {\n  case Opcode::kOr: break;\n}\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in (wrong | right).items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = {finding.split(":")[0] for finding in scan(root, {"tools/unneeded.cc", "runtime/named.cc"})[1]}
    for name in sorted(set(wrong) - found):
        print(f"self-test: {name} should have been reported")
    for name in sorted(found & set(right)):
        print(f"self-test: {name} should not have been reported")
    return found == set(wrong)


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(0 if self_test() else 1)
    allowed = {path for paths in ALLOWED.values() for path in paths} | set(OWED)
    count, findings = scan(pathlib.Path(sys.argv[1]).resolve(), allowed)
    print("\n".join(findings + [f"{count} files, {len(allowed)} may tell opcodes apart, {len(findings)} findings"]))
    sys.exit(1 if findings or count == 0 else 0)


if __name__ == "__main__":
    main()
