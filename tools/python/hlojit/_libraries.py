"""Where the package's shared libraries lie."""

from __future__ import annotations

import pathlib

_HERE = pathlib.Path(__file__).resolve().parent


def path(name: str) -> str:
    """The path of libhlojit.so or hlojit_pjrt.so, which are installed beside the package's modules."""
    found = _HERE / name
    if not found.exists():
        raise ImportError(f"{name} is missing from {_HERE}; install the package again")
    return str(found)
