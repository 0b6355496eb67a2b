#!/usr/bin/env bash
# The main job from end to end: a transformer block as JAX wrote it is read, fused, compiled and run on
# all cores; its result is checked against XLA's and its speed shown beside the machine's limits.
#
#   tools/demo.sh             needs nothing but a Debian 12 machine
#   tools/demo.sh --peers     also runs XLA:CPU beside it (jaxlib from PyPI, into build/venv)
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh "$@"

hlojit=build/release/bin/hlojit
small=bench/hlo/transformer_block.hlo
large=bench/hlo/big/transformer_block.hlo
golden=bench/golden/transformer_block
out=build/demo
title() { printf '\n== %s\n' "$*"; }
# Prints a command as one would type it, and runs it.
show() {
  local line='$' word
  for word; do [[ $word =~ ^[A-Za-z0-9_./=:,^$-]+$ ]] && line+=" $word" || line+=" '$word'"; done
  printf '%s\n' "$line"
  "$@"
}

title "What JAX wrote: $small"
grep -c ' = ' $small | sed 's/$/ instructions, among them:/'
grep -E ' (dot|reduce|exponential)\(' $small | sed 's/^ */  /' | cut -c1-110 | head -n 4

title "Compiled and run on this machine's cores, compared with XLA:CPU's result"
inputs=()
for ((leaf = 0; ; leaf++)); do
  [ -f $golden/in_$leaf.npy ] || break
  inputs+=(--input $golden/in_$leaf.npy)
done
echo "\$ hlojit run $small --input $golden/in_0.npy ... --output-dir $out"
rm -rf $out
$hlojit run $small "${inputs[@]}" --output-dir $out
python3 tools/compare.py transformer_block $out

title "What the compiler made of it"
echo "\$ hlojit opt $small --until=fuse"
$hlojit opt $small --until=fuse > $out/fused.hlo
sed -nE 's/^ *(ROOT )?([^ ]+) = (.*) fusion\(.*"kernel":"([a-z]+)".*/  \2 \4 \3/p' $out/fused.hlo |
  awk '{ printf "  %-12s %-12s %s\n", $1, $2, substr($0, index($0, $3), 90) }'
echo "  The whole of one of them, a kernel of chained reductions:"
kernel=$(sed -nE 's/.*calls=([^,]+),.*"kernel":"rows".*/\1/p' $out/fused.hlo | tail -n 1)
sed -nE "/^%?$kernel /,/^\}/p" $out/fused.hlo | cut -c1-110 | sed 's/^/    /'

title "Its speed, beside the limits of this machine"
show $hlojit bench $small
show $hlojit bench $large

title "Any layout: where element 2,3 lies in 2x2 tiles"
show $hlojit layout 'f32[3,5]{1,0:T(2,2)}' --index 2,3

if [ "${1:-}" = --peers ]; then
  title "XLA:CPU on the same text, in the same run"
  show build/venv/bin/python bench/scoreboard.py --rounds 2 transformer_block
fi
