#!/usr/bin/env python3
"""Keeps the arrow of knowledge: layout <- compiler <- codegen <- runtime <- tools, bench, tests.

Reads every #include line of the project and reports each one that points the wrong way: a room that
knows a later room, a part of the compiler that knows a later part, LLVM outside codegen, TBB outside
the runtime, and anything but the standard library behind a public header. Also reports headers
without `#pragma once` and includes that name no file.

usage: includes.py ROOT      exit code 1 and a line per finding if there is any
       includes.py --self-test
"""

import pathlib
import re

import check

# What each folder may include, besides itself. The longest prefix of a file's path is its folder.
LAYOUT = ["layout"]
IR = LAYOUT + ["compiler/ir"]
COMPILER = LAYOUT + ["compiler"]
CODEGEN = COMPILER + ["codegen"]
RUNTIME = CODEGEN + ["runtime", "hlojit"]
MAY_KNOW = {
    "layout": [],
    "compiler/ir": LAYOUT + ["compiler/math"],  # literals are read and rounded by the one conversion
    "compiler/verify": IR,
    "compiler/text": IR + ["compiler/verify"],  # a result's shape may be left out and inferred
    "compiler/proto": IR + ["compiler/verify", "compiler/text"],  # attributes are kept as text
    "compiler/math": LAYOUT,
    "compiler/eval": IR + ["compiler/math"],
    "compiler": COMPILER,
    "codegen": COMPILER,
    "runtime/include": LAYOUT + ["hlojit"],
    "runtime": RUNTIME,
    "tools": RUNTIME + ["bench/roof"],
    "bench/roof": LAYOUT,
    "bench": RUNTIME,
    "tests/layout": LAYOUT,
    "tests/compiler": COMPILER,
    "tests/codegen": CODEGEN,
    "tests/bench": LAYOUT + ["bench/roof"],
    "tests": RUNTIME,
}

# Headers of other projects, and where alone they may be seen.
FOREIGN = [
    (re.compile(r"^(llvm|llvm-c|clang)/"), ["codegen", "tests/codegen"]),
    (re.compile(r"^(oneapi/)?tbb(/|\.h)"), ["runtime", "tests/runtime"]),
    (re.compile(r"^oneapi/dnnl/"), ["bench/peers"]),
    (re.compile(r"^xsimd/"), ["runtime", "compiler/math", "tests"]),
    (re.compile(r"^hwy/"), ["runtime"]),
    (re.compile(r"^CLI/"), ["tools"]),
    (re.compile(r"^nlohmann/"), ["tools", "runtime", "bench", "tests"]),
    (re.compile(r"^fmt/"), ["compiler", "codegen", "runtime", "tools", "bench", "tests"]),
    (re.compile(r"^(doctest/|mpfr\.h|gmp\.h)"), ["tests"]),
    (re.compile(r"^benchmark/"), ["bench"]),
    (re.compile(r"^(nanobind|numpy)/"), ["tools/python"]),
]
STANDARD = re.compile(r"^[a-z0-9_]+$|^(immintrin|xmmintrin|pthread|sched|unistd|fcntl|poll|signal|dlfcn|link|malloc|stddef|stdint)\.h$"
                      r"|^(sys|linux)/\w+\.h$")
