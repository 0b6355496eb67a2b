// Host detection goes by features, never by the CPU's name alone: a virtual machine may hide some.
#include "codegen/target.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include "codegen/number/multiply_add.h"
#include "codegen/options.h"

namespace hlojit::codegen {
namespace {

bool host_has(const llvm::StringMap<bool>& features, llvm::StringRef name) {
  auto it = features.find(name);
  return it != features.end() && it->second;
}

// AVX-512 is only worth its name with the byte/word, doubleword and vector-length parts.
bool good_avx512(const llvm::StringMap<bool>& f) {
  return host_has(f, "avx512f") && host_has(f, "avx512bw") && host_has(f, "avx512dq") && host_has(f, "avx512vl");
}

// What a named CPU may have beyond this machine: no instruction comes of it that is not asked for by name, and by us
// none is. (prefetchw is, of which all that have AVX2 make at least nothing.)
bool is_harmless(llvm::StringRef feature) {
  static const llvm::StringSet<> kNames = {
      "adx",     "aes",       "cldemote", "clflushopt", "clwb",      "clzero", "enqcmd", "fsgsbase", "hreset",
      "invpcid", "movdir64b", "movdiri",  "mwaitx",     "pconfig",   "pku",    "prfchw", "ptwrite",  "rdpid",
      "rdpru",   "rdrnd",     "rdseed",   "rtm",        "serialize", "sgx",    "sha",    "shstk",    "tsxldtrk",
      "uintr",   "vaes",      "waitpkg",  "wbnoinvd",   "x87",       "xsave",  "xsavec", "xsaveopt", "xsaves"};
  return kNames.contains(feature);
}

// StringMap's order is not stable; the text is a cache key.
std::string sorted_list(std::vector<std::string> names) {
  std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, ","));
}

// Tiles are registers that the kernel keeps for a process once it has asked for them.
bool may_use_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

// Size of the data or unified cache of a level as the kernel tells it; sysconf adds up the slices of a
// whole package (256 MiB where 32 can be reached).
int64_t cache_bytes(int level, int64_t fallback) {
  for (int index = 0; index < 8; ++index) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string type, size;
    int found = 0;
    if (!(std::ifstream(folder + "level") >> found) || !(std::ifstream(folder + "type") >> type)) break;
    if (found != level || type == "Instruction" || !(std::ifstream(folder + "size") >> size)) continue;
    char* unit = nullptr;
    int64_t n = std::strtoll(size.c_str(), &unit, 10);
    if (n > 0) return *unit == 'M' ? n << 20 : *unit == 'K' ? n << 10 : n;
  }
  return fallback;
}

// What a program may count on of a level that many cores share, whatever the package has. (Of 480 MB, two cores got 60
// GB/s at 128 MB and 30 at 256; results of 48 MB took 0.84 of the time when they were written past it, of 64 MB 0.64,
// of 32 MB the same.)
constexpr int64_t kSharedLevel = 32 << 20;

}  // namespace

const Target& Target::get(std::string_view isa) {
  static std::mutex mutex;
  static std::map<std::string, Target, std::less<>> known;
  std::lock_guard lock(mutex);
  if (auto it = known.find(isa); it != known.end()) return it->second;

  static bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)once;
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  llvm::StringMap<bool> features = host;
  if (!host_has(features, "avx2") || !host_has(features, "fma") || !host_has(features, "f16c")) {
    throw Error(ErrorKind::kFailed, "this machine has no AVX2 with FMA and F16C, which hlojit needs");
  }
  static const bool tiles = host_has(features, "amx-tile") && may_use_tiles();
  Target t;
  t.modelled_ = isa != "native" && isa != "avx2" && isa != "avx512";
  const bool lacks = isa == "avx512" && !good_avx512(features);
  t.cpu_ = t.modelled_ ? std::string(isa) : llvm::sys::getHostCPUName().str();
  // Code to be read, not run, is that of a machine which is known to have it.
  if (lacks) t.cpu_ = "znver4";
  llvm::SmallVector<llvm::StringRef> named;
  if (llvm::X86::parseArchX86(t.cpu_) != llvm::X86::CK_None) llvm::X86::getFeaturesForCPU(t.cpu_, named);
  if (t.modelled_) {
    if (!llvm::is_contained(named, "avx2") || !llvm::is_contained(named, "fma")) {
      throw Error(ErrorKind::kFailed, "unknown instruction set '" + std::string(isa) +
                                          "'; known: native, avx2, avx512, and LLVM's names of CPUs with AVX2");
    }
    for (auto& feature : features) feature.second = false;
  }
  if (t.modelled_ || lacks) {
    for (llvm::StringRef f : named) features[f] = true;
  }
  t.isa_ = isa != "avx2" && good_avx512(features) ? Isa::kAvx512 : Isa::kAvx2;
  t.triple_ = llvm::sys::getProcessTriple();
  std::vector<std::string> all, other;
  for (const auto& f : features) {
    std::string name = f.getKey().str();
    bool on = f.getValue();
    bool wide = name.starts_with("avx512") || name.starts_with("avx10") || name.starts_with("amx");
    if (t.isa_ == Isa::kAvx2 && wide) on = false;
    if (name.starts_with("amx") && !tiles) on = false;
    // Its instructions have no form for AVX: where LLVM picks one (insertq among packed conditions), each waits for the
    // upper halves of all registers, some 350 cycles.
    if (name == "sse4a") on = false;
    if (on) t.enabled_.push_back(name);
    if (on && !host_has(host, name) && !is_harmless(name)) t.missing_.push_back(name);
    all.push_back((on ? "+" : "-") + name);
    if (on != llvm::is_contained(named, name)) other.push_back(all.back());
  }
  t.features_ = sorted_list(std::move(all));
  t.beside_cpu_ = sorted_list(std::move(other));
  return known.emplace(std::string(isa), std::move(t)).first->second;
}

