// LLVM modules to callable code: the short pass list, ORC, and one symbol table.
//
//   1. optimise: early-cse + licm + instcombine (the emitters already produce vectors)
//   2. compile to an object; target machines and pass managers are kept from module to module
//   3. link with JITLink into a JITDylib of its own, removed when the handle dies
//
// Process-symbol lookup is off: what JITted code may call is the table of jit.cc and what it is linked with.
// All of it may be called from several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codegen/target.h"

namespace llvm {
class Module;
class LLVMContext;
}  // namespace llvm

namespace hlojit::codegen {

/// An LLVM module with the context that owns its types.
struct IrModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  IrModule();
  explicit IrModule(std::string_view name);
  IrModule(IrModule&&) noexcept;
  IrModule& operator=(IrModule&&) noexcept;
  ~IrModule();
  std::string to_string() const;  ///< LLVM assembly
};

/// A function that linked code may call by name.
struct LinkSymbol {
  std::string name;
  void* address;
};

/// Linked code; unloads it when destroyed. Movable.
class JitCode {
 public:
  JitCode();
  JitCode(JitCode&&) noexcept;
  JitCode& operator=(JitCode&&) noexcept;
  ~JitCode();
  /// Address of a function. Throws Error(kFailed) if there is none.
  void* lookup(std::string_view symbol) const;

 private:
  friend JitCode link_objects(const std::vector<std::string>&, const std::vector<LinkSymbol>&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// How much is done to make code fast.
enum class Effort : uint8_t {
  kFull,   ///< for loops
  kQuick,  ///< FastISel: for what runs once and short
};

/// What the first compilation of a process has to make of LLVM, some 2 ms, is made on a thread of its own while the
/// program is still planned. (A process that compiles axpy: 6.3 ms, 5.7; a layer norm 10.0, 8.9.)
class Preparation {
 public:
  explicit Preparation(const Target& target);  ///< nothing to do if compilers are there
  ~Preparation();

 private:
  std::thread thread_;
};

/// Stamps the target on the module and runs the short pass list in place. Throws Error(kFailed) if the IR is
/// broken (our bug).
void optimize(llvm::Module& module, const Target& target);
/// Object file bytes.
std::string compile_object(llvm::Module& module, const Target& target, Effort effort);
/// The same as assembly text.
std::string compile_assembly(llvm::Module& module, const Target& target, Effort effort);
/// Makes the objects callable; `symbols` are what they may call besides the table.
JitCode link_objects(const std::vector<std::string>& objects, const std::vector<LinkSymbol>& symbols = {});

}  // namespace hlojit::codegen
