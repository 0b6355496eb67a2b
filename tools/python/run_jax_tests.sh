#!/usr/bin/env bash
# Runs JAX's own tests on hlojit in the cpu's place, and compares what fails with what is known to.
#
#   tools/python/run_jax_tests.sh DIR [FILE...]     DIR: a checkout of JAX at the version that is installed;
#                                                   FILE: e.g. lax_test.py or lax_test.py::LaxTest::testConvert
#
# Uses the python of $PYTHON (default: python3), which must have hlojit[jax], pytest, pytest-xdist,
# pytest-timeout, hypothesis, absl-py and scipy. $WORKERS processes (default 2), $CASES generated cases a test
# (default 1), at most $TIMEOUT seconds a test (default 300).
# Each line of known_differences.txt is a test's id and the reason why it differs from XLA:CPU. Ends with
# status 1 if a test fails that is not listed. --plain before DIR runs on XLA:CPU itself, for comparison.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

plain=no
if [ "${1:-}" = --plain ]; then plain=yes; shift; fi
if [ $# -lt 1 ] || [ ! -d "$1/tests" ]; then
  echo "usage: tools/python/run_jax_tests.sh [--plain] DIR [FILE...]   (DIR holds JAX's tests/)" >&2
  exit 2
fi
directory=$1
shift
python=${PYTHON:-python3}

files=("$@")
if [ ${#files[@]} -eq 0 ]; then
  files=(lax_test.py lax_numpy_test.py lax_numpy_einsum_test.py lax_numpy_indexing_test.py lax_numpy_operators_test.py
         lax_numpy_reducers_test.py lax_numpy_ufuncs_test.py lax_numpy_vectorize_test.py lax_control_flow_test.py
         lax_vmap_test.py lax_vmap_op_test.py lax_autodiff_test.py nn_test.py random_test.py linalg_test.py fft_test.py
         image_test.py lax_scipy_test.py scipy_stats_test.py array_test.py api_test.py python_callback_test.py
         debugging_primitives_test.py pmap_test.py shard_map_test.py custom_partitioning_test.py
         export_test.py shape_poly_test.py)
fi
chosen=()
for f in "${files[@]}"; do
  if [ -e "$directory/tests/${f%%::*}" ]; then chosen+=("tests/$f"); else echo "not in this checkout: $f" >&2; fi
done

report=$(mktemp)
trap 'rm -f "$report"' EXIT
export JAX_PLATFORMS=cpu JAX_NUM_GENERATED_CASES=${CASES:-1}
if [ $plain = no ]; then export HLOJIT_AS_CPU=1; fi
(cd "$directory" && "$python" -m pytest -q -rfE --tb=line -p no:cacheprovider --timeout "${TIMEOUT:-300}" \
  -n "${WORKERS:-2}" "${chosen[@]}") 2>&1 |
  tee "$report" | grep -vE '^(FAILED|ERROR) ' || true

# Ids without pytest's short reasons, the first folder left out.
sed -nE 's#^(FAILED|ERROR) tests/([^ ]+).*#\2#p' "$report" | sort -u > "$report.failed"
grep -vE '^(#|$)' "$here/known_differences.txt" | awk '{print $1}' | sort -u > "$report.known" || true
unexpected=$(comm -23 "$report.failed" "$report.known")
expected=$(comm -12 "$report.failed" "$report.known" | wc -l)
rm -f "$report.failed" "$report.known"
echo "known differences that showed: $expected"
if [ -n "$unexpected" ]; then
  echo "failures that are not listed in known_differences.txt:"
  sed 's/^/  /' <<< "$unexpected"
  exit 1
fi
