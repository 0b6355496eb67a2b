"""Whole numbers as bits: hashes, codes, packing, tables, registers that shift."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_programs.draw import Drawn, argument, described

UNSIGNED = [np.uint32] * 4 + [np.uint64, np.uint16, np.uint8]
WHOLE = [*UNSIGNED, np.int32, np.int32, np.int16, np.int8, np.int64]


def width(a):
    return a.dtype.itemsize * 8


def rotated(a, n):
    n %= width(a)
    return (a << n) | lax.shift_right_logical(a, jnp.asarray(width(a) - n, a.dtype)) if n else a


def number(a, n):
    """The number in the array's type, cut to its width."""
    return jnp.asarray(np.uint64(n).astype(a.dtype))


def xorshift(a, b, n):
    w = width(a)
    for _ in range(n):
        a = a ^ (a << (13 * w // 32))
        a = a ^ lax.shift_right_logical(a, number(a, max(1, 17 * w // 32)))
        a = a ^ (a << max(1, 5 * w // 32))
    return a + b


def mixed(a, b, n):
    """What murmur and its kin end with."""
    h, half = a, number(a, width(a) // 2)
    for k in range(n):
        h = h ^ lax.shift_right_logical(h, half)
        h = h * number(h, 0x85EBCA6B85EBCA6B + 2 * k)
        h = rotated(h, 13) * number(h, 5) + number(h, 0xE6546B64E6546B64) ^ b
    return h ^ lax.shift_right_logical(h, half)


def sha(a, b, n):
    """Rounds over eight words, in a loop."""
    def step(k, s):
        p, q, r, t, u, v, w, x = s
        choice = (u & v) ^ (~u & w)
        majority = (p & q) ^ (p & r) ^ (q & r)
        first = x + (rotated(u, 26) ^ rotated(u, 21) ^ rotated(u, 7)) + choice + b + k.astype(a.dtype)
        second = (rotated(p, 30) ^ rotated(p, 19) ^ rotated(p, 10)) + majority
        return first + second, p, q, r, t + first, u, v, w
    return sum(lax.fori_loop(0, 8 * n, step, tuple(a + number(a, k) for k in range(8))))


def quarter_rounds(a, b, n):
    """Chacha's, on the columns of blocks of 16 words."""
    x = [a ^ number(a, 77 * k) for k in range(4)]
    for _ in range(n):
        x[0] = x[0] + x[1]
        x[3] = rotated(x[3] ^ x[0], 16)
        x[2] = x[2] + x[3]
        x[1] = rotated(x[1] ^ x[2], 12)
    return jnp.stack(x, -1)


def folded(a, b, n):
    """FNV of each row, element by element."""
    return lax.scan(lambda h, v: ((h ^ v) * number(a, 0x0100000001000193), None),
                    jnp.full(a.shape[:-1], number(a, 0xCBF29CE4)), jnp.moveaxis(a, -1, 0))[0]


def spread(v):
    for s, m in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        v = (v | (v << s)) & jnp.uint32(m)
    return v


def squeezed(v):
    v = v & jnp.uint32(0x55555555)
    for s, m in ((1, 0x33333333), (2, 0x0F0F0F0F), (4, 0x00FF00FF), (8, 0x0000FFFF)):
        v = (v | (v >> s)) & jnp.uint32(m)
    return v


def morton(a, b, n):
    x, y = a.astype(jnp.uint32) & 0xFFFF, b.astype(jnp.uint32) & 0xFFFF
    code = spread(x) | (spread(y) << 1)
    return code, squeezed(code) + squeezed(code >> 1)


def bits_of(a):
    places = jnp.arange(width(a), dtype=a.dtype)
    return lax.shift_right_logical(*jnp.broadcast_arrays(a[..., None], places)) & number(a, 1)


def packed(bits, dtype):
    w = np.dtype(dtype).itemsize * 8
    bits = bits.ravel()[:bits.size // w * w].reshape(-1, w).astype(dtype)
    return (bits << jnp.arange(w, dtype=dtype)).sum(-1, dtype=dtype)


def by_doubling(bits, n):
    """Bits to bytes, a pair of neighbours at a time."""
    v = bits.ravel()[:bits.size // 8 * 8].astype(jnp.uint8)
    for s in (1, 2, 4):
        v = v.reshape(-1, 2)
        v = v[:, 0] | (v[:, 1] << s)
    return v


def swapped_bits(a):
    """The bits in the other order, by halves."""
    w, s = width(a), width(a) // 2
    mask = (1 << w) - 1
    while s:
        mask ^= (mask << s) & ((1 << w) - 1)
        a = (lax.shift_right_logical(a, number(a, s)) & number(a, mask)) | ((a & number(a, mask)) << s)
        s //= 2
    return a


def other_width(a, dtype):
    if np.dtype(dtype).itemsize > a.dtype.itemsize:
        k = np.dtype(dtype).itemsize // a.dtype.itemsize
        a = a.ravel()[:a.size // k * k].reshape(-1, k)
    return lax.bitcast_convert_type(a, dtype)


TABLE = np.array([(lambda c: [c := (c >> 1) ^ (0xEDB88320 if c & 1 else 0) for _ in range(8)][-1])(k)
                  for k in range(256)], np.uint32)
LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


def crc(a, b, n):
    """Of each row, byte by byte."""
    table = jnp.asarray(TABLE)
    rows = lax.bitcast_convert_type(a[..., :64], jnp.uint8).reshape(*a.shape[:-1], -1)

    def step(c, v):
        return table[(c ^ v) & 255] ^ (c >> 8), None
    first = jnp.full(a.shape[:-1], jnp.uint32(2**32 - 1))
    return lax.scan(step, first, jnp.moveaxis(rows, -1, 0).astype(jnp.uint32))[0]


def base64(a, b, n):
    v = a.astype(jnp.uint8).ravel()
    v = v[:v.size // 3 * 3].reshape(-1, 3).astype(jnp.uint32)
    word = (v[:, 0] << 16) | (v[:, 1] << 8) | v[:, 2]
    return jnp.asarray(LETTERS)[(word[:, None] >> jnp.array([18, 12, 6, 0], jnp.uint32)) & 63]


def from_base64(a, b, n):
    table = jnp.zeros(256, jnp.uint8).at[jnp.asarray(LETTERS)].set(jnp.arange(64, dtype=jnp.uint8))
    v = table[a.astype(jnp.uint8).ravel().astype(jnp.int32)].astype(jnp.uint32)
    v = v[:v.size // 4 * 4].reshape(-1, 4)
    word = (v[:, 0] << 18) | (v[:, 1] << 12) | (v[:, 2] << 6) | v[:, 3]
    return jnp.stack([word >> 16, word >> 8, word], -1).astype(jnp.uint8).ravel()


def hexadecimal(a, b, n):
    v = a.astype(jnp.uint8)
    digits = jnp.stack([v >> 4, v & 15], -1)
    return jnp.where(digits < 10, digits + 48, digits + 87).reshape(*a.shape[:-1], -1)


def shift_register(a, b, n):
    def step(_, s):
        return lax.shift_right_logical(s, number(s, 1)) ^ jnp.where((s & number(s, 1)) == 1, b, number(s, 0))
    return lax.fori_loop(0, 20 * n, step, a)


def gray(a, b, n):
    code = a ^ lax.shift_right_logical(a, number(a, 1))
    back, s = code, 1
    while s < width(a):
        back = back ^ lax.shift_right_logical(back, number(a, s))
        s *= 2
    return code, back


def life(a, b, n):
    """The game on packed words: a row of words is a row of cells, which are counted by adders of bits."""
    top = number(a, width(a) - 1)

    def step(_, g):
        left = (g << 1) | lax.shift_right_logical(jnp.roll(g, 1, -1), top)
        right = lax.shift_right_logical(g, number(g, 1)) | (jnp.roll(g, -1, -1) << top)
        ones, twos = left ^ right ^ g, (left & right) | (g & (left ^ right))
        up, down, up2, down2 = (jnp.roll(v, s, 0) for v in (ones, twos) for s in (1, -1))
        side, both = left ^ right, left & right
        s1, c1 = up ^ down ^ side, (up & down) | (side & (up ^ down))
        s2, c2 = up2 ^ down2 ^ both, (up2 & down2) | (both & (up2 ^ down2))
        two, four = s2 ^ c1, c2 | (s2 & c1)
        return two & ~four & (s1 | g)
    return lax.fori_loop(0, n, step, a)


def majority(a, b, n):
    """Of three, bits and numbers; and how far rows of bits are from the first."""
    c = a ^ (b << 1)
    return (a & b) | (c & (a ^ b)), lax.population_count(a ^ a[:1]).sum(-1, dtype=a.dtype)


def euclid(a, b, n):
    def step(s):
        x, y = s
        return jnp.where(y == 0, x, y), jnp.where(y == 0, y, x % jnp.maximum(y, number(y, 1)))
    return lax.while_loop(lambda s: jnp.any(s[1] != 0), step, (jnp.abs(a), jnp.abs(b)))[0]


def varint(a, b, n):
    """How many bytes each takes at seven bits a byte, where it begins, and its bytes."""
    v = lax.bitcast_convert_type(a, {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[a.dtype.itemsize])
    size = ((width(a) - lax.clz(v | number(v, 1)).astype(jnp.int32)) + 6) // 7
    shifts = jnp.arange(0, min(35, width(a)), 7, dtype=v.dtype)
    parts = ((v[..., None] >> shifts) & number(v, 127)).astype(jnp.uint8)
    more = jnp.arange(shifts.size) + 1 < size[..., None]
    return jnp.cumsum(size.ravel().astype(jnp.int32)), jnp.where(more, parts | 128, parts)


def saturated(a, b, n):
    """Sums that stay at the type's ends, and averages that do not overflow."""
    s = a + b
    over = ((a ^ s) & (b ^ s)) < 0
    low, high = (jnp.asarray(getattr(jnp.iinfo(a.dtype), k), a.dtype) for k in ("min", "max"))
    return jnp.where(over, jnp.where(a < 0, low, high), s), (a & b) + ((a ^ b) >> 1)


def bloom(a, b, n):
    """Whether hashes of each are set in a filter that was made of the others."""
    def places(v, k):
        return (mixed(v.ravel().astype(jnp.uint32), jnp.uint32(k), 1) % 4096).astype(jnp.int32)
    filled = jnp.zeros(4096, bool)
    for k in range(2):
        filled = filled.at[places(b, k)].set(True)
    return filled[places(a, 0)] & filled[places(a, 1)]


# (array, another of the type and shape, a number from 1 to 5) -> results
OF_TWO = {
    "xorshift": xorshift, "mixed": mixed, "sha": sha, "quarter rounds": quarter_rounds, "folded": folded,
    "morton": morton, "crc": crc, "base64": base64, "from base64": from_base64, "hexadecimal": hexadecimal,
    "shift register": shift_register, "gray": gray, "life": life, "majority": majority, "euclid": euclid,
    "varint": varint, "saturated": saturated, "bloom": bloom,
    "counts": lambda a, b, n: (lax.population_count(a ^ b), lax.clz(a & b)),
    "trailing zeros": lambda a, b, n: lax.population_count((a & -a) - number(a, 1)),
    "lowest bits": lambda a, b, n: (a & -a, a & (a - number(a, 1)), ~a & (b + number(a, 1))),
    "unpack": lambda a, b, n: bits_of(a), "unpack to bytes": lambda a, b, n: bits_of(a).astype(jnp.uint8),
    "pack": lambda a, b, n: packed(a > b, [np.uint8, np.uint16, np.uint32, np.uint32][n % 4]),
    "pack low": lambda a, b, n: packed((a >> n) & number(a, 1), np.uint32),
    "pack by doubling": lambda a, b, n: by_doubling(a > b, n),
    "unpack and sum": lambda a, b, n: bits_of(a).astype(jnp.int32).sum(0),
    "nibbles": lambda a, b, n: jnp.stack([a & number(a, 15), (a >> 4) & number(a, 15)], -1).reshape(*a.shape[:-1], -1),
    "nibbles to floats": lambda a, b, n: (
        jnp.stack([a & number(a, 15), (a >> 4) & number(a, 15)], -1).astype(jnp.float32) - 8) * 0.1 * n,
    "reversed": lambda a, b, n: swapped_bits(a),
    "bytes swapped": lambda a, b, n: other_width(lax.bitcast_convert_type(a, jnp.uint8)[..., ::-1], a.dtype)
    if a.dtype.itemsize > 1 else swapped_bits(a),
    "as bytes": lambda a, b, n: other_width(a, np.uint8) ^ np.uint8(n),
    "as words": lambda a, b, n: other_width(a, np.uint32) + n,
    "as halves": lambda a, b, n: other_width(a, np.uint16) >> n,
    "as floats": lambda a, b, n: lax.bitcast_convert_type(
        (mixed(a.astype(jnp.uint32), jnp.uint32(n), 1) >> 9) | 0x3F800000, jnp.float32) - 1,
    "shifts": lambda a, b, n: (a << (b & number(a, 7)), a >> (b & number(a, 7)), rotated(a, 3 * n)),
    "variable rotate": lambda a, b, n: (a << (b & number(a, 7))) | lax.shift_right_logical(
        a, number(a, width(a)) - (b & number(a, 7)) & number(a, width(a) - 1)),
    "powers": lambda a, b, n: lax.fori_loop(0, 8, lambda k, s: (
        jnp.where((b >> k.astype(b.dtype)) & number(b, 1) == 1, s[0] * s[1], s[0]), s[1] * s[1]),
        (jnp.ones_like(a), a))[0],
    "long product": lambda a, b, n: (lambda x, y: ((x * y) >> 32).astype(jnp.uint32))(
        a.astype(jnp.uint64), b.astype(jnp.uint64)) if jax.config.jax_enable_x64 else a * b,
    "congruence": lambda a, b, n: lax.scan(
        lambda s, v: ((s * number(a, 1664525) + v),) * 2, b[..., 0], jnp.moveaxis(a, -1, 0))[1],
    "parities": lambda a, b, n: (lax.reduce_xor(a, (a.ndim - 1,)), lax.reduce_or(a, (0,)), lax.reduce_and(b, (0,))),
    "prefix parity": lambda a, b, n: lax.associative_scan(jnp.bitwise_xor, a, axis=-1),
    "compare": lambda a, b, n: (
        jnp.where(a.astype(jnp.uint8) < b.astype(jnp.uint8), a, b), (a > b) ^ (a < number(a, n))),
    "widths": lambda a, b, n: (
        a.astype(jnp.int8).astype(jnp.int32) * b.astype(jnp.uint8).astype(jnp.int32), a.astype(jnp.uint16)),
    "histogram": lambda a, b, n: jnp.zeros(256, jnp.int32).at[mixed(a, b, 1).ravel().astype(jnp.uint8)].add(1),
    "table": lambda a, b, n: jnp.asarray(TABLE)[(a ^ b).ravel().astype(jnp.uint8)] ^ np.uint32(n),
}


def bits(d):
    name, n = d.choice(list(OF_TWO)), d.randint(1, 5)
    dtype = d.choice([np.int32, np.int16, np.int8] if name == "saturated" else WHOLE)
    x = d.sizes(d.choice([1, 2, 2, 3]), d.elements(200, 150_000))
    if len(x) < 2:
        x = [x[0], 1] if d.likely(0.2) else [1, x[0]]
    high = min(np.iinfo(dtype).max, d.choice([100, 2**31]))
    arguments = [argument(x, dtype, high=high), argument(x, dtype, high=high)]
    return Drawn(f"{name} {n} {described(arguments[:1])}", lambda a, b: OF_TWO[name](a, b, n), arguments)
