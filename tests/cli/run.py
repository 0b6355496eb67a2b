#!/usr/bin/env python3
"""Runs the command line tests: text files of commands and what they must answer.

usage: run.py --hlojit BINARY --source ROOT FILE.test [--case WORDS]

A file holds cases; each runs in a folder of its own that is thrown away. What stands before the
first case (files, arrays) is made for every case.

    # A remark.
    file NAME                       the indented lines below become the file
      f = f32[] constant(1)
    npy NAME DTYPE 2x3: 1 2 3 ...   writes an array (DTYPE as in the header: <f4, |b1, <u2, ...;
                                    2x3F: Fortran order; `scalar` for no dimensions)

    case What is claimed
    $ hlojit run m.hlo --print      by a shell, in the case's folder; `hlojit` is the binary under test
    exit 0                          0 unless said
    out TEXT                        a line of stdout that contains TEXT, below the lines found so far
    out1 TEXT | err1 TEXT           the first line of stdout or stderr is TEXT; ~REGEX must match it all
    err TEXT                        like out
    out~ REGEX | err~ REGEX         a line that matches somewhere, below the lines found so far
    no-out TEXT | no-err TEXT       nowhere
    quiet                           nothing on stdout
    json {"rc": 0, "msg": "~^in"}   the next line of stdout is JSON with these members (~ is a regex)
    npy-is NAME DTYPE 2x3: 1 2 3    a file of exactly this header and these values
    absent GLOB | present GLOB      files in the case's folder

Every command is also held to what holds for all: no exit code but 0 and 2 to 6; stderr
begins `hlojit: WORD: ` with the code's word, and that line is one line.
"""

import argparse
import ast
import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

WORD = {2: "usage", 3: "unsupported", 4: "invalid", 5: "input", 6: "failed"}
PACK = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q",
        "u8": "Q", "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd", "V1": "B", "V2": "H"}


class Wrong(Exception):
    """A claim that does not hold."""


def array_bytes(dtype, shape, values):
    """A .npy file of version 1.0."""
    fortran = shape.endswith("F")
    dims = [] if shape == "scalar" else [int(d) for d in shape.rstrip("F").split("x")]
    order = "True" if fortran else "False"
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {dims_text(dims)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    byte_order = ">" if dtype[0] == ">" else "<"
    code = PACK[dtype[1:]]
    numbers = [float(v) if code[0] in "efd" else int(v) for v in values]
    data = b"".join(struct.pack(byte_order + code[0], n) for n in numbers)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def dims_text(dims):
    return "(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")"


def read_array(path):
    """(descr, dims, fortran order, values in file order)"""
    raw = path.read_bytes()
    if raw[:8] != b"\x93NUMPY\x01\x00":
        raise Wrong(f"{path.name} is not a .npy file of version 1.0")
    (length,) = struct.unpack("<H", raw[8:10])
    header = ast.literal_eval(raw[10 : 10 + length].decode())
    if (10 + length) % 64:
        raise Wrong(f"{path.name}: its data is not aligned to 64 bytes")
    code = "<" + PACK[header["descr"][1:]][0]
    values = [v for (v,) in struct.iter_unpack(code, raw[10 + length :])]
    return header["descr"], list(header["shape"]), header["fortran_order"], values


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def make(words, line, body, folder):
    """A `file` or `npy` line."""
    name = words[1]
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if words[0] == "file":
        target.write_text("".join(text + "\n" for text in body))
    else:
        _, _, dtype, shape = line.split(":", 1)[0].split()
        target.write_bytes(array_bytes(dtype, shape, line.split(":", 1)[1].split()))


