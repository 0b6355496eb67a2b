// The machine we compile for: what the host offers, narrowed to the instruction set asked for.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/pipeline.h"

namespace llvm {
class TargetMachine;
class Module;
}  // namespace llvm

namespace hlojit::codegen {

enum class Isa : uint8_t { kAvx2, kAvx512 };

/// A machine description and LLVM's model of it. Immutable; shared by all compilations.
class Target {
 public:
  /// `isa`: "native", "avx2" or "avx512", or a CPU by LLVM's name for it ("znver4"), whose code is the same on every
  /// machine. Code for what this machine lacks can be made and read, not run.
  static const Target& get(std::string_view isa);
  /// The name of a CPU that code is chosen for in another way than for this one, and whose code runs here: what only
  /// machines of another maker are given can be tested on any. "native" if none's does.
  static std::string_view of_another_maker();

  Isa isa() const { return isa_; }
  /// This machine can run the code. Throws Error(kFailed) if not.
  void check_runs_here() const;
  std::string_view isa_name() const { return isa_ == Isa::kAvx512 ? "avx512" : "avx2"; }
  bool has(std::string_view feature) const;  ///< LLVM feature name, e.g. "avx512bf16"
  int vector_bytes() const { return isa_ == Isa::kAvx512 ? 64 : 32; }
  int vector_registers() const { return isa_ == Isa::kAvx512 ? 32 : 16; }
  /// Facts for the passes: vectors, instructions and cache sizes of this machine (of a CPU by name TargetInfo's own).
  TargetInfo info() const;
  /// Multiply-adds of its vectors of floats that begin in a cycle: one where two halves share the units.
  int multiply_adds() const;
  /// CPU name and features as LLVM spells them; key material for caches.
  const std::string& cpu() const { return cpu_; }
  /// One of AMD's, on which what only measuring tells was measured; the others are taken for Intel's.
  bool is_zen() const { return cpu_.starts_with("znver"); }
  const std::string& features() const { return features_; }

  /// A new TargetMachine; `fast` selects FastISel for code that runs once.
  std::unique_ptr<llvm::TargetMachine> machine(bool fast = false) const;
  /// Sets data layout, triple and the per-function attributes (cpu, features, vector width), once.
  void stamp(llvm::Module& module, const llvm::TargetMachine& machine) const;

 private:
  Isa isa_ = Isa::kAvx2;
  bool modelled_ = false;
  std::string cpu_, features_, triple_;
  std::string
      beside_cpu_;  // features that the CPU's name does not tell: LLVM looks a machine up by this text at a time
  std::vector<std::string> enabled_, missing_;  // of the code's features; those of them that this machine lacks
};

}  // namespace hlojit::codegen
