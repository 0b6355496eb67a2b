"""What JAX programs ask of their parameters and results: layouts (jax.experimental.layout) and memories.

That stands on @main as mhlo.layout_mode and mhlo.memory_kind, which jaxlib's conversion to HLO leaves out. So it is
read off the MLIR and sent along as frontend attributes of the module; those of layouts have XLA's names.
"""

from __future__ import annotations

# Frontend attribute: where the list is, what is asked there of an array, and what that is if nothing is said.
_ASKED = {
    "arg_layout_modes": ("arg_attrs", "mhlo.layout_mode", "default"),
    "out_layout_modes": ("res_attrs", "mhlo.layout_mode", "default"),
    "out_memory_kinds": ("res_attrs", "mhlo.memory_kind", "device"),
}


def _answers(attributes, name: str, usual: str) -> str:
    """One an array, joined by semicolons; empty if nothing is asked for."""
    answers = [a[name].value if name in a else usual for a in attributes]
    return ";".join(answers) if any(a != usual for a in answers) else ""


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
    if not any(name.encode() in program for _, name, _ in _ASKED.values()):
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
        found = [(attribute, _answers(main.attributes[key], name, usual) if key in main.attributes else "")
                 for attribute, (key, name, usual) in _ASKED.items()]
    entries = b"".join(_field(1, _field(1, attribute.encode()) + _field(2, answers.encode()))
                       for attribute, answers in found if answers)
    return _field(19, entries) if entries else b""
