#!/usr/bin/env bash
# Brings a Debian 12 machine to a built hlojit: installs the packages that are missing, configures and
# builds the release preset. Safe to run again and again; says nothing when there is nothing to do.
#
#   tools/setup.sh            packages and build/release/bin/hlojit
#   tools/setup.sh --peers    also the optional peers: oneDNN, and from PyPI jaxlib, IREE, ... in build/venv
#   tools/setup.sh --sanitizers   also what the presets asan and tsan link
set -euo pipefail
cd "$(dirname "$0")/.."

# Everything that the build, the tests and the demo use, also what most machines have anyway.
# binutils and the C++ library's headers come with the compiler.
packages=(
  ca-certificates git python3 python3-venv        # tools/, tests/ and bench/ scripts; the peers' venv
  cmake ninja-build clang-19 lld-19 ccache        # the build
  llvm-19-dev zlib1g-dev libzstd-dev libffi-dev libxml2-dev   # code generation, and what LLVM's CMake asks for
  libtbb-dev libhwy-dev libxsimd-dev libopenblas0-pthread   # threads, vectorised sort, vectors, factorisations
  libcli11-dev nlohmann-json3-dev libfmt-dev      # command line, JSON, text
  doctest-dev libmpfr-dev libgmp-dev              # tests: framework, reference for the maths
  clang-format-19                                 # tests: the form of the sources
  libbenchmark-dev                                # benchmarks
)

peers=no
for option in "$@"; do
  case "$option" in
    --peers) peers=yes; packages+=(libdnnl-dev llvm-19) ;;   # llvm-19: llvm-mca
    --sanitizers) packages+=(libclang-rt-19-dev) ;;
    *) echo "usage: tools/setup.sh [--peers] [--sanitizers]" >&2; exit 2 ;;
  esac
done

log=build/setup.log
worked=no
new_packages=no
say() { worked=yes; printf 'setup [%4ds] %s\n' "$SECONDS" "$*"; }

# run COMMAND...: its output goes to the log, the end of which is shown only if it fails.
run() {
  local before
  before=$(wc -l < "$log")
  { printf '$ %s\n' "$*"; "$@"; } >> "$log" 2>&1 < /dev/null && return 0
  tail -n "+$((before + 1))" "$log" | tail -n 60 >&2
  printf 'setup: failed: %s (all of it in %s)\n' "$*" "$log" >&2
  exit 1
}

# run_long WORDS COMMAND...: the same, and says so with WORDS if it takes more than a moment, then how
# far Ninja is, twice a minute.
run_long() {
  local words=$1 job ticks=0
  shift
  (run "$@") &
  job=$!
  trap 'kill $job 2> /dev/null; exit 130' INT TERM
  while kill -0 $job 2> /dev/null; do
    if [ $ticks -eq 5 ]; then say "$words"; fi
    if [ $((ticks++ % 150)) -eq 149 ]; then
      say "$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1)"
    fi
    sleep 0.2
  done
  trap - INT TERM
  wait $job
}

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    echo "setup: not a Debian machine; it needs what these packages hold: ${packages[*]}" >&2
    exit 1
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then return; fi

  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null || ! { [ -t 0 ] || sudo -n true 2> /dev/null; }; then
      printf 'setup: packages are missing. As root, type:\n\n  apt-get update && %s %s\n\n' \
        'apt-get install -y --no-install-recommends' "${missing[*]}" >&2
      exit 1
    fi
    sudo true  # asks for the password now, where it can be seen
    root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  run "${root[@]}" apt-get -q -o Acquire::Retries=3 update
  run "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends "${missing[@]}"
  new_packages=yes
}

build() {
  local tree=build/release
  # CMake remembers what it did not find.
  if [ $new_packages = yes ] || [ ! -f $tree/build.ninja ] || [ CMakePresets.json -nt $tree/build.ninja ]; then
    say "configuring $tree"
    run cmake --preset release
    touch $tree/build.ninja
  fi
  run_long "building $tree (output in $log)" ninja -C $tree
}

install_peers() {
  local venv=build/venv stamp=build/venv/hlojit-peers
  if [ -f $stamp ] && cmp -s $stamp bench/requirements.txt; then return; fi
  say "installing the peers into $venv: $(grep -v '^#' bench/requirements.txt | tr '\n' ' ')"
  if [ ! -x $venv/bin/python ]; then run python3 -m venv $venv; fi
  run $venv/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
  cp bench/requirements.txt $stamp
}

mkdir -p build
: > "$log"
install_packages
build
if [ $peers = yes ]; then install_peers; fi
if [ $worked = yes ]; then say "ready: build/release/bin/hlojit"; fi
