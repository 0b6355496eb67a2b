"""Copies of DLPack tensors: jax.dlpack.from_dlpack(x, copy=True).

jaxlib asks for such a copy in a way that its own bridge to plugins refuses (a buffer that may be written to), so a view
is taken, as without copy=True, and that is copied.
"""

from __future__ import annotations


def install() -> None:
    from jax._src.lib import _jax

    view = _jax.dlpack_managed_tensor_to_buffer

    def to_buffer(tensor, device, stream, copy, *others):
        if not copy or "hlojit" not in device.client.platform_version:
            return view(tensor, device, stream, copy, *others)
        import jax.numpy as jnp

        return jnp.array(view(tensor, device, stream, None, *others), copy=True)

    _jax.dlpack_managed_tensor_to_buffer = to_buffer
