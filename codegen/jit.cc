// See jit.h. The LLVM objects that cost milliseconds to make (target machine, pass managers) are kept a thread
// at a time; the linker and its table of symbols are one for the process.
#include "codegen/jit.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <system_error>

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/code_passes.h"
#include "codegen/kept_order.h"
#include "codegen/number/machine_code.h"
#include "codegen/number/transpose.h"
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
  std::atomic<uint64_t> next = 0;

  Linker() {
    auto control = take(llvm::orc::SelfExecutorProcessControl::Create(), "JIT set-up");
    session = std::make_unique<llvm::orc::ExecutionSession>(std::move(control));
    session->setErrorReporter([](llvm::Error e) { llvm::consumeError(std::move(e)); });
    layer = std::make_unique<llvm::orc::ObjectLinkingLayer>(*session);
    builtins = &session->createBareJITDylib("builtins");
    llvm::orc::SymbolMap symbols;
    auto add = [&](const char* name, void* address) {
      symbols[session->intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), llvm::JITSymbolFlags::Exported};
    };
    add("memcpy", reinterpret_cast<void*>(&std::memcpy));
    add("memmove", reinterpret_cast<void*>(&std::memmove));
    add("memset", reinterpret_cast<void*>(&std::memset));
    for (const math::ScalarSymbol& s : math::scalar_functions()) add(s.name, s.address);
    if (auto e = builtins->define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
      fail(std::move(e), "JIT symbol table");
    }
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
      auto object = llvm::MemoryBuffer::getMemBufferCopy(object_of(square_name(isa), square_code(isa)), "square");
      if (auto e = layer->add(*builtins, std::move(object))) fail(std::move(e), "JIT link");
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

namespace {

// The new pass manager's part, for one target machine.
struct Optimizer {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::ModulePassManager inlining, passes;

  explicit Optimizer(llvm::TargetMachine& machine) : builder(&machine) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graphs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graphs, modules);
    if (auto e = builder.parsePassPipeline(inlining, "always-inline,function(sroa,simplifycfg)")) {
      fail(std::move(e), "pass list");
    }
    // Named in text, instcombine would end the process when one round does not simplify everything.
    if (auto e = builder.parsePassPipeline(
            passes, "function(early-cse,loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg)")) {
      fail(std::move(e), "pass list");
    }
  }
  // Analyses are kept by the address of what they are of: nothing may stay behind.
  void run(llvm::Module& module) {
    bool inlines = std::ranges::any_of(
        module, [](const llvm::Function& f) { return f.hasFnAttribute(llvm::Attribute::AlwaysInline); });
    if (inlines) inlining.run(module, modules);
    passes.run(module, modules);
    loops.clear();
    functions.clear();
    graphs.clear();
    modules.clear();
  }
};

// What keeps ops on converted halves from becoming ops on halves (codegen/number/codec): not wanted on a machine that
// has those. One rounding of a product, sum or quotient of halves gives the bits of two.
void drop_fences(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.getIntrinsicID() != llvm::Intrinsic::arithmetic_fence) continue;
    for (llvm::User* user : llvm::make_early_inc_range(f.users())) {
      auto* fence = llvm::cast<llvm::CallInst>(user);
      if (!llvm::isa<llvm::FPExtInst>(fence->getArgOperand(0))) continue;
      fence->replaceAllUsesWith(fence->getArgOperand(0));
      fence->eraseFromParent();
    }
  }
}

// One way of compiling, ready to be used again: making a target machine, its subtarget and the pass managers
// takes 3 ms, a small kernel 1. Used by one thread at a time.
class Compiler {
 public:
  Compiler(const Target& target, Effort effort) : target_(target), machine_(target.machine(effort == Effort::kQuick)) {}

  void optimize(llvm::Module& module) {
    target_.stamp(module, *machine_);
    if (!optimizer_) optimizer_ = std::make_unique<Optimizer>(*machine_);
    if (target_.has("avx512fp16")) drop_fences(module);
    optimizer_->run(module);
  }

  std::string object(llvm::Module& module) {
    target_.stamp(module, *machine_);
    make_passes();
    bytes_.clear();
    const KeptOrder order(module, target_);
    emitter_->run(module);
    return std::string(bytes_.begin(), bytes_.end());
  }

  void make_passes() {
    if (emitter_) return;
    emitter_ = std::make_unique<llvm::legacy::PassManager>();
    add_passes(*emitter_, out_, llvm::CodeGenFileType::ObjectFile);
  }

  std::string assembly(llvm::Module& module) {
    target_.stamp(module, *machine_);
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream out(bytes);
    llvm::legacy::PassManager passes;
    add_passes(passes, out, llvm::CodeGenFileType::AssemblyFile);
    const KeptOrder order(module, target_);
    passes.run(module);
    return std::string(bytes.begin(), bytes.end());
  }

