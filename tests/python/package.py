"""import hlojit: programs as text, arrays in and out, errors, what can be asked of a program."""

import os
import pickle
import tempfile

import numpy as np

import hlojit

TWICE = """HloModule twice
ENTRY e {
  p = f32[3] parameter(0)
  ROOT r = f32[3] add(p, p)
}"""

twice = hlojit.compile(TWICE)
np.testing.assert_array_equal(twice(np.array([1, 2, 3], np.float32)), [2, 4, 6])
assert twice.parameters == ["f32[3]{0}"] and twice.results == ["f32[3]{0}"]
assert twice.cost()["bytes_read"] == 12

try:
    hlojit.parse(TWICE.replace("add(p, p)", "add(p, q)"))
    raise AssertionError("a wrong program was taken")
except hlojit.Error as e:
    assert e.kind == "invalid" and e.diagnostics[0].line == 4 and "^" in str(e)
for wrong in (np.zeros(4, np.float32), np.zeros(3, np.int32)):
    try:
        twice(wrong)
        raise AssertionError("a wrong array was taken")
    except ValueError as e:
        assert "parameter 0" in str(e)

# What NumPy has no type for is named.
BITS = """HloModule bits
ENTRY e {
  x = f32[3] parameter(0)
  p = s1[3] parameter(1)
  ROOT r = s1[3] add(p, p)
}"""
try:
    hlojit.compile(BITS)(np.zeros(3, np.float32), np.zeros(3, np.int8))
    raise AssertionError("an array of a type that NumPy does not have")
except ValueError as e:
    assert str(e) == "parameter 1 is s1[3]{0}, and NumPy has no type for s1", e

# A size that is known at run time only is that of the result.
CUT = """HloModule cut
ENTRY e {
  p = f32[4] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=4] set-dimension-size(p, n), dimensions={0}
  ROOT r = f32[<=4] add(d, d)
}"""
for cut in (hlojit.compile(CUT), hlojit.parse(CUT).evaluate):
    np.testing.assert_array_equal(cut(np.arange(4, dtype=np.float32), np.int32(3)), [0, 2, 4])

# Memory is read where it lies, of whatever shows it: a buffer, DLPack, and what has a type keeps it.
class Tensor:
    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


three = np.array([1, 2, 3], np.float32)
for same in (three, pickle.loads(pickle.dumps(three)), memoryview(three), Tensor(three), [1, 2, 3], (1.0, 2.0, 3.0)):
    np.testing.assert_array_equal(twice(same), [2, 4, 6])
for same in (three, memoryview(three), Tensor(three)):
    seen = hlojit.arrays.in_order(same, ("f32", [3], "f32[3]"), 0)
    assert seen.__array_interface__["data"][0] == three.__array_interface__["data"][0]
for wrong in (memoryview(np.zeros(3)), Tensor(np.zeros(3, np.int32))):
    try:
        twice(wrong)
        raise AssertionError("another type was taken")
    except ValueError as e:
        assert "parameter 0 is f32[3]{0}, got" in str(e), e

# bf16 by ml_dtypes; several results; what lies in another order is read all the same.
import ml_dtypes

both = hlojit.compile("""HloModule both
ENTRY e {
  p = bf16[2,3] parameter(0)
  n = bf16[2,3] negate(p)
  t = bf16[3,2] transpose(p), dimensions={1,0}
  ROOT r = (bf16[2,3], bf16[3,2]) tuple(n, t)
}""")
x = np.arange(6).reshape(3, 2).T.astype(ml_dtypes.bfloat16)
n, t = both(x)
np.testing.assert_array_equal(n, -x)
np.testing.assert_array_equal(t, x.T)

