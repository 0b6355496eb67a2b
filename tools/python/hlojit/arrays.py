"""What may be given to a program, as the NumPy arrays that hlojit._core reads in place."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

#: Element types of HLO as NumPy has them.
DTYPES: dict[str, np.dtype] = {
    "pred": np.dtype(np.bool_),
    "s8": np.dtype(np.int8), "s16": np.dtype(np.int16), "s32": np.dtype(np.int32), "s64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8), "u16": np.dtype(np.uint16), "u32": np.dtype(np.uint32), "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64), "c128": np.dtype(np.complex128), "bf16": np.dtype(ml_dtypes.bfloat16),
}
for _hlo, _name in {
    "s2": "int2", "u2": "uint2", "s4": "int4", "u4": "uint4", "f4e2m1fn": "float4_e2m1fn",
    "f8e3m4": "float8_e3m4", "f8e4m3": "float8_e4m3", "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu",
}.items():
    if hasattr(ml_dtypes, _name):
        DTYPES[_hlo] = np.dtype(getattr(ml_dtypes, _name))

ShapeFacts = tuple[str, Sequence[int], str]


def as_array(value: object) -> np.ndarray:
    """The value as an array; of arrays, buffers and what speaks DLPack the memory itself."""
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def dtype_of(shape: ShapeFacts, name: str) -> np.dtype:
    """Raises ValueError for an element type that NumPy does not have, with the name of what has it."""
    if shape[0] not in DTYPES:
        raise ValueError(f"{name} is {shape[2]}, and NumPy has no type for {shape[0]}")
    return DTYPES[shape[0]]


def in_order(value: object, shape: ShapeFacts, number: int | None = None) -> np.ndarray:
    """Parameter `number` (None: a constant) as an array in row-major order; the array itself if it lies so already.

    Raises ValueError if its sizes or its element type are not the shape's.
    """
    name = "a constant" if number is None else f"parameter {number}"
    dtype = dtype_of(shape, name)
    _, dims, text = shape
    array = as_array(value)
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        array = array.astype(dtype)  # Python's own have no such type
    if array.dtype != dtype or list(array.shape) != list(dims):
        raise ValueError(f"{name} is {text}, got {array.dtype}{list(array.shape)}")
    return np.require(array, requirements=["C", "A"])


def made_up(shape: ShapeFacts) -> np.ndarray | None:
    """An array to measure with: floats and complex numbers in [-1, 1), else zeros, which are good
    indices; None for types that NumPy does not have."""
    element, dims, _ = shape
    dtype = DTYPES.get(element)
    if dtype is None:
        return None
    array = np.zeros(dims, dtype)
    if element.startswith(("f", "bf", "c")):
        array[...] = np.random.default_rng(0).uniform(-1, 1, array.shape).astype(dtype)
    return array
