// Times HLO files through the C++ API with Google Benchmark, without any process or file in the
// way:
//
//     build/release/bin/hlojit_bench                                    every file of bench/hlo/big
//     build/release/bin/hlojit_bench --benchmark_filter=softmax a.hlo   or of the files given
//
// Beside the time of a call stand GB/s, GFLOP/s and the share of the roof, measured here as well.
// This is the tool for working on a kernel (filters, repetitions, counters); scoreboard.py
// compares.
#include <benchmark/benchmark.h>
#include <hlojit/hlojit.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/roof/roof.h"
#include "layout/dtype.h"

namespace {

namespace fs = std::filesystem;
using hlojit::Buffer;
using hlojit::DType;

// Bits of one element: floats in [0.25, 1), where every function is defined, whole numbers below 8.
uint64_t element_bits(DType type, std::mt19937_64& random) {
  const uint64_t bits = random();
  switch (type) {
    case DType::kF64: return 0x3FD0000000000000 + bits % 0x0020000000000000;
    case DType::kF32: return 0x3E800000 + bits % 0x01000000;
    case DType::kBF16: return 0x3E80 + bits % 0x0100;
    case DType::kF16: return 0x3400 + bits % 0x0800;
    case DType::kPred: return bits % 2;
    default: return bits % 8;
  }
}

// Padding is filled as well; the answers are checked elsewhere.
Buffer random_buffer(const hlojit::Shape& shape, std::mt19937_64& random) {
  Buffer buffer = Buffer::allocate(shape);
  auto* bytes = static_cast<unsigned char*>(buffer.mutable_raw());
  const size_t item = std::clamp(hlojit::dtype_bytes(shape.type), 1, 8);
  for (size_t at = 0; at + item <= buffer.size_bytes(); at += item) {
    const uint64_t bits = element_bits(shape.type, random);
    std::memcpy(bytes + at, &bits, item);
  }
  return buffer;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void time_file(benchmark::State& state, const fs::path& path, hlojit::roof::Roof& roof) try {
  const hlojit::Executable program = hlojit::compile(hlojit::parse(read(path)));
  std::mt19937_64 random(1);
  std::vector<Buffer> inputs;
  for (const hlojit::Shape& shape : program.parameter_shapes()) {
    inputs.push_back(random_buffer(shape, random));
  }
  // `inputs` keeps a share of every buffer, so nothing is donated and every call computes the same.
  // The first calls fill the pool: fresh pages cost more than most programs.
  for (int i = 0; i < 3; ++i) program.run(inputs);
  const auto start = std::chrono::steady_clock::now();
  for (auto unused : state) {
    std::vector<Buffer> results = program.run(inputs);
    benchmark::DoNotOptimize(results.data());
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  const double seconds = elapsed.count() / static_cast<double>(state.iterations());
  const double read = program.io_bytes_read(), written = program.io_bytes_written();
  const DType type = inputs.empty() ? DType::kF32 : inputs[0].shape().type;
  const double least = roof.seconds(static_cast<int64_t>(read), static_cast<int64_t>(written), program.flops(), type);
  state.counters["GB/s"] = (read + written) / seconds / 1e9;
  if (program.flops() > 0) state.counters["GFLOP/s"] = program.flops() / seconds / 1e9;
  state.counters["%roof"] = 100 * least / seconds;
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<fs::path> files(argv + 1, argv + argc);
  if (files.empty()) {
    if (!fs::is_directory("bench/hlo/big")) {
      std::cerr << "hlojit_bench: no bench/hlo/big here; start at the repository's root or name files\n";
      return 2;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator("bench/hlo/big")) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  }
  for (const fs::path& path : files) {
    if (fs::is_regular_file(path)) continue;
    std::cerr << "hlojit_bench: there is no file " << path.string() << "\n";
    return 2;
  }
  hlojit::roof::Roof roof(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  for (const fs::path& path : files) {
    benchmark::RegisterBenchmark(path.stem().c_str(),
                                 [path, &roof](benchmark::State& state) { time_file(state, path, roof); })
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
