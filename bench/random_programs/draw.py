"""What families draw from: sizes, types, arguments; and a program as they draw it."""

import dataclasses
import math
import random
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np

from small_programs import Argument

# No array of a program has more elements: a program that takes longer than milliseconds hides its tails.
MOST = 600_000
FLOATS = [np.float32] * 8 + [jnp.bfloat16, np.float16, np.float64]
NUMBERS = [np.float32] * 6 + [np.float64, np.float64, np.int32, np.int32, jnp.bfloat16, np.float16, np.int8]


@dataclasses.dataclass
class Drawn:
    """A function and its arguments; `text` says in a line what is in it."""
    text: str
    function: Callable
    arguments: list

    def results(self):
        """The shapes of its results. Raises what JAX does about a function that does not fit its arguments."""
        return jax.tree.leaves(jax.eval_shape(self.function, *map(shape_of, self.arguments)))


class Draw(random.Random):
    """Seeded by a text, so that a program is the same everywhere."""

    def __init__(self, seed):
        super().__init__(seed)
        self.share = 1.0  # Of what a family would take for its arrays, this part.

    def size(self, low, high):
        """Between both, small and large ones alike."""
        return round(math.exp(self.uniform(math.log(low), math.log(high))))

    def elements(self, low, high):
        return max(2, round(self.size(low, high) * self.share))

    def sizes(self, rank, elements):
        """`rank` sizes whose product is about that."""
        weights = [self.random() + 0.15 for _ in range(rank)]
        return [max(1, round(elements ** (w / sum(weights)))) for w in weights]

    def likely(self, chance):
        return self.random() < chance


def argument(shape, dtype=np.float32, high=None, positive=False):
    return Argument(tuple(shape), np.dtype(dtype).type, high, positive)


def shape_of(argument):
    return jax.ShapeDtypeStruct(argument.shape, argument.dtype)


def is_float(dtype):
    return jnp.issubdtype(dtype, jnp.floating)


def described(arguments):
    return " ".join(f"{np.dtype(a.dtype).name}{list(a.shape)}" for a in arguments)


def float_results(results):
    return [x for x in jax.tree.leaves(results) if is_float(x.dtype)]


def gradient(drawn, most=3):
    """Its gradient by the first float arguments, of a sum of all float results by weights of their own. Raises if it
    has none. (The weights are arguments, too: of constants a gradient that needs no arguments is one.)"""
    places = tuple(k for k, a in enumerate(drawn.arguments) if is_float(a.dtype))[:most]
    count = len(drawn.arguments)
    weights = [argument(x.shape, jnp.promote_types(x.dtype, jnp.float32)) for x in float_results(drawn.results())]

    def weighted_sum(*a):
        results = float_results(drawn.function(*a[:count]))
        return sum(jnp.sum(x.astype(w.dtype) * w) for x, w in zip(results, a[count:], strict=True))
    return Drawn(f"gradient of {drawn.text}", jax.grad(weighted_sum, argnums=places), [*drawn.arguments, *weights])


def drawn_layer(d, kinds, dtypes, gradients=0.4):
    """A kind, a function of the draw to (function, shapes): [dims] of one of the types, ([dims], n) integers below n,
    or an argument as it is."""
    kind = d.choice(kinds)
    run, shapes = kind(d)
    dtype = d.choice(dtypes)

    def one(s):
        if isinstance(s, Argument):
            return s
        return argument(s[0], np.int32, s[1]) if isinstance(s, tuple) else argument(s, dtype)
    arguments = [one(s) for s in shapes]
    more = f" and {len(arguments) - 9} more" if len(arguments) > 9 else ""
    made = Drawn(f"{kind.__name__} {described(arguments[:9])}{more}", run, arguments)
    return gradient(made, most=4) if d.likely(gradients) else made
