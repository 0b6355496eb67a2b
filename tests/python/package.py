"""import hlojit: programs as text, arrays in and out, errors, what can be asked of a program."""

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

# Bytes of an executable are one again.
again = hlojit.load(twice.serialize())
np.testing.assert_array_equal(again(np.ones(3, np.float32)), [2, 2, 2])
try:
    hlojit.load(b"something else")
    raise AssertionError("wrong bytes were taken")
except hlojit.Error as e:
    assert e.kind == "input"

# A picture of the kernels, without a network.
svg = hlojit.parse(TWICE)._repr_svg_()
assert svg.startswith("<svg") and "f32[3]" in svg and "http://www.w3.org/2000/svg" in svg
