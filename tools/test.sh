#!/usr/bin/env bash
# Builds what is out of date and runs every test through CTest. Arguments go to CTest: -L unit runs one
# kind (unit, hlo, plans, errors, cli, fuzz, conformance, install, python), -R softmax those whose name matches.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
exec ctest --preset release --parallel "$(nproc)" "$@"
