#include "codegen/jit.h"

#include <cmath>
#include <cstring>
#include <future>
#include <mutex>

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "compiler/math/scalar.h"

namespace hlojit::codegen {
namespace {

[[noreturn]] void fail(llvm::Error error, const char* what) {
  throw Error(ErrorKind::kFailed, std::string(what) + ": " + llvm::toString(std::move(error)));
}

template <class T>
T take(llvm::Expected<T> value, const char* what) {
  if (!value) fail(value.takeError(), what);
  return std::move(*value);
}

// One linker for the process: an executable is a JITDylib in it.
struct Linker {
  std::unique_ptr<llvm::orc::ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer;
  llvm::orc::JITDylib* builtins = nullptr;
  std::mutex mutex;
  uint64_t next = 0;

  Linker() {
    auto control = take(llvm::orc::SelfExecutorProcessControl::Create(), "JIT set-up");
    session = std::make_unique<llvm::orc::ExecutionSession>(std::move(control));
    session->setErrorReporter([](llvm::Error e) { llvm::consumeError(std::move(e)); });
    layer = std::make_unique<llvm::orc::ObjectLinkingLayer>(*session);
    builtins = &session->createBareJITDylib("builtins");
    llvm::orc::SymbolMap symbols;
    auto add = [&](const char* name, void* address) {
      symbols[session->intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                        llvm::JITSymbolFlags::Exported};
    };
    add("memcpy", reinterpret_cast<void*>(&std::memcpy));
    add("memmove", reinterpret_cast<void*>(&std::memmove));
    add("memset", reinterpret_cast<void*>(&std::memset));
    for (const math::ScalarSymbol& s : math::scalar_functions()) add(s.name, s.address);
    if (auto e = builtins->define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
      fail(std::move(e), "JIT symbol table");
    }
  }
  ~Linker() { llvm::consumeError(session->endSession()); }
};

// Never destroyed: executables with static lifetime may outlive it otherwise.
Linker& linker() {
  static Linker* l = new Linker;
  return *l;
}

}  // namespace

IrModule::IrModule() = default;
IrModule::IrModule(std::string_view name)
    : context(std::make_unique<llvm::LLVMContext>()),
      module(std::make_unique<llvm::Module>(llvm::StringRef(name.data(), name.size()), *context)) {}
IrModule::IrModule(IrModule&&) noexcept = default;
IrModule& IrModule::operator=(IrModule&& other) noexcept {
  module = std::move(other.module);  // before the context that owns its types
  context = std::move(other.context);
  return *this;
}
IrModule::~IrModule() { module.reset(); }

std::string IrModule::to_string() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, nullptr);
  return text;
}

struct JitCode::Impl {
  llvm::orc::JITDylib* library = nullptr;
  ~Impl() {
    if (library) llvm::consumeError(linker().session->removeJITDylib(*library));
  }
};

JitCode::JitCode() = default;
JitCode::JitCode(JitCode&&) noexcept = default;
JitCode& JitCode::operator=(JitCode&&) noexcept = default;
JitCode::~JitCode() = default;

void* JitCode::lookup(std::string_view symbol) const {
  auto& session = *linker().session;
  auto found = session.lookup({impl_->library}, session.intern(llvm::StringRef(symbol.data(), symbol.size())));
  return take(std::move(found), "JIT lookup").getAddress().toPtr<void*>();
}

void optimize(llvm::Module& module, const Target& target) {
  std::string broken;
  llvm::raw_string_ostream out(broken);
  if (llvm::verifyModule(module, &out)) {
    throw Error(ErrorKind::kFailed, "internal: emitted LLVM IR is not valid: " + broken);
  }
  auto machine = target.machine();
  target.stamp(module, *machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  llvm::ModulePassManager passes;
  // Named in text, instcombine would end the process when one round does not simplify everything.
  if (auto e = builder.parsePassPipeline(
          passes, "function(early-cse<memssa>,loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg)")) {
    fail(std::move(e), "pass list");
  }
  passes.run(module, modules);
}

std::string compile_object(llvm::Module& module, const Target& target, bool assembly, bool fast) {
  auto machine = target.machine(fast);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(passes, out, nullptr, type)) {
    throw Error(ErrorKind::kFailed, "internal: LLVM cannot emit code for this machine");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

JitCode link_objects(const Target&, std::vector<std::string> objects) {
  Linker& l = linker();
  JitCode code;
  code.impl_ = std::make_unique<JitCode::Impl>();
  {
    std::lock_guard lock(l.mutex);
    code.impl_->library = &l.session->createBareJITDylib("module" + std::to_string(l.next++));
  }
  code.impl_->library->addToLinkOrder(*l.builtins);
  for (std::string& object : objects) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "object");
    if (auto e = l.layer->add(*code.impl_->library, std::move(buffer))) fail(std::move(e), "JIT link");
  }
  return code;
}

std::vector<std::string> compile_objects(const Target& target, std::vector<IrModule> modules, bool fast) {
  auto one = [&target, fast](llvm::Module& m) {
    optimize(m, target);
    return compile_object(m, target, false, fast);
  };
  std::vector<std::future<std::string>> others;
  for (size_t i = 1; i < modules.size(); ++i) {
    others.push_back(std::async(std::launch::async, one, std::ref(*modules[i].module)));
  }
  std::vector<std::string> objects;
  if (!modules.empty()) objects.push_back(one(*modules[0].module));
  for (auto& f : others) objects.push_back(f.get());
  return objects;
}

}  // namespace hlojit::codegen