# Behind the public headers there is the standard library alone.
PUBLIC = ["runtime/include", "layout"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def under(path, folders):
    return any(path == f or path.startswith(f + "/") for f in folders)


def room_of(path):
    """The entry of MAY_KNOW that a file belongs to."""
    rooms = [room for room in MAY_KNOW if under(path, [room])]
    return max(rooms, key=len) if rooms else None


def resolve(root, path, name):
    """The project's file that an include names, relative to the root; None for other people's."""
    beside = [f"{pathlib.PurePosixPath(path).parent}/"] if under(path, PUBLIC) else []
    for base in ("", "runtime/include/", *beside):
        if (root / (base + name)).is_file():
            return base + name
    return None


def findings_of(root, path):
    text = (root / path).read_text()
    room = room_of(path)
    if room is None:
        yield f"{path}: this folder is not in the table of rooms"
        return
    guarded = "#pragma once" in text or (path.endswith("_c.h") and "#ifndef" in text)  # C99 has no pragma
    if path.endswith(".h") and not guarded:
        yield f"{path}: no #pragma once"
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        line = text.count("\n", 0, match.start(2)) + 1
        at = f'{path}:{line}: includes "{name}"'
        target = "hlojit/version.h" if name == "hlojit/version.h" else resolve(root, path, name)
        if target is not None:
            target = target.removeprefix("runtime/include/")
            if not under(target, [room] + MAY_KNOW[room]):
                yield f"{at}, which {room}/ must not know"
        elif match.group(1) == '"':
            yield f"{at}, which names no file (includes are rooted at the repository)"
        elif STANDARD.match(name):
            continue
        elif under(path, PUBLIC):
            yield f"{at}, but behind public headers there is the standard library alone"
        else:
            homes = [folders for pattern, folders in FOREIGN if pattern.match(name)]
            if not homes:
                yield f"{at}, a library that the table does not have"
            elif not any(under(path, folders) for folders in homes):
                yield f"{at}, which belongs to {', '.join(homes[0])}"


def scan(root):
    """(number of files read, findings)"""
    findings, count = [], 0
    for path, _ in check.sources(root, sorted({r.split("/")[0] for r in MAY_KNOW})):
        if under(path, ["tests/install"]):
            continue  # a project of its own, which sees the installed headers
        findings += findings_of(root, path)
        count += 1
    return count, findings


def self_test():
    """Each line that must be found, and some that must not."""
    wrong = {
        "layout/a.h": '#pragma once\n#include "compiler/ir/b.h"\n',
        "layout/fmt.cc": "#include <fmt/format.h>\n",
        "compiler/ir/b.h": '#pragma once\n#include <llvm/IR/Module.h>\n',
        "compiler/ir/up.cc": '#include "compiler/passes/p.h"\n',
        "compiler/verify/v.cc": '  #  include "compiler/eval/e.h"\n',
        "codegen/c.cc": '#include "runtime/r.h"\n',
        "runtime/r.h": "#pragma once\n#include <llvm/ADT/APInt.h>\n",
        "runtime/include/hlojit/hlojit.h": "#pragma once\n#include <tbb/tbb.h>\n",
        "tools/t.cc": '#include "nowhere.h"\n',
        "tools/u.cc": "#include <boost/any.hpp>\n",
        "tests/layout/x.cc": '#include "codegen/c.h"\n',
        "codegen/once.h": "\n",
    }
    right = {
        "compiler/passes/p.h": '#pragma once\n#include "compiler/ir/module.h"\n#include <vector>\n',
        "compiler/ir/module.h": '#pragma once\n#include "layout/shape.h"\n',
        "compiler/eval/e.h": '#pragma once\n#include "compiler/math/m.h"\n',
        "compiler/math/m.h": '#pragma once\n#include "layout/shape.h"\n#include <cmath>\n',
        "layout/shape.h": "#pragma once\n#include <cstdint>\n",
        "codegen/c.h": '#pragma once\n#include "compiler/passes/p.h"\n#include <llvm/IR/Module.h>\n',
        "runtime/s.cc": '#include <hlojit/hlojit.h>\n#include "codegen/c.h"\n#include <tbb/tbb.h>\n',
        "runtime/include/hlojit/buffer.h": '#pragma once\n#include "layout/shape.h"\n',
        "tools/v.cc": '#include <CLI/CLI.hpp>\n#include "hlojit/version.h"\n#include "runtime/r.h"\n',
    }
    return check.self_test(scan, wrong, right)


if __name__ == "__main__":
    check.main(scan, self_test)
