"""Reads a program that is one dot or one convolution, for the peers that have a call for just that.

Both come out in one plain form: matrices as [batch, m, k] and [batch, k, n]; images as N, C, spatial, kernels as
O, I, spatial. The permutations say how HLO's arrays get there and how the answer gets back.
"""

import dataclasses
import math
import re

import numpy as np

ROOT = re.compile(r"ROOT \S+ = (\w+)\[([\d,]*)\]\S* (dot|convolution)\((\S+), (\S+)\)(.*)")
PARAMETER = re.compile(r"^  (\S+) = (\w+)\[([\d,]*)\]\S* parameter\((\d)\)", re.MULTILINE)


@dataclasses.dataclass
class Single:
    kind: str  # "dot" or "convolution"
    dtype: str  # of the operands
    left: np.ndarray  # operands in the plain form
    right: np.ndarray
    shape: tuple  # of the result in the plain form
    back: tuple  # permutation from the plain result to HLO's
    dims: tuple  # HLO's shape of the result
    strides: tuple = ()
    dilations: tuple = ()
    low: tuple = ()
    high: tuple = ()
    groups: int = 1

    def answer(self, plain):
        return np.ascontiguousarray(np.transpose(plain.reshape(self.shape), self.back)).reshape(self.dims)


def numbers(text, separator=","):
    return tuple(int(d) for d in text.split(separator) if d)


def _dot(dims, attributes, left, right):
    def axes(key):
        match = re.search(key + r"=\{([\d,]*)\}", attributes)
        return numbers(match[1]) if match else ()

    def plain(array, batch, contracted, contracted_last):
        free = tuple(d for d in range(array.ndim) if d not in batch + contracted)
        size = lambda some: math.prod(array.shape[d] for d in some)
        order = (batch, free, contracted) if contracted_last else (batch, contracted, free)
        return np.ascontiguousarray(array.transpose(sum(order, ())).reshape([size(some) for some in order]))

    left = plain(left, axes("lhs_batch_dims"), axes("lhs_contracting_dims"), True)
    right = plain(right, axes("rhs_batch_dims"), axes("rhs_contracting_dims"), False)
    shape = (left.shape[0], left.shape[1], right.shape[2])
    return dict(left=left, right=right, shape=shape, back=(0, 1, 2), dims=dims)


def _convolution(dims, attributes, left, right):
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", attributes).groups()
    window = re.search(r"window=\{([^}]*)\}", attributes)[1]
    rank = len(dims) - 2

    def field(key, otherwise):
        match = re.search(rf"\b{key}=(\S+)", window)
        return match[1].split("x") if match else [otherwise] * rank

    if set(field("lhs_dilate", "1")) != {"1"} or "rhs_reversal" in window or "batch_group_count" in attributes:
        return None
    order = lambda label, first: tuple(label.index(c) for c in first + "012"[:rank])
    paddings = [numbers(pair, "_") for pair in field("pad", "0_0")]
    groups = re.search(r"feature_group_count=(\d+)", attributes)
    to_plain = order(labels[2], "bf")
    return dict(left=np.ascontiguousarray(left.transpose(order(labels[0], "bf"))),
                right=np.ascontiguousarray(right.transpose(order(labels[1], "oi"))),
                shape=tuple(dims[d] for d in to_plain), back=tuple(np.argsort(to_plain)), dims=dims,
                strides=tuple(map(int, field("stride", "1"))), dilations=tuple(map(int, field("rhs_dilate", "1"))),
                low=tuple(p[0] for p in paddings), high=tuple(p[1] for p in paddings),
                groups=int(groups[1]) if groups else 1)


def single(case):
    """The one operation of a program whose parameters it takes as they are, or None."""
    entry = case.text[case.text.index("\nENTRY"):]
    root = ROOT.search(entry)
    parameters = {name: int(number) for name, _, _, number in PARAMETER.findall(entry)}
    if not root or len(case.arrays) != 2 or root[4] not in parameters or root[5] not in parameters:
        return None
    operands = [case.arrays[parameters[root[4]]], case.arrays[parameters[root[5]]]]
    dtype = next(dtype for name, dtype, _, _ in PARAMETER.findall(entry) if name == root[4])
    read = _dot if root[3] == "dot" else _convolution
    fields = read(numbers(root[2]), root[6], *operands)
    return fields and Single(kind=root[3], dtype=dtype, **fields)
