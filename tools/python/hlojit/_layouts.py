"""Layouts that JAX programs ask for their parameters and results (jax.experimental.layout).

They stand on @main as mhlo.layout_mode, which jaxlib's conversion to HLO leaves out. So they are read off the MLIR
and sent along as frontend attributes of the module, under the names that XLA has for them.
"""

from __future__ import annotations

_MODE = "mhlo.layout_mode"
_DEFAULT = "default"


def _modes(attributes) -> str:
    """A mode an array, joined by semicolons; empty if none is asked for."""
    modes = [a[_MODE].value if _MODE in a else _DEFAULT for a in attributes]
    return ";".join(modes) if any(m != _DEFAULT for m in modes) else ""


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def attributes(program: bytes) -> bytes:
    """What an HloModuleProto of the program lacks, to be put behind its bytes; empty for most programs."""
    if _MODE.encode() not in program:
        return b""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    with mlir.make_ir_context() as context:
        try:
            module = stablehlo.deserialize_portable_artifact(context, program)
        except Exception:  # text, or bytecode of no version
            module = ir.Module.parse(program)
        main = next(f for f in module.body.operations
                    if f.operation.name == "func.func" and f.sym_name.value == "main")
        found = [(name, _modes(main.attributes[key]) if key in main.attributes else "")
                 for name, key in (("arg_layout_modes", "arg_attrs"), ("out_layout_modes", "res_attrs"))]
    entries = b"".join(_field(1, _field(1, name.encode()) + _field(2, modes.encode())) for name, modes in found if modes)
    return _field(19, entries) if entries else b""
