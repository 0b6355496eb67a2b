"""Many small vectors and matrices: points, rotations, cameras, triangles, bodies."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_programs.draw import Drawn, argument, described, gradient

TYPES = [np.float32] * 6 + [np.float64]


def unit(v):
    return v * lax.rsqrt(jnp.sum(v * v, -1, keepdims=True) + 1e-3)


def dot(a, b):
    return jnp.sum(a * b, -1)


def multiplied(p, q):
    """Quaternions, w first."""
    pw, px, py, pz = jnp.moveaxis(p, -1, 0)
    qw, qx, qy, qz = jnp.moveaxis(q, -1, 0)
    return jnp.stack([pw * qw - px * qx - py * qy - pz * qz, pw * qx + px * qw + py * qz - pz * qy,
                      pw * qy - px * qz + py * qw + pz * qx, pw * qz + px * qy - py * qx + pz * qw], -1)


def matrix_of(q):
    w, x, y, z = (unit(q)[..., k] for k in range(4))
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    return jnp.stack([jnp.stack(r, -1) for r in rows], -2)


def turned(q, p):
    """Points turned by quaternions, without matrices."""
    u = unit(q)
    t = 2 * jnp.cross(u[..., 1:], p)
    return p + u[..., :1] * t + jnp.cross(u[..., 1:], t)


def euler(a):
    c, s = jnp.cos(a), jnp.sin(a)
    one, zero = jnp.ones_like(c[..., 0]), jnp.zeros_like(c[..., 0])
    z = jnp.stack([c[..., 0], -s[..., 0], zero, s[..., 0], c[..., 0], zero, zero, zero, one], -1)
    x = jnp.stack([one, zero, zero, zero, c[..., 1], -s[..., 1], zero, s[..., 1], c[..., 1]], -1)
    return z.reshape(*a.shape[:-1], 3, 3) @ x.reshape(*a.shape[:-1], 3, 3)


def rodrigues(v):
    angle = jnp.sqrt(dot(v, v) + 1e-6)[..., None, None]
    x, y, z = jnp.moveaxis(v, -1, 0)
    o = jnp.zeros_like(x)
    k = jnp.stack([o, -z, y, z, o, -x, -y, x, o], -1).reshape(*v.shape[:-1], 3, 3) / angle
    return jnp.eye(3, dtype=v.dtype) + jnp.sin(angle) * k + (1 - jnp.cos(angle)) * (k @ k)


def determinant(m):
    return dot(m[..., 0, :], jnp.cross(m[..., 1, :], m[..., 2, :]))


def inverse(m):
    a, b, c = m[..., 0, :], m[..., 1, :], m[..., 2, :]
    columns = [jnp.cross(b, c), jnp.cross(c, a), jnp.cross(a, b)]
    return jnp.stack(columns, -1) / (dot(a, columns[0])[..., None, None] + 9)


def inverse2(m):
    a, b, c, d = m[..., 0, 0], m[..., 0, 1], m[..., 1, 0], m[..., 1, 1]
    return jnp.stack([d, -b, -c, a], -1).reshape(m.shape) / (a * d - b * c + 9)[..., None, None]


def projected(p, m):
    """Points before a camera of 4x4, to pixels; those behind it are left out."""
    h = jnp.concatenate([p, jnp.ones_like(p[..., :1])], -1) @ m.T
    w = jnp.abs(h[..., 3:]) + 0.5
    at = h[..., :2] / w * 100 + 50
    return jnp.where(h[..., 2:3] > 0, at, -1), jnp.all((at > 0) & (at < 100), -1)


def look_at(eye, target):
    f = unit(target - eye)
    s = unit(jnp.cross(f, jnp.array([0, 0, 1], eye.dtype)))
    u = jnp.cross(s, f)
    m = jnp.stack([s, u, -f], -2)
    return jnp.concatenate([m, -(m @ eye[..., None])], -1)


def spheres(o, r, c):
    """The nearest sphere along each ray: its distance and number."""
    away = c[None] - o[:, None]
    along = jnp.einsum("nkc,nc->nk", away, unit(r))
    inside = 0.5 - (dot(away, away) - along * along)
    t = jnp.where(inside > 0, along - jnp.sqrt(jnp.maximum(inside, 1e-6)), 1e9)
    return t.min(1), jnp.argmin(t, 1).astype(jnp.int32)


def triangles(o, r, a, b, c):
    """Möller and Trumbore: every ray with every triangle."""
    e, f = b - a, c - a
    p = jnp.cross(r[:, None], f[None])
    scale = 1 / (dot(e, p) + 9)
    t = o[:, None] - a
    u = dot(t, p) * scale
    q = jnp.cross(t, e[None])
    v, far = dot(r[:, None], q) * scale, dot(f, q) * scale
    return jnp.where((u > 0) & (v > 0) & (u + v < 1) & (far > 0), far, 1e9).min(1)


def barycentric(p, a, b, c):
    v, w, x = b - a, c - a, p - a
    vv, vw, ww, xv, xw = dot(v, v), dot(v, w), dot(w, w), dot(x, v), dot(x, w)
    scale = 1 / (vv * ww - vw * vw + 0.1)
    s, t = (ww * xv - vw * xw) * scale, (vv * xw - vw * xv) * scale
    return jnp.stack([1 - s - t, s, t], -1)


def mesh_normals(p, faces):
    """Of the vertices: those of the faces around each, added up."""
    faces = faces.reshape(-1, 3)
    a, b, c = (p[faces[:, k]] for k in range(3))
    n = jnp.cross(b - a, c - a)
    return unit(jnp.zeros_like(p).at[faces.ravel()].add(jnp.repeat(n, 3, axis=0)))


def scene(p):
    """The signed distance of a scene, each combined smoothly or sharply."""
    ball = jnp.linalg.norm(p - 0.3, axis=-1) - 0.8
    box = jnp.abs(p) - jnp.array([0.5, 0.7, 0.3], p.dtype)
    cube = jnp.linalg.norm(jnp.maximum(box, 0) + 1e-4, axis=-1) + jnp.minimum(box.max(-1), 0)
    ring = jnp.hypot(jnp.hypot(p[..., 0], p[..., 1]) - 0.9, p[..., 2]) - 0.2
    h = jnp.clip(0.5 + 0.5 * (cube - ball) / 0.2, 0, 1)
    return jnp.minimum(cube * (1 - h) + ball * h - 0.2 * h * (1 - h), ring)


def marched(o, r):
    return lax.fori_loop(0, 12, lambda _, t: t + scene(o + t[..., None] * unit(r)), jnp.zeros_like(o[..., 0]))


def n_nearest(a, b):
    far = dot(a, a)[:, None] - 2 * a @ b.T + dot(b, b)
    return lax.top_k(-far, min(4, b.shape[0]))[1]


def gravity(p):
    away = p[None] - p[:, None]
    return (away / (dot(away, away)[..., None] + 0.1) ** 1.5).sum(1)


def bodies(p, v):
    def step(s, _):
        p, v = s
        v = v + 0.001 * gravity(p)
        return (p + 0.01 * v, v), 0.5 * dot(v, v).mean()
    return lax.scan(step, (p, v), None, length=5)


def rigid(q, w, p):
    """Tumbling bodies with positions, thirty steps."""
    inertia = jnp.array([1.0, 2.0, 3.0], q.dtype)

    def step(s, _):
        q, w, p = s
        w = w - 0.01 * jnp.cross(w, inertia * w) / inertia
        pure = jnp.concatenate([jnp.zeros_like(w[..., :1]), w], -1)
        return (unit(q + 0.005 * multiplied(q, pure)), w, p + 0.01 * turned(q, w)), None
    return lax.scan(step, (q, w, p), None, length=30)[0]


def springs(p):
    """Forces along a chain of points, of which both ends feel each."""
    d = p[..., 1:, :] - p[..., :-1, :]
    n = jnp.sqrt(dot(d, d) + 1e-3)[..., None]
    f = d * (n - 1) / n
    return jnp.zeros_like(p).at[..., :-1, :].add(f).at[..., 1:, :].add(-f)


def looked_up(image, p):
    """Bilinear, at points in the unit square."""
    h, w = image.shape[:2]
    at = jax.nn.sigmoid(p[..., :2]) * jnp.array([h - 1.001, w - 1.001], p.dtype)
    low = jnp.floor(at).astype(jnp.int32)
    f = at - low
    i, j, fi, fj = low[..., 0], low[..., 1], f[..., :1], f[..., 1:]
    return ((image[i, j] * (1 - fi) + image[i + 1, j] * fi) * (1 - fj)
            + (image[i, j + 1] * (1 - fi) + image[i + 1, j + 1] * fi) * fj)


def kabsch(a, b):
    """What is needed to align clouds: centred covariances, and how far both are apart."""
    a, b = a - a.mean(-2, keepdims=True), b - b.mean(-2, keepdims=True)
    return jnp.einsum("...ni,...nj->...ij", a, b), jnp.sqrt(((a - b) ** 2).sum(-1).mean(-1))


def skinned(p, bones, weights):
    """Points moved by a mixture of 3x4 matrices."""
    mixed = jnp.einsum("nk,kij->nij", jax.nn.softmax(weights, -1), bones)
    return jnp.einsum("nij,nj->ni", mixed[..., :3], p) + mixed[..., 3]


def sphere_harmonics(p):
    x, y, z = jnp.split(unit(p), 3, axis=-1)
    return jnp.concatenate([jnp.ones_like(x), y, z, x, x * y, y * z, 3 * z * z - 1, x * z, x * x - y * y], -1)


def voxels(p):
    """How many points are in each cell of a grid, and their mean."""
    at = jnp.clip(jnp.floor((p + 2) * 3), 0, 11).astype(jnp.int32)
    cell = (at[..., 0] * 12 + at[..., 1]) * 12 + at[..., 2]
    count = jnp.zeros(1728, p.dtype).at[cell].add(1)
    return jnp.zeros((1728, 3), p.dtype).at[cell].add(p) / jnp.maximum(count, 1)[:, None]


# Of arrays [..., a, b] for any dims in front: (function, what stands in the place of a, b for each argument)
BATCHED = {
    "multiply quaternions": (multiplied, [[4], [4]]), "to matrices": (matrix_of, [[4]]),
    "turn points": (turned, [[4], [3]]), "angles to matrices": (euler, [[3]]), "rodrigues": (rodrigues, [[3]]),
    "cross": (jnp.cross, [[3], [3]]), "normalise": (unit, [[3]]),
    "normalise four": (lambda v: v / jnp.linalg.norm(v, axis=-1, keepdims=True), [[4]]),
    "determinant": (determinant, [[3, 3]]), "inverse": (inverse, [[3, 3]]), "inverse of two": (inverse2, [[2, 2]]),
    "matrices times points": (lambda m, p: jnp.einsum("...ij,...j->...i", m, p), [[3, 3], [3]]),
    "matrices times matrices": (jnp.matmul, [[4, 4], [4, 4]]),
    "congruence": (lambda r, s: jnp.einsum("...ij,...jk,...lk->...il", r, s, r), [[3, 3], [3, 3]]),
    "symmetric part": (lambda m: (m + m.mT) / 2 - jnp.trace(m, axis1=-2, axis2=-1)[..., None, None] * jnp.eye(
        m.shape[-1], dtype=m.dtype) / 3, [[3, 3]]),
    "look at": (look_at, [[3], [3]]), "barycentric": (barycentric, [[3], [3], [3], [3]]), "scene": (scene, [[3]]),
    "march": (marched, [[3], [3]]), "rigid bodies": (rigid, [[4], [3], [3]]), "harmonics": (sphere_harmonics, [[3]]),
    "polar": (lambda p: jnp.stack([jnp.linalg.norm(p, axis=-1), jnp.arctan2(p[..., 1], p[..., 0])], -1), [[3]]),
    "reflect": (lambda v, n: v - 2 * dot(v, unit(n))[..., None] * unit(n), [[3], [3]]),
    "outer": (lambda a, b: a[..., :, None] * b[..., None, :], [[3], [3]]),
    "homogeneous": (lambda m, p: (jnp.concatenate([p, jnp.ones_like(p[..., :1])], -1)[..., None, :] @ m)[..., 0, :3],
                    [[4, 4], [3]]),
    "swap": (lambda p: p[..., [2, 0, 1]] * jnp.array([1, -1, 1], p.dtype), [[3]]),
    "box": (lambda p: (p.min(-2), p.max(-2), (p.max(-2) - p.min(-2)).prod(-1)), [[50, 3]]),
    "boxes overlap": (lambda a, b: jnp.all((jnp.abs(a[..., :3] - b[..., :3]) * 2 < a[..., 3:] + b[..., 3:]), -1),
                      [[6], [6]]),
    "springs": (springs, [[20, 3]]), "align": (kabsch, [[30, 3], [30, 3]]),
    "chain of matrices": (lambda m: lax.associative_scan(jnp.matmul, m * 0.4, axis=-3), [[16, 3, 3]]),
}
# Of N points: (function, shapes for N and a smaller K)
CLOUDS = {
    "project": (projected, lambda n, k: [[n * k, 3], [4, 4]]),
    "spheres": (spheres, lambda n, k: [[n, 3], [n, 3], [k, 3]]),
    "triangles": (triangles, lambda n, k: [[n, 3], [n, 3], [k, 3], [k, 3], [k, 3]]),
    "distances": (lambda a, b: jnp.sqrt(((a[:, None] - b[None]) ** 2).sum(-1) + 1e-3), lambda n, k: [[n, 3], [k, 3]]),
    "nearest": (lambda a, b: jnp.argmin(((a[:, None] - b) ** 2).sum(-1), 1).astype(jnp.int32),
                lambda n, k: [[n, 3], [k, 3]]),
    "neighbours": (n_nearest, lambda n, k: [[n, 3], [k, 3]]),
    "chamfer": (lambda a, b: (lambda d: d.min(0).mean() + d.min(1).mean())(((a[:, None] - b) ** 2).sum(-1)),
                lambda n, k: [[n, 3], [k, 3]]),
    "gravity": (gravity, lambda n, k: [[min(n, 600), 3]]),
    "bodies": (bodies, lambda n, k: [[min(n, 300), 3], [min(n, 300), 3]]),
    "energy": (lambda p: (1 / (((p[None] - p[:, None]) ** 2).sum(-1) + 0.5) ** 3).sum(),
               lambda n, k: [[min(n, 600), 3]]),
    "bilinear": (looked_up, lambda n, k: [[k, k + 3, 3], [n * 4, 2]]),
    "skin": (skinned, lambda n, k: [[n, 3], [k, 3, 4], [n, k]]),
    "voxels": (voxels, lambda n, k: [[n * 8, 3]]),
}


def batched(d):
    name = d.choice(list(BATCHED))
    function, trailing = BATCHED[name]
    each = max(int(np.prod(t)) for t in trailing)
    x = d.sizes(d.choice([1, 1, 2]), max(2, d.elements(200, 200_000) // each))
    # Of some arguments there is but one, for all.
    fronts = [x if k == 0 or d.likely(0.8) else [1] * len(x) for k in range(len(trailing))]
    dtype = d.choice(TYPES)
    if d.likely(0.75):
        return name, function, [argument([*f, *t], dtype) for f, t in zip(fronts, trailing)]
    behind = [tuple(range(len(x), len(x) + len(t))) for t in trailing]
    return (f"{name}, small dims in front", lambda *a: function(*[
        jnp.moveaxis(v, range(len(t)), b) for v, t, b in zip(a, trailing, behind)]),
        [argument([*t, *f], dtype) for f, t in zip(fronts, trailing)])


def cloud(d):
    name = d.choice(list(CLOUDS))
    function, shapes = CLOUDS[name]
    k = d.size(3, 120)
    n = max(8, d.elements(200, 100_000) // k)
    dtype = d.choice(TYPES)
    return name, function, [argument(s, dtype) for s in shapes(n, k)]


def mesh(d):
    n = max(4, d.elements(20, 30_000))
    return "mesh normals", mesh_normals, [argument([n, 3], d.choice(TYPES)), argument([6 * n], np.int32, high=n)]


def geometry(d):
    name, function, arguments = d.choice([batched] * 10 + [cloud] * 6 + [mesh])(d)
    drawn = Drawn(f"{name} {described(arguments)}", function, arguments)
    return gradient(drawn) if d.likely(0.25) else drawn
