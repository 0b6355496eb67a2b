"""Reads the first line of HLO text: entry parameters, results and the donated parameters."""

import re

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,]*)\](\{[^}]*\})?")


def _arrays(text):
    return [(m[1], tuple(int(d) for d in m[2].split(",") if d)) for m in _ARRAY.finditer(text)]


def signature(text):
    """(parameters, results): lists of (dtype, dims), a leaf each."""
    header = text.split("\n", 1)[0]
    start = header.index("entry_computation_layout={") + len("entry_computation_layout={")
    arrow = header.index("->", start)
    return _arrays(header[start:arrow]), _arrays(header[arrow:])


def donations(text):
    """{result leaf: parameter} of input_output_alias, for flat parameters as JAX prints them."""
    header = text.split("\n", 1)[0]
    if "input_output_alias" not in header:
        return {}
    found = re.findall(r"\{([0-9]*)\}: \(([0-9]+), \{\}", header)
    return {int(leaf or 0): int(parameter) for leaf, parameter in found}
