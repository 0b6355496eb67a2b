#!/usr/bin/env python3
"""Keeps what is known of an op in the op's own places.

A pass that switches over opcodes restates what the op table (compiler/ir/ops.h) or an access relation
(compiler/analysis/access.h) says, and a new op has to find it. So only the files below may tell opcodes
apart: by a switch, by a table with a row an opcode, or by a chain of four or more comparisons. Fails on a
file that does and is not named, and on a name that is no longer needed.

An op whose row and access relation say all there is to say stands in no other file: fails where one of PLACES
is named elsewhere than there.

usage: opcodes.py ROOT      exit code 1 and a line per finding if there is any
       opcodes.py --self-test
"""

import fnmatch
import re

import check

ALLOWED = {
    "an op's operands, attributes and shape": [
        "compiler/verify/*_rules.cc",
        "compiler/verify/verifier.cc",  # which ops come in pairs
    ],
    "what an op means to the oracle": [
        "compiler/eval/*.cc",
    ],
    "which elements an op reads": [
        "compiler/analysis/access*.cc",
    ],
    "what is known of an index that is computed": [
        "compiler/analysis/known_index.cc",
    ],
    "what is known of a float's sign": [
        "compiler/analysis/signs.cc",
    ],
    "which layouts and run-time sizes an op hands on": [
        "compiler/passes/dynamic_rules.cc",
        "compiler/passes/layout_rules.cc",
    ],
    "simpler forms of an op": [
        "compiler/passes/devices.cc",
        "compiler/passes/expand.cc",
        "compiler/passes/simplify_*.cc",
    ],
    "an op as vector code": [
        "codegen/nest/element_emitter.cc",
        "codegen/number/*.cc",
    ],
    "an op as a call of the runtime": [
        "runtime/collectives/*.cc",
        "runtime/pjrt/brief.cc",
        "runtime/steps.cc",
    ],
    "the error an op may make": [
        "tools/error_bound.cc",
        "tools/error_rules.cc",
    ],
    "an op to be drawn": [
        "tools/fuzz/*.cc",
    ],
}

# Opcode's name in text: the files in which it stands, `builder.cc` to make one. As compiler/README.md has it.
PLACES = {
    "gather": [
        "compiler/analysis/access.cc",
        "compiler/builder.cc",
        "compiler/eval/gather.cc",
        "compiler/ir/ops.h",
        "compiler/verify/gather_rules.cc",
    ],
}

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


def scan(root, allowed=tuple(path for paths in ALLOWED.values() for path in paths), places=PLACES):
    """(number of files read, findings)"""
    opcodes = opcodes_of((root / "compiler/ir/ops.h").read_text())
    if not opcodes:
        return 0, ["compiler/ir/ops.h: no rows found"]
    findings, needed, count = [], set(), 0
    for path, file in check.sources(root):
        count += 1
        text = COMMENT.sub("", file.read_text())
        found = tells_apart(text, opcodes)
        allowing = [pattern for pattern in allowed if fnmatch.fnmatch(path, pattern)]
        if found:
            needed.update(allowing)
        if found and not allowing:
            findings.append(f"{path}: {', '.join(found)}; ask the op table or the access relation instead")
        for op, homes in places.items():
            if re.search(rf'\bk{op.title().replace("-", "")}\b|"{op}"', text) and path not in homes:
                findings.append(f"{path}: knows {op}, whose places are {', '.join(homes)}")
    findings += [f"{path}: tells no opcodes apart any more; take it off the list" for path in allowed if path not in needed]
    return count, findings


def self_test():
    """Each file that must be found, and some that must not."""
    rows = 'enum X {};\n#define OPS(X) \\\n  X(Add, "add") \\\n  X(And, "and") \\\n  X(Or, "or") \\\n  X(Not, "not") \\\n  X(Dot, "dot")\n'
    wrong = {
        "compiler/a.cc": "switch (i.opcode) {\n  case Opcode::kAdd: return 1;\n}\n",
        "compiler/b.cc": "using enum Opcode;\nswitch (o) {\n  case kAdd:\n  case kNot: break;\n}\n",
        "codegen/c.cc": "bool f = i->is(Opcode::kAdd) || i->is(Opcode::kAnd) ||\n  i->is(Opcode::kOr) || o == Opcode::kNot;\n",
        "runtime/d.h": "Row rows[] = {\n  {Opcode::kAdd, 1},\n  {Opcode::kAnd, 2},\n  {Opcode::kOr, 3},\n  {Opcode::kNot, 4},\n};\n",
        "tools/unneeded.cc": "int x;\n",
        "tools/stray.cc": "b.op(Opcode::kDot);\n",
    }
    right = {
        "compiler/ir/ops.h": rows,
        "compiler/e.cc": "// switch (o) { case Opcode::kAdd: }\nbool f = i->is(Opcode::kAdd) || i->is(Opcode::kAnd);\n",
        "compiler/f.cc": "switch (c) {\n  case OpClass::kOr: break;\n  case Kind::kAdd: break;\n}\n",
        "layout/g.cc": "switch (c) {\n  case kAdd: break;\n}\n",
        "layout/own.cc": "b.op(Opcode::kDot);\n",
        "runtime/named.cc": "switch (o) {\n  case Opcode::kOr: break;\n}\n",
    }
    scan_these = lambda root: scan(root, ["tools/unneeded.cc", "runtime/n*d.cc"], {"dot": ["compiler/ir/ops.h", "layout/own.cc"]})
    return check.self_test(scan_these, wrong, right)


if __name__ == "__main__":
    check.main(scan, self_test)
