// LLVM modules to callable code: the short pass list, ORC, and one symbol table.
//
//   1. optimise: early-cse + licm (the emitters already produce vectors; nothing is re-vectorised)
//   2. compile to an object with one TargetMachine a thread
//   3. link with JITLink into a JITDylib of its own, removed when the handle dies
//
// Process-symbol lookup is off: everything JITted code may call is in the table of jit.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
  friend JitCode link_objects(const Target&, std::vector<std::string>);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Stamps the target on the module and runs the short pass list in place. Throws Error(kFailed) if the IR is broken (our bug).
void optimize(llvm::Module& module, const Target& target);
/// Object file bytes; `assembly` gives text instead. The module must have been optimised.
/// `fast`: FastISel, for code that is compiled often and run little.
std::string compile_object(llvm::Module& module, const Target& target, bool assembly = false, bool fast = false);
JitCode link_objects(const Target& target, std::vector<std::string> objects);

/// optimise + compile, modules in parallel when there are several: an object each.
std::vector<std::string> compile_objects(const Target& target, std::vector<IrModule> modules, bool fast);

}  // namespace hlojit::codegen