# Strides say how a result lies, but of tiles; parameters in any order.
turned = hlojit.compile("""HloModule turned, entry_computation_layout={(f32[3,1,4]{0,2,1})->(f32[4,1,3]{0,1,2}, f32[3,1,4]{2,1,0:T(2,2)})}
ENTRY e {
  p = f32[3,1,4]{0,2,1} parameter(0)
  d = f32[3,1,4]{2,1,0:T(2,2)} add(p, p)
  t = f32[4,1,3]{0,1,2} transpose(d), dimensions={2,1,0}
  ROOT r = (f32[4,1,3]{0,1,2}, f32[3,1,4]{2,1,0:T(2,2)}) tuple(t, d)
}""")
x = np.arange(12, dtype=np.float32).reshape(3, 1, 4)
for same in (x, np.asfortranarray(x), np.repeat(x, 2, 2)[:, :, ::2], np.zeros(13, np.uint8)):
    if same.dtype == np.uint8:  # at an odd address
        same = np.concatenate([same[:1], x.view(np.uint8).ravel()])[1:].view(np.float32).reshape(x.shape)
    t, d = turned(same)
    np.testing.assert_array_equal(t, 2 * x.transpose(2, 1, 0))
    np.testing.assert_array_equal(d, 2 * x)
    assert t.strides[::2] == (4, 16) and d.flags.c_contiguous and t.flags.owndata is False
    t[...] = d.T  # ours to write

# Bytes of an executable are one again.
again = hlojit.load(twice.serialize())
np.testing.assert_array_equal(again(np.ones(3, np.float32)), [2, 2, 2])
try:
    hlojit.load(b"something else")
    raise AssertionError("wrong bytes were taken")
except hlojit.Error as e:
    assert e.kind == "input"

# Constants that a printer left out are made up, by the type and sizes that they have.
ELIDED = "HloModule m\nENTRY e {\n  p = s32[2,3] parameter(0)\n  c = s32[2,3] constant({...})\n  ROOT r = s32[2,3] add(p, c)\n}"
counted = hlojit.compile(hlojit.parse(ELIDED, elided=lambda sizes, dtype: np.arange(6, dtype=dtype).reshape(sizes)))
np.testing.assert_array_equal(counted(np.ones((2, 3), np.int32)), [[1, 2, 3], [4, 5, 6]])
for wrong in (None, lambda sizes, dtype: np.zeros(3, dtype)):
    try:
        hlojit.parse(ELIDED, elided=wrong)
        raise AssertionError("a constant without values was taken")
    except (hlojit.Error, ValueError) as e:
        assert "elided" in str(e) or "a constant is s32[2,3]" in str(e), e

# What the compiler makes of a program, in a folder; the kernels alone are not dumped.
with tempfile.TemporaryDirectory() as folder:
    hlojit.compile(TWICE, dump_dir=folder)
    assert {"module.ll", "module.s", "buffers.txt"} < set(os.listdir(folder)), os.listdir(folder)

# The kernels as a graph with times, and as a picture, without a network.
chain = hlojit.parse("""HloModule chain
ENTRY e {
  p = f32[8,64] parameter(0)
  q = f32[64,64] parameter(1)
  d = f32[8,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = (f32[8,64], f32[8,64]) sort(d, p), dimensions={1}, is_stable=true, to_apply={
    a = f32[] parameter(0)
    b = f32[] parameter(1)
    c = f32[] parameter(2)
    h = f32[] parameter(3)
    ROOT l = pred[] compare(a, b), direction=LT
  }
  ROOT r = f32[8,64] get-tuple-element(s), index=1
}""")
assert [n.name for n in chain.graph()] == ["p", "q", "d", "s"]
assert [n.operands for n in chain.graph()] == [(), (), (0, 1), (2, 0)]
timed = [n for n in chain.profile() if n.seconds is not None]
assert len(timed) >= 2 and all(n.seconds > 0 and n.bytes_written > 0 for n in timed), timed
svg = chain._repr_svg_()
assert svg.startswith("<svg") and "f32[8,64]" in svg and " us, " in svg and "http://www.w3.org/2000/svg" in svg