 private:
  void add_passes(llvm::legacy::PassManager& to, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type) {
    CodePasses passes(to);
    constexpr bool kNoVerify = true;
    if (machine_->addPassesToEmitFile(passes, out, nullptr, type, kNoVerify)) {
      throw Error(ErrorKind::kFailed, "internal: LLVM cannot emit code for this machine");
    }
  }

  const Target& target_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<Optimizer> optimizer_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream out_{bytes_};
  std::unique_ptr<llvm::legacy::PassManager> emitter_;
};

// Compilers that nobody uses, by what they are for: as many come to be as were ever busy at once. One that is still
// being made is there already, as its future.
class Compilers {
 public:
  using Future = std::future<std::unique_ptr<Compiler>>;
  using Key = std::pair<const Target*, Effort>;

  static Compilers& get() {
    static auto* all = new Compilers;  // never destroyed, as the linker
    return *all;
  }

  bool none(const Key& key) {
    std::lock_guard lock(mutex_);
    return idle_[key].empty();
  }
  /// The one put here last; null if there is none.
  std::unique_ptr<Compiler> take(const Key& key) {
    Future future;
    {
      std::lock_guard lock(mutex_);
      auto& idle = idle_[key];
      if (idle.empty()) return nullptr;
      future = std::move(idle.back());
      idle.pop_back();
    }
    return future.get();
  }
  void put(const Key& key, Future compiler) {
    std::lock_guard lock(mutex_);
    idle_[key].push_back(std::move(compiler));
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::vector<Future>> idle_;
};

// Borrowed until destroyed. One that failed is not given back.
class Lease {
 public:
  Lease(const Target& target, Effort effort) : key_(&target, effort), compiler_(Compilers::get().take(key_)) {
    if (!compiler_) compiler_ = std::make_unique<Compiler>(target, effort);
  }
  ~Lease() {
    if (std::uncaught_exceptions() > 0) return;
    std::promise<std::unique_ptr<Compiler>> promise;
    promise.set_value(std::move(compiler_));
    Compilers::get().put(key_, promise.get_future());
  }
  Compiler* operator->() { return compiler_.get(); }

 private:
  Compilers::Key key_;
  std::unique_ptr<Compiler> compiler_;
};

// A compiler with what it makes at its first function: the machine's subtarget, analyses and passes.
std::unique_ptr<Compiler> complete_compiler(const Target& target) {
  IrModule ir("nothing");
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(*ir.context), false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "nothing", *ir.module);
  llvm::ReturnInst::Create(*ir.context, llvm::BasicBlock::Create(*ir.context, "entry", function));
  auto compiler = std::make_unique<Compiler>(target, Effort::kFull);
  compiler->optimize(*ir.module);
  compiler->make_passes();
  return compiler;
}

}  // namespace

Preparation::Preparation(const Target& target) {
  const Compilers::Key key(&target, Effort::kFull);
  if (!Compilers::get().none(key)) return;
  std::packaged_task<std::unique_ptr<Compiler>()> task([&target] { return complete_compiler(target); });
  Compilers::Future compiler = task.get_future();
  try {
    thread_ = std::thread(std::move(task));
  } catch (const std::system_error&) {
    return;  // no thread to be had: who needs it makes it
  }
  Compilers::get().put(key, std::move(compiler));
}

Preparation::~Preparation() {
  if (thread_.joinable()) thread_.join();
}

void optimize(llvm::Module& module, const Target& target) {
  std::string broken;
  llvm::raw_string_ostream out(broken);
  if (llvm::verifyModule(module, &out)) {
    throw Error(ErrorKind::kFailed, "internal: emitted LLVM IR is not valid: " + broken);
  }
  Lease(target, Effort::kFull)->optimize(module);
}

std::string compile_object(llvm::Module& module, const Target& target, Effort effort) {
  return Lease(target, effort)->object(module);
}

std::string compile_assembly(llvm::Module& module, const Target& target, Effort effort) {
  return Lease(target, effort)->assembly(module);
}

JitCode link_objects(const std::vector<std::string>& objects, const std::vector<LinkSymbol>& symbols) {
  Linker& l = linker();
  JitCode code;
  code.impl_ = std::make_unique<JitCode::Impl>();
  code.impl_->library = &l.session->createBareJITDylib("code" + std::to_string(l.next++));
  llvm::orc::JITDylib& library = *code.impl_->library;
  library.addToLinkOrder(*l.builtins);
  if (!symbols.empty()) {
    llvm::orc::SymbolMap map;
    for (const LinkSymbol& s : symbols) {
      map[l.session->intern(s.name)] = {llvm::orc::ExecutorAddr::fromPtr(s.address), llvm::JITSymbolFlags::Exported};
    }
    if (auto e = library.define(llvm::orc::absoluteSymbols(std::move(map)))) fail(std::move(e), "JIT symbols");
  }
  for (const std::string& object : objects) {
    auto buffer = llvm::MemoryBuffer::getMemBufferCopy(object, "object");
    if (auto e = l.layer->add(library, std::move(buffer))) fail(std::move(e), "JIT link");
  }
  return code;
}

}  // namespace hlojit::codegen