void Target::check_runs_here() const {
  if (missing_.empty()) return;
  throw Error(ErrorKind::kFailed, fmt::format("this machine has no {}, which code for {} may use",
                                              fmt::join(missing_, ", "), modelled_ ? cpu_ : "AVX-512"));
}

std::string_view Target::of_another_maker() {
  constexpr std::array<std::string_view, 2> kOfAmd = {"znver4", "znver2"}, kOfIntel = {"icelake-server", "haswell"};
  for (std::string_view cpu : get("native").is_zen() ? kOfIntel : kOfAmd) {
    if (get(cpu).missing_.empty()) return cpu;
  }
  return "native";  // a virtual machine may hide what all of them have
}

bool Target::has(std::string_view feature) const {
  return std::find(enabled_.begin(), enabled_.end(), feature) != enabled_.end();
}

int Target::multiply_adds() const {
  if (isa_ == Isa::kAvx2) return cpu_ == "znver1" ? 1 : 2;
  constexpr std::array kOnes = {"znver4", "cannonlake", "icelake-client", "tigerlake", "rocketlake"};
  return llvm::is_contained(kOnes, std::string_view(cpu_)) ? 1 : 2;
}

TargetInfo Target::info() const {
  static const int64_t l1 = cache_bytes(1, 32 << 10);
  static const int64_t l2 = cache_bytes(2, 512 << 10);
  static const int64_t llc = std::min<int64_t>(cache_bytes(3, kSharedLevel), kSharedLevel);
  const TargetInfo any;
  auto cache = [&](int64_t here, int64_t elsewhere) { return modelled_ ? elsewhere : here; };
  return {.vector_bytes = vector_bytes(),
          .vector_registers = vector_registers(),
          .multiply_adds = multiply_adds(),
          .multiplies_bytes = has_fast_instruction(MultiplyAdd::kBytes, *this),
          .multiplies_bfloats = has_fast_instruction(MultiplyAdd::kBfloats, *this),
          .multiplies_tiles = has_fast_instruction(MultiplyAdd::kByteTiles, *this) &&
                              has_fast_instruction(MultiplyAdd::kBfloatTiles, *this),
          .l2_keeps_up = is_zen(),
          .dear_line_ends = isa_ == Isa::kAvx512 && !is_zen(),
          .l1_bytes = cache(l1, any.l1_bytes),
          .l2_bytes = cache(l2, any.l2_bytes),
          .llc_bytes = cache(llc, any.llc_bytes)};
}

std::unique_ptr<llvm::TargetMachine> Target::machine(bool fast) const {
  std::string message;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple_, message);
  if (!target) throw Error(ErrorKind::kFailed, "LLVM has no target for this machine: " + message);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // contraction is ours
  options.EnableFastISel = fast;
  // Above this LLVM would also put instructions in another order after registers are chosen, which processors that look
  // hundreds of instructions ahead do not notice.
  auto level = fast ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Less;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple_, cpu_, beside_cpu_, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, true));
}

void Target::stamp(llvm::Module& module, const llvm::TargetMachine& machine) const {
  if (!module.getTargetTriple().empty()) return;  // it is
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(triple_);
  // Both are needed: sapphirerapids prefers 256 bits by default.
  std::string width = std::to_string(8 * vector_bytes());
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", cpu_);
    f.addFnAttr("target-features", beside_cpu_);
    f.addFnAttr("prefer-vector-width", width);
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

TargetInfo EmitOptions::target_info() const {
  TargetInfo t = target->info();
  if (vector_bytes > t.vector_bytes) {
    t.vector_registers = 32;
    t.multiplies_bytes = t.multiplies_bfloats = t.multiplies_tiles = t.dear_line_ends = true;
  }
  if (vector_bytes) t.vector_bytes = vector_bytes;
  t.keeps_subnormals = strict;
  if (smaller > 1) {  // but not below the least that blocks are made for
    t.smaller = smaller;
    t.l1_bytes = std::max<int64_t>(t.l1_bytes / smaller, 2 << 10);
    t.l2_bytes = std::max<int64_t>(t.l2_bytes / smaller, 4 << 10);
    t.llc_bytes = std::max<int64_t>(t.llc_bytes / smaller, 8 << 10);
  }
  return t;
}

int EmitOptions::vector_size() const { return vector_bytes ? vector_bytes : target->vector_bytes(); }

}  // namespace hlojit::codegen
