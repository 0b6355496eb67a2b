"""hlojit: HLO in, native SIMD code out.

    import hlojit, numpy as np
    twice = hlojit.compile('''
    HloModule twice
    ENTRY e { p = f32[3] parameter(0)  ROOT r = f32[3] add(p, p) }
    ''')
    twice(np.array([1, 2, 3], np.float32))          # array([2., 4., 6.], dtype=float32)

With JAX (the extra hlojit[jax]): hlojit.jit compiles a JAX function, and JAX_PLATFORMS=hlojit runs all of
JAX on hlojit; see hlojit.jax_plugin.
"""

from __future__ import annotations

from hlojit import _core
from hlojit.errors import Diagnostic, Error
from hlojit.program import Executable, Module, compile, load, parse
from hlojit.with_jax import jit

__version__ = _core.version()
__all__ = ["Diagnostic", "Error", "Executable", "Module", "compile", "jit", "load", "parse", "__version__"]
