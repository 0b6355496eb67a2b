// Prints this machine's roof as JSON: bandwidth by level of cache and mix of reads and writes, and
// the rate of multiply-adds. The scoreboard asks with --read and --write for one program's mix and
// size.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/roof/roof.h"

namespace {

using hlojit::DType;
using nlohmann::json;

constexpr std::string_view kUsage =
    "usage: roofline [--threads N]                            the whole table\n"
    "       roofline --read BYTES --write BYTES [--threads N] one mix at one size\n"
    "       roofline --flops [--threads N]                    the arithmetic alone\n"
    "With --isa avx2 at most AVX2's loops are measured.\n"
    "Prints JSON; rates are in GB/s and GFLOP/s.\n";

struct Level {
  const char* name;
  int64_t bytes;  // what is measured: half of what the threads' caches of this level hold
};

// Bytes of the cache at `index` of the first core, as Linux sees it (the C library's answer for the
// last level is the sum over sockets that a virtual machine may not have); `otherwise` where it
// says nothing.
int64_t cache_bytes(int index, int64_t otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  int64_t size = 0;
  char unit = 0;
  if (!(file >> size >> unit) || size <= 0) return otherwise;
  return unit == 'M' ? size << 20 : size << 10;
}

std::vector<Level> levels(int threads) {
  const int64_t last = cache_bytes(3, int64_t{32} << 20);
  return {{"L1", cache_bytes(0, 32 << 10) * threads / 2},
          {"L2", cache_bytes(2, 1 << 20) * threads / 2},
          {"L3", last / 2},
          {"DRAM", last * 8}};
}

json bandwidth_row(const hlojit::roof::Bandwidth& rate, int64_t bytes, int threads) {
  return {{"mix", std::to_string(rate.reads) + ":" + std::to_string(rate.writes)},
          {"bytes", bytes},
          {"threads", threads},
          {"normal", rate.normal / 1e9},
          {"streaming", rate.streaming / 1e9}};
}

json flops_rows(int threads) {
  json rows = json::array();
  for (const DType type : {DType::kF32, DType::kF64, DType::kBF16, DType::kS8}) {
    rows.push_back({{"type", hlojit::dtype_name(type)},
                    {"threads", threads},
                    {"rate", hlojit::roof::measure_flops(type, threads) / 1e9}});
  }
  return rows;
}

json whole_table(int most_threads) {
  constexpr int kMixes[][2] = {{1, 0}, {2, 0}, {4, 0}, {0, 1}, {1, 1}, {2, 1}, {3, 1},
                               {4, 1}, {1, 2}, {1, 3}, {2, 3}, {3, 2}, {4, 3}};
  json table = {{"isa", hlojit::roof::isa()}, {"bandwidth", json::array()}, {"flops", json::array()}};
  for (int threads = 1; threads <= most_threads;
       threads = threads < most_threads ? std::min(2 * threads, most_threads) : threads + 1) {
    for (const Level& level : levels(threads)) {
      for (const auto [reads, writes] : kMixes) {
        json row =
            bandwidth_row(hlojit::roof::measure_bandwidth(reads, writes, level.bytes, threads), level.bytes, threads);
        row["level"] = level.name;
        table["bandwidth"].push_back(row);
      }
    }
    for (const json& row : flops_rows(threads)) table["flops"].push_back(row);
  }
  return table;
}

// The number that `text` is, or -1.
int64_t number(const char* text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text, &end, 10);
  return *text != '\0' && *end == '\0' ? value : -1;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  int64_t read = 0, written = 0;
  bool flops_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--flops") {
      flops_only = true;
      continue;
    }
    if (option == "--isa" && i + 1 < argc) {
      const std::string_view isa = argv[++i];
      if (isa == "avx2") hlojit::roof::limit_to_avx2();
      if (isa == "avx2" || isa == "native") continue;
    }
    const int64_t value = number(i + 1 < argc ? argv[++i] : "");
    if (option == "--threads" && value >= 1 && value <= 1024) {
      threads = static_cast<int>(value);
    } else if (option == "--read" && value >= 0) {
      read = value;
    } else if (option == "--write" && value >= 0) {
      written = value;
    } else {
      std::cerr << kUsage;
      return option == "--help" ? 0 : 2;
    }
  }
  if (flops_only) {
    std::cout << json{{"isa", hlojit::roof::isa()}, {"flops", flops_rows(threads)}} << "\n";
    return 0;
  }
  if (read + written == 0) {
    std::cout << whole_table(threads).dump(1) << "\n";
    return 0;
  }
  hlojit::roof::Roof roof(threads);
  std::cout << json{{"gb_per_s", roof.bandwidth(read, written) / 1e9}, {"threads", threads}} << "\n";
  return 0;
}