class Case:
    """One case while it runs: its folder and what its last command answered."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.command = None
        self.code = self.expected_code = 0
        self.streams = {"out": [], "err": []}
        self.below = {"out": 0, "err": 0}

    def run(self, command):
        self.settle()
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=240)
        self.command, self.code, self.expected_code = command, done.returncode, 0
        for name, stream in (("out", done.stdout), ("err", done.stderr)):
            self.streams[name] = stream.decode("utf-8", "backslashreplace").splitlines()
            self.below[name] = 0

    def settle(self):
        """Holds the last command to its exit code and to the promises for all commands."""
        if self.command is None:
            return
        if self.code != self.expected_code:
            raise Wrong(f"exit code {self.code}, expected {self.expected_code}")
        if self.code in WORD:
            first = (self.streams["err"] or [""])[0]
            if not re.match(f"hlojit: {WORD[self.code]}: \\S", first):
                raise Wrong(f"stderr begins {first!r} instead of 'hlojit: {WORD[self.code]}: ...'")
        elif self.code != 0:
            raise Wrong(f"exit code {self.code} is not one of 0, 2, 3, 4, 5, 6")

    def claim(self, key, rest):
        if key in ("out", "err", "out~", "err~"):
            name = key.rstrip("~")
            lines = self.streams[name]
            for i in range(self.below[name], len(lines)):
                if re.search(rest, lines[i]) if key[-1] == "~" else rest in lines[i]:
                    self.below[name] = i + 1
                    return
            raise Wrong(f"no such line on std{name}: {rest}")
        if key in ("out1", "err1"):
            first = (self.streams[key[:3]] or [""])[0]
            if not (re.fullmatch(rest[1:], first) if rest[:1] == "~" else rest == first):
                raise Wrong(f"std{key[:3]} begins {first!r}, expected {rest!r}")
        elif key in ("no-out", "no-err"):
            if any(rest in line for line in self.streams[key[3:]]):
                raise Wrong(f"std{key[3:]} contains {rest!r}")
        elif key == "quiet":
            if self.streams["out"]:
                raise Wrong("stdout is not empty")
        elif key == "json":
            self.json(json.loads(rest))
        elif key in ("absent", "present"):
            found = sorted(str(p.relative_to(self.folder)) for p in self.folder.glob(rest))
            if bool(found) != (key == "present"):
                raise Wrong(f"{rest}: {found or 'no such file'}")
        elif key == "npy-is":
            self.array(rest)
        else:
            raise SystemExit(f"unknown line: {key} {rest}")

    def json(self, expected):
        lines = self.streams["out"]
        if self.below["out"] >= len(lines):
            raise Wrong("no further line on stdout")
        line = lines[self.below["out"]]
        self.below["out"] += 1
        try:
            answer = json.loads(line)
        except ValueError:
            raise Wrong(f"not JSON: {line}") from None
        for member, value in expected.items():
            got = answer.get(member)
            if isinstance(value, str) and value[:1] == "~":
                fits = isinstance(got, str) and re.search(value[1:], got)
            else:
                fits = got == value
            if not fits:
                raise Wrong(f"member {member} is {got!r} in {line}")

    def array(self, rest):
        head, values = rest.split(":", 1)
        name, dtype, shape = head.split()
        descr, dims, fortran, got = read_array(self.folder / name)
        expected = [] if shape == "scalar" else [int(d) for d in shape.split("x")]
        if (descr, dims, fortran) != (dtype, expected, False):
            raise Wrong(f"{name} holds {descr} {dims} fortran_order={fortran}")
        wanted = [float(v) for v in values.split()]
        if len(wanted) != len(got) or not all(map(same, wanted, map(float, got))):
            raise Wrong(f"{name} holds {got}")


def blocks_of(lines):
    """(line number, line, indented lines below it) of everything that is not a remark."""
    blocks = []
    for number, line in enumerate(lines, 1):
        if line.startswith("  ") and blocks and blocks[-1][1].startswith("file "):
            blocks[-1][2].append(line[2:])
        elif line.strip() and not line.startswith("#"):
            blocks.append((number, line.rstrip(), []))
    return blocks


def run_case(title, common, blocks, options):
    """None, or what is wrong."""
    with tempfile.TemporaryDirectory(prefix="hlojit-cli-") as name:
        folder = pathlib.Path(name) / "here"
        folder.mkdir()
        programs = pathlib.Path(name) / "bin"
        programs.mkdir()
        (programs / "hlojit").symlink_to(options.hlojit.resolve())
        for room in ("bench", "tests"):
            (folder / room).symlink_to(options.source.resolve() / room)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": name, "LC_ALL": "C.UTF-8"}
        case = Case(folder, environment)
        number = 0
        try:
            for number, line, body in common + blocks:
                words = line.split()
                if words[0] in ("file", "npy"):
                    make(words, line, body, folder)
                elif words[0] == "$":
                    case.run(line[2:])
                elif words[0] == "exit":
                    case.expected_code = int(words[1])
                else:
                    case.claim(words[0], line[len(words[0]) :].strip())
            number = 0
            case.settle()
            return None
        except (Wrong, subprocess.TimeoutExpired, OSError) as wrong:
            shown = [f"FAILED  {title}", f"  $ {case.command}"]
            shown += [f"  {'line ' + str(number) + ': ' if number else ''}{wrong}", f"  exit {case.code}"]
            for stream in ("out", "err"):
                shown += [f"  {stream} | {text[:160]}" for text in case.streams[stream][:20]]
            return "\n".join(shown)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hlojit", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--case", default="")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()

    cases = [("", [])]
    for block in blocks_of(options.file.read_text().splitlines()):
        if block[1].startswith("case "):
            cases.append((block[1][5:], []))
        else:
            cases[-1][1].append(block)
    common = cases.pop(0)[1]
    wrong = count = 0
    for title, blocks in cases:
        if options.case in title:
            count += 1
            failure = run_case(title, common, blocks, options)
            if failure:
                wrong += 1
                print(failure, flush=True)
    print(f"{options.file.name}: {count - wrong} of {count} cases hold")
    sys.exit(1 if wrong or count == 0 else 0)


if __name__ == "__main__":
    main()
