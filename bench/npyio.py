"""Arrays of HLO's element types in .npy files, by the rules of the command line: floats that NumPy does not
have travel as their raw bits in <u2 or |u1, everything else as NumPy has it."""

import ml_dtypes
import numpy as np

DTYPES = {
    "pred": np.dtype(np.bool_), "s8": np.dtype(np.int8), "s16": np.dtype(np.int16),
    "s32": np.dtype(np.int32), "s64": np.dtype(np.int64), "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16), "u32": np.dtype(np.uint32), "u64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn), "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
RAW = {"bf16": np.uint16, "f8e4m3fn": np.uint8, "f8e5m2": np.uint8}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def name_of(dtype):
    return NAMES[np.dtype(dtype)]


def save(path, array):
    array = np.asarray(array)
    if array.dtype in NAMES and name_of(array.dtype) in RAW:
        array = array.view(RAW[name_of(array.dtype)])
    shape = array.shape  # ascontiguousarray would make a scalar one-dimensional
    np.save(path, np.ascontiguousarray(array).reshape(shape))


def load(path, dtype):
    """Reads `path` as the HLO element type `dtype` ("bf16", "f32", ...)."""
    array = np.load(path)
    return array.view(DTYPES[dtype]) if dtype in RAW else array


def random(dtype, dims, seed):
    """As the command line's --random, in distribution: floats in [-1, 1), integers in [-8, 8]."""
    generator, kind = np.random.default_rng(seed), DTYPES[dtype]
    if dtype == "pred":
        return generator.integers(0, 2, dims).astype(kind)
    if kind.kind in "iu":
        return generator.integers(0 if kind.kind == "u" else -8, 9, dims).astype(kind)
    return np.asarray(generator.uniform(-1, 1, dims), dtype=np.float64).astype(kind)
