"""Contractions as einsum writes them, and concatenations with what reads them."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from random_programs.draw import MOST, NUMBERS, Drawn, argument, described, is_float

PRODUCTS = """ij,jk->ik bij,bjk->bik bij,jk->bik ij,kj->ik bhqd,bhkd->bhqk bqhd,bkhd->bhqk bhqk,bkhd->bqhd ij,ij->i
ij,ij->j i,j->ij bi,bj->bij ijk,k->ij ijk,j->ik ijk,i->jk bij,bij->b abc,cd->abd abc,bd->acd abc,ad->dbc ab,bc,cd->ad
bij,bjk,bkl->bil abcd,bd->ac ij,ji-> ijj->i iij->j abc,abd->cd abc,dbc->ad nchw,oc->nohw nhwc,co->nhwo bsd,dhe->bshe
bshe,hed->bsd abij,cbij->ac xyz,xw->wzy""".split()
BEHIND = {"": lambda x: x, "tanh": jnp.tanh, "softmax": lambda x: nn.softmax(x, -1), "plus 1": lambda x: x + 1,
          "sum": lambda x: x.sum(0)}


def ein(d):
    product = d.choice(PRODUCTS)
    operands, result = product.split("->")
    operands = operands.split(",")
    while True:
        size = {c: d.size(1, 128) if d.likely(0.85) else d.randint(1, 4) for c in sorted(set("".join(operands)))}
        largest = max(math.prod(size[c] for c in one) for one in [*operands, result])
        if math.prod(size.values()) < 3e7 * d.share and 200 * d.share < largest < MOST * d.share:
            break
    dtype = d.choice([np.float32] * 6 + [np.float64, jnp.bfloat16, np.int32])
    behind = d.choice(["", "", *BEHIND]) if is_float(dtype) and result else ""
    arguments = [argument([size[c] for c in one], dtype) for one in operands]
    return Drawn(f"ein {product} {behind} {described(arguments)}",
                 lambda *a: BEHIND[behind](jnp.einsum(product, *a)), arguments)


def joins(k, rank):
    """Ways of making one array of several that differ in dim k."""
    def rotated(*a):
        v = jnp.concatenate(a, k)
        return v + jnp.concatenate([lax.slice_in_dim(v, 1, None, axis=k), lax.slice_in_dim(v, 0, 1, axis=k)], k)

    def block(a, *more):
        other = (k + 1) % rank
        return jnp.concatenate([jnp.concatenate([a, a * 3], k), jnp.concatenate([a + 1, a], k)], other)
    return {
        "concatenate": lambda *a: jnp.concatenate(a, k), "rotate": rotated, "block": block,
        "nested": lambda *a: jnp.concatenate([jnp.concatenate(a[:2], k), *a[2:], a[0] * 2], k),
        "ravel": lambda *a: jnp.concatenate([x.ravel() for x in a]), "stack": lambda *a: jnp.stack([a[0], a[0] + 1]),
        "pad": lambda *a: jnp.pad(jnp.concatenate(a, k), [(1, 2)] * rank),
    }


VIEWS = {"": lambda v: v, "flat": jnp.ravel, "transposed": lambda v: v.T, "turned": lambda v: jnp.flip(v, 0),
         "every other": lambda v: v[::2], "cut": lambda v: v[v.shape[0] // 3:]}
READERS = {
    "sum": lambda v: jnp.sum(v, dtype=v.dtype), "max": lambda v: v.max(-1), "columns": lambda v: v.sum(0, dtype=v.dtype),
    "cumsum": lambda v: jnp.cumsum(v, -1, dtype=v.dtype), "argmax": lambda v: jnp.argmax(v, -1).astype(jnp.int32),
    "double": lambda v: v * 2,
}
FLOAT_READERS = {
    "norm": lambda v: v / jnp.sqrt(jnp.sum(v * v) + 1), "softmax": lambda v: nn.softmax(v, -1),
    "variance": lambda v: jnp.var(v, -1), "square": lambda v: v.reshape(-1) @ v.reshape(-1),
}


def cat(d):
    dtype, rank = d.choice(NUMBERS), d.randint(1, 3)
    base, k = d.sizes(rank, d.elements(2000, 150_000)), d.randrange(rank)
    arguments = []
    for _ in range(d.randint(2, 6)):
        part = max(1, int(base[k] * d.choice([1, 1, 0.5, 0.3, 0.1, 0.01])))
        arguments.append(argument([part if j == k else n for j, n in enumerate(base)], dtype))
    ways, readers = joins(k, rank), {**READERS, **(FLOAT_READERS if is_float(dtype) else {})}
    way, view, reader = d.choice(list(ways)), d.choice(["", *VIEWS]), d.choice(list(readers))
    return Drawn(f"cat {way}[{k}] {view} {reader} {described(arguments)}",
                 lambda *a: readers[reader](VIEWS[view](ways[way](*a))), arguments)
