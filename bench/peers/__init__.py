"""The peers of the scoreboard; base.py says what one is."""

import ctypes
import importlib
import platform

from peers.base import Missing

# XLA:CPU first: its answers are what the others are compared with.
MODULES = ["xla", "iree", "onnx", "onednn", "numpy"]


def allow_tiles():
    """Asks Linux for the registers of AMX while there are no other threads: it refuses where one has a small signal
    stack, as libraries give theirs, and whoever asks then goes without."""
    if platform.system() == "Linux" and platform.machine() == "x86_64":
        arch_prctl, request, tile_data = 158, 0x1023, 18
        ctypes.CDLL(None).syscall(arch_prctl, request, tile_data)


def available(threads, isa, names=MODULES):
    """([peer], [sentence about one that cannot be used]) of those named."""
    allow_tiles()
    found, missing = [], []
    for name in [m for m in MODULES if m in names]:
        peer = importlib.import_module(f"peers.{name}").Peer
        try:
            found.append(peer(threads, isa))
        except Missing as reason:
            missing.append(f"{peer.name}: {reason}")
    return found, missing


def environment(threads, isa):
    """Variables that must be set before the process starts, for the libraries that read them when loaded."""
    # OpenBLAS's threads would spin for 20 ms after a call and slow whoever is timed next: by half, on two cores.
    variables = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), "OPENBLAS_THREAD_TIMEOUT": "18"}
    if isa == "avx2":
        # YNNPACK, which XLA:CPU hands products to, takes what the machine has whatever XLA is limited to.
        products = ["DOT", "INDIVIDUAL_DOT", "INDIVIDUAL_CONVOLUTION"]
        without = ",".join(f"-LIBRARY_FUSION_TYPE_{p}" for p in products)
        limits = f"--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type={without}"
        variables |= {"XLA_FLAGS": limits, "ONEDNN_MAX_CPU_ISA": "AVX2",
                      "OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX"}
    return variables
