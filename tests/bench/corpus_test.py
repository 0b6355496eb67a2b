#!/usr/bin/env python3
"""Checks bench/: the programs, their goldens and the manifest fit each other, and the scoreboard reads
work off HLO text correctly. Needs nothing but the standard library.

usage: corpus_test.py [-v]
"""

import ast
import json
import math
import pathlib
import re
import struct
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import hlo_signature  # noqa: E402
import work  # noqa: E402

NPY = {"pred": "|b1", "s8": "|i1", "u8": "|u1", "s16": "<i2", "u16": "<u2", "s32": "<i4", "u32": "<u4",
       "s64": "<i8", "u64": "<u8", "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8"}
TILES = re.compile(r":T\([0-9,]+\)(\([0-9,]+\))*")


def header(path):
    """(dtype, shape) of a .npy file."""
    data = path.read_bytes()
    length, = struct.unpack("<H", data[8:10])
    fields = ast.literal_eval(data[10:10 + length].decode())
    return fields["descr"], fields["shape"]


def text_of(name):
    return (BENCH / "hlo" / f"{name}.hlo").read_text()


class Corpus(unittest.TestCase):
    def setUp(self):
        self.programs = json.loads((BENCH / "golden" / "manifest.json").read_text())["programs"]

    def test_every_file_is_in_the_manifest(self):
        self.assertEqual(sorted(p["hlo"] for p in self.programs),
                         sorted(f"hlo/{f.name}" for f in (BENCH / "hlo").glob("*.hlo")))
        named = {a["file"] for p in self.programs for a in p["inputs"] + p["outputs"]}
        found = {f.relative_to(BENCH).as_posix() for f in (BENCH / "golden").rglob("*.npy")}
        self.assertEqual(named, found)

    def test_arrays_have_the_shapes_of_the_program(self):
        for program in self.programs:
            parameters, results = hlo_signature.signature((BENCH / program["hlo"]).read_text())
            for leaves, files in ((parameters, program["inputs"]), (results, program["outputs"])):
                self.assertEqual(len(leaves), len(files), program["name"])
                for (dtype, dims), file in zip(leaves, files):
                    self.assertEqual(dtype, file["dtype"], file["file"])
                    self.assertEqual((NPY[dtype], dims), header(BENCH / file["file"]), file["file"])

    def test_exact_types_have_no_tolerance(self):
        for program in self.programs:
            for output in program["outputs"]:
                exact = output["dtype"] not in ("f16", "bf16", "f32", "f64")
                self.assertEqual(exact, output["rtol"] == 0 and output["atol"] == 0, output["file"])

    def test_tiled_text_is_the_plain_text_with_tiles(self):
        tiled = [p["name"] for p in self.programs if p["name"].endswith("_tiled")]
        self.assertGreater(len(tiled), 8)
        for name in tiled:
            text = text_of(name)
            self.assertEqual(TILES.sub("", text), text_of(name.removesuffix("_tiled")))
            for dtype, dims, layout in re.findall(r"(f32|bf16)\[(\d+,[\d,]+)\]\{([^}]*)\}",
                                                  text.split("\n", 1)[0]):
                tile = ":T(8,128)(2,1)" if dtype == "bf16" else ":T(8,128)"
                self.assertTrue(layout.endswith(tile), f"{name}: {dtype}[{dims}]{{{layout}}}")

    def test_texts_are_whole_and_name_no_machine(self):
        for path in (BENCH / "hlo").rglob("*.hlo"):
            text = path.read_text()
            self.assertNotIn("{...}", text, path)
            self.assertNotRegex(text, r"source_file|(^|[^\w.])/(home|usr|opt|tmp)/", path)

    def test_the_corpus_stays_small(self):
        size = sum(f.stat().st_size for f in BENCH.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
        self.assertLess(size, 15 << 20)


class Work(unittest.TestCase):
    def test_traffic_counts_operands_and_results_once(self):
        self.assertEqual(work.traffic(text_of("axpy")), (4 + 2 * 96 * 200 * 4, 96 * 200 * 4))
        self.assertEqual(work.traffic(text_of("swish_bf16")), (96 * 200 * 2, 96 * 200 * 2))

    def test_gathered_rows_are_all_that_is_read_of_a_table(self):
        self.assertEqual(work.traffic(text_of("embedding")), (90 * 64 * 4 + 90 * 4, 90 * 64 * 4))
        self.assertEqual(work.traffic(text_of("take_along")), (33 * 4 + 33 * 4, 33 * 4))
        # The window is sliced out, but the whole array is copied around its update.
        self.assertEqual(work.traffic(text_of("dynamic_window"))[0], 33 * 100 * 4 + 2 * 4)

    def test_donated_results_are_not_written(self):
        text = text_of("decode_step")
        self.assertEqual(hlo_signature.donations(text), {1: 1, 2: 2})
        self.assertEqual(work.traffic(text)[1], 2 * 64 * 4)

    def test_operations_of_contractions(self):
        def of(name):
            return work.operations(text_of(name))[0]

        self.assertEqual(of("gemm"), {"f32": 2 * 97 * 130 * 161})
        self.assertEqual(of("batched_matmul"), {"f32": 2 * 5 * 33 * 40 * 50})
        self.assertEqual(of("gemm_bf16"), {"bf16": 2 * 65 * 96 * 130})
        self.assertEqual(of("softmax"), {})
        self.assertEqual(of("fft_1d"), {"f32": int(4 * 7 * 60 * math.log2(60))})
        per_step = 2 * 4 * (20 + 32) * 128
        self.assertEqual(of("lstm"), {"f32": 12 * per_step})
        self.assertEqual(of("rnn_tiny"), {"f32": 50 * 2 * 64 * 64})

    def test_zeros_that_dilate_are_not_multiplied(self):
        text = """HloModule m
ENTRY e {
  x = f32[1,8,8,4] parameter(0)
  w = f32[3,3,4,5] parameter(1)
  ROOT r = f32[1,16,16,5] convolution(x, w), window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f
}
"""
        self.assertEqual(work.operations(text)[0], {"f32": 2 * 16 * 16 * 5 * 9 * 4 // 4})

    def test_operations_of_elements(self):
        # Two reductions, a difference, a quotient, a function of twenty; a maximum for each row.
        self.assertEqual(work.operations(text_of("softmax"))[1], {"f32": 43 * 200 * 24 + 43})
        # What is the same for all elements is computed once; three operations on bits are one.
        text = """HloModule m
ENTRY e {
  x = u32[90] parameter(0)
  three = u32[] constant(3)
  b = u32[90] broadcast(three), dimensions={}
  c = u32[90] multiply(b, b)
  d = u32[90] xor(x, c)
  ROOT r = (u32[90]) tuple(d)
}
"""
        self.assertEqual(work.operations(text)[1], {"f32": 1 + 90 / 3})


if __name__ == "__main__":
    unittest.main()
