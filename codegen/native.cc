// Entry code is made while the first kernels are compiled already. It runs once and is mostly calls, so it is
// compiled quickly, but where it holds loops of small kernels; its key in the store is the digest of its own IR.
#include "codegen/native.h"

#include <chrono>
#include <unordered_map>

#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/digest.h"
#include "codegen/kernel_key.h"
#include "codegen/kernels/kernel.h"

namespace hlojit::codegen {
namespace {

// Kernels emitted beside entry.
class KernelsBeside final : public KernelSource {
 public:
  KernelsBeside(llvm::Module& ir, const EmitOptions& options)
      : ir_(ir), options_(options), option_text_(option_text(options)) {}

  const std::vector<KernelCall>& kernel(const Instruction& fusion, const Surroundings& around) override {
    auto [known, fresh] = known_.try_emplace(kernel_key(fusion, around, option_text_));
    if (fresh) {
      for (const KernelFunction& f : emit_kernel([&]() -> llvm::Module& { return ir_; }, fusion, around, options_)) {
        known->second.push_back({f.function->getName().str(), f.work});
      }
    }
    return known->second;
  }

 private:
  llvm::Module& ir_;
  const EmitOptions& options_;
  const std::string option_text_;
  std::unordered_map<std::string, std::vector<KernelCall>> known_;
};

class Stopwatch {
 public:
  double ms() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(now - std::exchange(start_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string key_of(const llvm::Module& ir, const EmitOptions& options) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::WriteBitcodeToFile(ir, out);
  return digest(option_text(options).append(bytes.data(), bytes.size()));
}

// Fills in the object of entry; true if it was compiled.
bool make_entry_object(NativeCode& native, IrModule& ir, const EmitOptions& options, ObjectStore* store) {
  native.entry_key = key_of(*ir.module, options);
  if (std::optional<std::string> bytes = store ? store->load(native.entry_key) : std::nullopt) {
    native.entry_object = std::move(*bytes);
    return false;
  }
  const bool inlines = native.facts.inlines;
  if (inlines) optimize(*ir.module, *options.target);
  native.entry_object =
      compile_object(*ir.module, *options.target, !inlines || options.fast ? Effort::kQuick : Effort::kFull);
  if (store) store->store(native.entry_key, native.entry_object);
  return true;
}

}  // namespace

IrModule emit_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options) {
  IrModule ir(module.name);
  KernelsBeside kernels(*ir.module, options);
  emit_entry(*ir.module, module, buffers, kernels, options);
  optimize(*ir.module, *options.target);
  return ir;
}

NativeCode compile_module(const Module& module, const BufferPlan& buffers, const EmitOptions& options,
                          ObjectStore* store, int threads) {
  NativeCode native;
  Stopwatch watch;
  KernelUnits units(options, store, threads);
  IrModule ir("entry");
  ir.context->setDiscardValueNames(true);
  native.facts = emit_entry(*ir.module, module, buffers, units, options);
  native.emit_ms = watch.ms();
  const bool compiled = make_entry_object(native, ir, options, store);
  native.kernels = units.finish();
  native.units_compiled = units.compiled() + compiled;
  native.jit_ms = watch.ms();
  std::vector<LinkSymbol> symbols;
  for (const auto& unit : native.kernels) {
    for (size_t k = 0; k < unit->calls.size(); ++k) symbols.push_back({unit->calls[k].symbol, unit->addresses[k]});
  }
  native.code = link_objects({native.entry_object}, symbols);
  native.entry = reinterpret_cast<abi::Entry>(native.code.lookup(kEntryName));
  native.link_ms = watch.ms();
  return native;
}

void NativeCode::keep_in(ObjectStore& store) const {
  for (const auto& unit : kernels) keep(*unit, store);
  store.store(entry_key, entry_object);
}

}  // namespace hlojit::codegen
