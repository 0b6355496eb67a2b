#!/usr/bin/env python3
"""Checks what bench/ prints: the scoreboard's rows and verdicts, files replaced at once, and which loops of an
assembly text are handed to llvm-mca. Needs nothing but the standard library.

usage: tables_test.py [-v]
"""

import pathlib
import sys
import tempfile
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import mca  # noqa: E402
import table  # noqa: E402

NAMES = ["XLA:CPU", "NumPy"]


def row(name, ours, **peers):
    """A row in which a round of ours took `ours` us, of a peer as said."""
    made = table.Row(name, "order", "", False)
    made.ours = table.Figures([ours, ours, 2 * ours], [3.0], 4_000_000) if ours else None
    made.figures = {"XLA:CPU" if n == "xla" else "NumPy": table.Figures([us], [6.0], None) for n, us in peers.items()}
    made.roof_us, made.bytes = 10.0, 8_000_000
    return made


class Scoreboard(unittest.TestCase):
    def test_the_verdict_is_about_the_best_peer(self):
        self.assertEqual(row("a", 100.0, xla=500.0, numpy=300.0).verdict(), "fastest")
        self.assertEqual(row("a", 100.0, xla=500.0, numpy=110.0).verdict(), "equal to NumPy")
        self.assertEqual(row("a", 100.0, xla=50.0, numpy=300.0).verdict(), "**slower** than XLA:CPU")
        self.assertEqual(row("a", 5.0, xla=50.0).verdict(), "fastest (small)")

    def test_every_line_has_as_many_cells_as_the_heading(self):
        failed = row("c", None)
        failed.problem = "fails: no kernel"
        for line in (row("a", 100.0, xla=500.0), row("b", 100.0), failed):
            self.assertEqual(len(line.cells(NAMES)), len(table.headings(NAMES)), line.name)

    def test_losing_rows_and_means_are_told(self):
        text = table.render([row("a", 100.0, xla=400.0), row("b", 100.0, xla=100.0, numpy=50.0)], NAMES, "head")
        self.assertIn("| order | 2 | 2.00 | 1.41 | 10.00 | 2.00 |", text)
        self.assertIn("Behind the best peer by more than 5 %: b 0.50 (NumPy).", text)

    def test_the_readme_has_a_place_for_each_table(self):
        readme = table.README.read_text()
        for kind in ("scoreboard avx512", "scoreboard avx2", "random shapes"):
            for marker in table.MARKERS:
                self.assertEqual(readme.count(marker.format(kind)), 1, kind)

    def test_a_table_is_replaced_between_its_markers_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            kept, table.README = table.README, pathlib.Path(folder) / "README.md"
            try:
                table.README.write_text("a <!-- random shapes: begin -->old<!-- random shapes: end --> z")
                table.write("new\n", [], types.SimpleNamespace(random_shapes=1, isa="native"))
                self.assertEqual(table.README.read_text(),
                                 "a <!-- random shapes: begin -->\nnew\n<!-- random shapes: end --> z")
                self.assertEqual([f.name for f in pathlib.Path(folder).iterdir()], ["README.md"])
            finally:
                table.README = kept


class Loops(unittest.TestCase):
    ASSEMBLY = "\n".join([
        "kernel:", "\tmovq\t%rdi, %rax", ".LBB0_1:", "\txorl\t%ecx, %ecx", ".LBB0_2:",
        "\tvmovups\t(%rax,%rcx), %zmm0", "\tvaddps\t%zmm0, %zmm0, %zmm1", "\tvmovups\t%zmm1, (%rdx,%rcx)",
        "\taddq\t$64, %rcx", "\tjne\t.LBB0_2", "\tdecq\t%rbx", "\tjne\t.LBB0_1", "\tretq"])

    def test_the_innermost_loop_is_found(self):
        (function, lines), = mca.loops(self.ASSEMBLY)
        self.assertEqual((function, len(lines)), ("kernel", 5))
        self.assertEqual(mca.hottest(self.ASSEMBLY), {"kernel": lines})

    def test_vectors_are_counted_by_what_the_loop_does(self):
        (_, lines), = mca.loops(self.ASSEMBLY)
        self.assertEqual(mca.vectors(lines), ("store", 1))
        self.assertEqual(mca.vectors(lines[:2]), ("load", 1))
        self.assertEqual(mca.vectors(["\tvfmadd231ps\t%zmm1, %zmm2, %zmm3"]), ("multiply-add", 1))


if __name__ == "__main__":
    unittest.main()
