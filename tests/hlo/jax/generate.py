#!/usr/bin/env python3
"""Writes the text tests of this folder: JAX programs, a file a family of ops, and what XLA:CPU answers.

usage: generate.py [FAMILY...]     needs jax 0.10; without names, all families are written anew

A family is a function of families.py that yields Case(name, function, arguments): FAMILY.hlo gets a section
a case, with the HLO that JAX prints, the arguments as INPUT and XLA:CPU's results as EXPECT. Arguments are
drawn from the family's name, so that one can be written anew alone. What the seeds leave open is kept out:
subnormals, which XLA flushes, conversions from f64 that it rounds twice, sums whose order shows.
"""

import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np

from families import FAMILIES

FOLDER = pathlib.Path(__file__).resolve().parent
HLO_NAME = {"bool": "pred", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
            "complex64": "c64", "complex128": "c128", "float4_e2m1fn": "f4e2m1fn"}
PART = {"complex64": "float32", "complex128": "float64"}


def hlo_name(dtype):
    name = np.dtype(dtype).name
    if name in HLO_NAME:
        return HLO_NAME[name]
    return re.sub("^float8_", "f8", re.sub("^uint", "u", re.sub("^int", "s", name)))


def element(value, name):
    """One number as HLO writes it."""
    if name == "bool":
        return "true" if value else "false"
    if "int" in name:
        return str(int(value))
    if name in PART:
        return f"({element(value.real, PART[name])}, {element(value.imag, PART[name])})"
    if np.isnan(value):
        return "nan"
    return repr(float(value)) if name == "float64" else f"{float(value):.9g}"


def literal(array):
    if array.ndim == 0:
        return element(array[()], array.dtype.name)
    return "{" + ", ".join(literal(np.asarray(row)) for row in array) + "}"


def claim(word, array):
    dims = ",".join(map(str, array.shape))
    return f"// {word}: {hlo_name(array.dtype)}[{dims}] {literal(array)}\n"


def section(case):
    """A case as text, without the header's attributes and the metadata that JAX prints."""
    with jax.enable_x64(True):
        jitted = jax.jit(case.function, keep_unused=True)
        arguments = [jnp.asarray(a) for a in case.arguments]
        lowered = jitted.trace(*arguments).lower(lowering_platforms=(case.platform,))
        text = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True)
        results = [np.asarray(r) for r in jax.tree.leaves(jitted(*arguments))]
    text = re.sub(r"HloModule [^\n]*\n", f"HloModule {case.name}\n", text)
    text = re.sub(r", (metadata|origin)=\{[^\n]*\}(?=\n)", "", text)
    text = re.sub(r"\n\n+", "\n", text).strip() + "\n"
    claims = {"ROWS": case.rows, "ULP": case.ulp, "TOL": case.tol}
    text += "".join(f"// {word}: {value}\n" for word, value in claims.items() if value)
    text += "".join(claim("INPUT", np.asarray(a)) for a in case.arguments)
    return text + "".join(claim("EXPECT", r) for r in results)


def main():
    names = sys.argv[1:] or list(FAMILIES)
    if unknown := set(names) - set(FAMILIES):
        sys.exit(f"generate.py: no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    for name in names:
        sections = [section(case) for case in FAMILIES[name]()]
        (FOLDER / f"{name}.hlo").write_text("// RUN: run\n" + "// -----\n".join(sections))
        print(f"{name}: {len(sections)}")


if __name__ == "__main__":
    main()
