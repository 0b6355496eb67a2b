"""Cycles of the emitted inner loops as llvm-mca counts them, for machines that need not be here: writes mca.md.

    python3 bench/mca.py [--hlojit BINARY] [--write]

`hlojit compile --emit=asm --device-isa avx512` gives a program's assembly; of each of its functions the innermost loop
with the most vector instructions is taken (one without branches inside) and handed to llvm-mca (Debian's llvm-19) for
each CPU. That counts what the execution units and the dependences of one iteration on the next allow; memory is a hit in
the first cache. So the figures are a floor for data in L1, to be held beside the scoreboard's measured ones, and a way
to see without the machine whether a loop got worse. Instructions beyond plain AVX-512 (bf16, VNNI) are in the code if
this machine has them.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
TABLE = BENCH / "mca.md"
CPUS = ["znver4", "sapphirerapids"]
ITERATIONS = 200
PROGRAMS = ["axpy", "gelu", "gelu_tanh", "gelu_erfc", "swish_bf16", "fma_bf16", "elementwise_f16", "elementwise_f64",
            "powers", "trigonometry", "black_scholes", "integers_s32", "quantise_s8", "adam", "transpose_2d",
            "transpose_bf16", "sum_rows", "sum_columns", "argmax", "cumsum", "softmax", "layernorm", "rmsnorm_bf16",
            "cross_entropy", "gemm_512", "gemm_f64", "gemm_bf16", "gemm_s8", "gemv", "gemv_transposed", "conv_3x3",
            "conv_depthwise", "pool_max", "attention_1k", "n_body", "stencil", "normal"]

LABEL = re.compile(r"^(\.?[\w.$]+):")
JUMP = re.compile(r"^\tj\w+\t(\.L\w+)")
VECTOR = re.compile(r"%[yz]mm\d+")


def loops(assembly):
    """[(function, [line])] of the innermost loops: from a label to a jump back to it, no label between."""
    found, function, label, lines = [], "", None, []
    for line in assembly.split("\n"):
        if match := LABEL.match(line):
            if not match[1].startswith(".L"):
                function = match[1]
            label, lines = match[1], []
            continue
        lines.append(line)
        if (jump := JUMP.match(line)) and jump[1] == label:
            found.append((function, list(lines)))
    return found


def instructions(lines):
    return [line for line in lines if line.startswith("\t") and not line.startswith(("\t.", "\t#"))]


def vectors(lines):
    """(what is counted, how many an iteration): multiply-adds of a product, else vectors stored, else loaded."""
    products = sum(bool(re.match(r"\tv(fmadd|dpbf16|dpbusd|pdpbusd|pmaddwd)\w*\t.*[yz]mm", line)) for line in lines)
    stores = sum(bool(re.match(r"\tv\w+\t.*%[xyz]mm\d+, [^%]*\(.*\)(\s*\{.*\})?$", line)) for line in lines)
    loads = sum(bool(re.match(r"\tv\w+\t.*\([^)]*\).*%[xyz]mm\d+", line)) for line in lines)
    if products and not stores and 2 * products > len(lines) // 2:
        return "multiply-add", products
    return ("store", stores) if stores else ("load", loads)


def hottest(assembly):
    """{function: lines of its innermost loop with the most vector instructions}"""
    best = {}
    for function, lines in loops(assembly):
        body = instructions(lines)
        weight = sum(bool(VECTOR.search(line)) for line in body)
        if weight > best.get(function, (0, None))[0]:
            best[function] = (weight, body)
    return {function: body for function, (_, body) in best.items()}


def cycles(mca, body, cpu):
    """(cycles an iteration, what the loop would take if only the execution units counted)"""
    text = subprocess.run([mca, f"-mcpu={cpu}", f"-iterations={ITERATIONS}", "-"], input="\n".join(body) + "\n",
                          capture_output=True, text=True, check=True).stdout
    total = int(re.search(r"Total Cycles:\s+(\d+)", text)[1])
    return total / ITERATIONS, float(re.search(r"Block RThroughput:\s+([\d.]+)", text)[1])


def rows(options):
    for name in PROGRAMS:
        done = subprocess.run([options.hlojit, "compile", str(BENCH / "hlo" / "big" / f"{name}.hlo"), "--emit=asm",
                               "--device-isa", "avx512"], capture_output=True, text=True, check=True)
        for function, body in hottest(done.stdout).items():
            what, count = vectors(body)
            if not count:
                continue
            cells = [name, function, str(len(body)), f"{count} {what}{'s' if count > 1 else ''}"]
            for cpu in CPUS:
                taken, units = cycles(options.mca, body, cpu)
                cells += [f"{taken:.1f}", f"{taken / count:.2f}", f"{100 * units / taken:.0f}"]
            yield "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--hlojit", default=str(BENCH.parent / "build/release/bin/hlojit"))
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--write", action="store_true", help="put the table into bench/mca.md")
    options = parser.parse_args()
    version = subprocess.run([options.mca, "--version"], capture_output=True, text=True, check=True).stdout
    title = " | ".join(f"{cpu}: cycles | a vector | units % " for cpu in CPUS)
    text = "\n".join([
        "# Inner loops by llvm-mca", "",
        "Written by `mca.py`, which says what is counted. Of each kernel the innermost loop with the most vector "
        "instructions, compiled for AVX-512; cycles of an iteration, cycles for each vector that it stores (of a "
        "product: for each multiply-add; if nothing is stored: for each vector loaded), and how much of that time the "
        "busiest execution units need: what is missing to 100 waits for the iteration before.", "",
        f"LLVM {re.search(r'LLVM version ([0-9.]+)', version)[1]}.", "",
        f"| program | kernel | instructions | an iteration | {title}|", "|---|---|--:|--:|" + "--:|--:|--:|" * len(CPUS),
        *rows(options)]) + "\n"
    print(text)
    if options.write:
        beside = TABLE.with_name("mca.md.new")
        beside.write_text(text)
        os.replace(beside, TABLE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
