// See kernel_units.h. A unit's emitted module is a job on a list; who waits for a unit compiles jobs meanwhile,
// so that compiling needs no threads of its own. The largest job is taken first: all would wait for one that is begun
// last. (The benchmarks' small programs compile in 0.992 of the time, on two threads.)
#include "codegen/kernel_units.h"

#include <algorithm>
#include <list>
#include <system_error>

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/digest.h"
#include "codegen/kernel_key.h"
#include "codegen/kernels/kernel.h"
#include "codegen/kernels/micro_kernel.h"
#include "codegen/kernels/tile_code.h"
#include "codegen/number/machine_code.h"
#include "codegen/number_bytes.h"

namespace hlojit::codegen {
namespace {

// ---- in the process --------------------------------------------------------------------------------------

// The kernels used last, by key.
class Kept {
 public:
  static Kept& get() {
    static auto* kept = new Kept;  // never destroyed, as the linker
    return *kept;
  }

  std::shared_ptr<const KernelUnit> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto at = places_.find(key);
    if (at == places_.end()) return nullptr;
    order_.splice(order_.begin(), order_, at->second);
    return *at->second;
  }

  void add(std::shared_ptr<const KernelUnit> unit) {
    std::list<std::shared_ptr<const KernelUnit>> gone;  // unloaded after the lock is released
    std::lock_guard lock(mutex_);
    if (places_.contains(unit->key)) return;
    bytes_ += unit->bytes();
    order_.push_front(unit);
    places_[unit->key] = order_.begin();
    while (bytes_ > kKeptBytes && order_.size() > 1) {
      bytes_ -= order_.back()->bytes();
      places_.erase(order_.back()->key);
      gone.splice(gone.end(), order_, std::prev(order_.end()));
    }
  }

  void forget() {
    std::list<std::shared_ptr<const KernelUnit>> gone;
    std::lock_guard lock(mutex_);
    gone.swap(order_);
    places_.clear();
    bytes_ = 0;
  }

 private:
  std::mutex mutex_;
  std::list<std::shared_ptr<const KernelUnit>> order_;  // the one used last first
  std::unordered_map<std::string, std::list<std::shared_ptr<const KernelUnit>>::iterator> places_;
  size_t bytes_ = 0;
};

// ---- in the store ----------------------------------------------------------------------------------------

// Calls, keys of callees, objects.
std::string pack(const KernelUnit& unit) {
  std::string bytes;
  put_number(bytes, std::ssize(unit.calls));
  for (const KernelCall& c : unit.calls) {
    put_text(bytes, c.symbol);
    const KernelWork& w = c.work;
    for (int64_t n : {w.chunks, w.scratch_bytes, w.cost_ns, int64_t{w.in_order}, w.begin, w.end}) put_number(bytes, n);
  }
  put_number(bytes, std::ssize(unit.callees));
  for (const auto& callee : unit.callees) put_text(bytes, callee->key);
  put_number(bytes, std::ssize(unit.objects));
  for (const std::string& object : unit.objects) put_text(bytes, object);
  return bytes;
}

// The store checks what it gives: bytes under a key are those that were put there.
std::shared_ptr<KernelUnit> unpack(const std::string& key, std::string_view bytes, std::vector<std::string>& callees) {
  auto unit = std::make_shared<KernelUnit>();
  unit->key = key;
  for (int64_t n = take_number(bytes); n > 0; --n) {
    KernelCall& c = unit->calls.emplace_back();
    c.symbol = take_text(bytes);
    for (int64_t* n : {&c.work.chunks, &c.work.scratch_bytes, &c.work.cost_ns}) *n = take_number(bytes);
    c.work.in_order = take_number(bytes) != 0;
    for (int64_t* n : {&c.work.begin, &c.work.end}) *n = take_number(bytes);
  }
  for (int64_t n = take_number(bytes); n > 0; --n) callees.emplace_back(take_text(bytes));
  for (int64_t n = take_number(bytes); n > 0; --n) unit->objects.emplace_back(take_text(bytes));
  return unit;
}

IrModule new_module() {
  IrModule ir("kernel");
  ir.context->setDiscardValueNames(true);
  return ir;
}

// Modules for the functions of a kernel, which may be compiled at the same time: one takes 0.6 ms even if it is small,
// as long as some thirty instructions. (A stencil of three dimensions, 17 functions, two cores: 27 ms to compile in one
// module, 22 a function each, 19 so.)
class Modules {
 public:
  NextModule next() {
    return [this]() -> llvm::Module& {
      constexpr unsigned kEnough = 128;  // instructions
      if (all.empty() || all.back().module->getInstructionCount() >= kEnough) all.push_back(new_module());
      return *all.back().module;
    };
  }
  std::deque<IrModule> all;
};

}  // namespace

size_t KernelUnit::bytes() const {
  size_t sum = size_t{24} << 10;
  for (const std::string& object : objects) sum += object.size();
  return sum;
}

void keep(const KernelUnit& unit, ObjectStore& store) {
  if (!store.contains(unit.key)) store.store(unit.key, pack(unit));
}

void forget_kernels() { Kept::get().forget(); }

KernelUnits::KernelUnits(const EmitOptions& options, ObjectStore* store, int threads)
    : options_(options),
      option_text_(option_text(options)),
      store_(store),
      helpers_most_(static_cast<size_t>(std::max(1, threads) - 1)) {}

KernelUnits::~KernelUnits() { end_jobs(true); }  // what is left then is not wanted: an error is on its way

// ---- finding and emitting --------------------------------------------------------------------------------

const std::vector<KernelCall>& KernelUnits::kernel(const Instruction& fusion, const Surroundings& around) {
  std::string key = kernel_key(fusion, around, option_text_);
  if (auto known = find(key)) return known->calls;
  auto unit = std::make_shared<KernelUnit>();
  unit->key = key;
  Modules modules;
  std::vector<MicroKernelShape> micro_kernels;
  EmitOptions options = options_;
  options.micro_kernels = &micro_kernels;
  for (const KernelFunction& f : emit_kernel(modules.next(), fusion, around, options)) {
    std::string symbol = fmt::format("kernel_{}_{}", key.substr(0, 32), unit->calls.size());
    f.function->setName(symbol);
    f.function->setLinkage(llvm::GlobalValue::ExternalLinkage);
    unit->calls.push_back({std::move(symbol), f.work});
  }
  for (const MicroKernelShape& shape : micro_kernels) unit->callees.push_back(micro_kernel_unit(shape));
  return add(std::move(unit), std::move(modules.all))->calls;
}

std::shared_ptr<const KernelUnit> KernelUnits::micro_kernel_unit(const MicroKernelShape& shape) {
  std::string name = micro_kernel_name(shape);
  std::string key = digest(option_text_ + name);
  if (auto known = find(key)) return known;
  auto unit = std::make_shared<KernelUnit>();
  unit->key = key;
  unit->calls.push_back({.symbol = name});
  if (const auto code = tile_code(shape, *options_.target)) {
    unit->objects = {object_of(name, *code)};
    if (store_) keep(*unit, *store_);
    ++compiled_;
    return add(std::move(unit), {});
  }
  Modules modules;
  micro_kernel(modules.next()(), shape, options_)->setLinkage(llvm::GlobalValue::ExternalLinkage);
  constexpr bool kOptimizes = false;  // written as it is to be: passes over IR left 59 of 61 as many instructions
  return add(std::move(unit), std::move(modules.all), kOptimizes);
}

std::shared_ptr<const KernelUnit> KernelUnits::find(const std::string& key) {
  if (auto known = known_.find(key); known != known_.end()) return known->second;
  if (auto kept = Kept::get().find(key)) {
    adopt(kept);
    return kept;
  }
  std::optional<std::string> bytes = store_ ? store_->load(key) : std::nullopt;
  if (!bytes) return nullptr;
  std::vector<std::string> callees;
  std::shared_ptr<KernelUnit> unit = unpack(key, *bytes, callees);
  for (const std::string& callee : callees) {
    unit->callees.push_back(find(callee));
    if (!unit->callees.back()) return nullptr;
  }
  return add(std::move(unit), {});
}

// What the process knew may be new to the store.
void KernelUnits::adopt(const std::shared_ptr<const KernelUnit>& unit) {
  if (!known_.emplace(unit->key, unit).second) return;
  for (const auto& callee : unit->callees) adopt(callee);
  if (store_) keep(*unit, *store_);
  units_.push_back(unit);
}

// ---- compiling -------------------------------------------------------------------------------------------

std::shared_ptr<const KernelUnit> KernelUnits::add(std::shared_ptr<KernelUnit> unit, std::deque<IrModule> modules,
                                                   bool optimizes) {
  if (!modules.empty()) {
    ++compiled_;
    unit->objects.resize(modules.size());
  } else {
    modules.emplace_back();
  }
  known_.emplace(unit->key, unit);
  units_.push_back(unit);
  {
    std::lock_guard lock(mutex_);
    left_[unit.get()] = {modules.size(), modules.size()};
    for (size_t k = 0; k < modules.size(); ++k) {
      const int64_t instructions = modules[k].module ? modules[k].module->getInstructionCount() : 0;
      waiting_.push_back(&jobs_.emplace_back(unit, k, std::move(modules[k]), instructions, optimizes));
    }
  }
  changed_.notify_all();
  while (helpers_.size() < std::min(helpers_most_, jobs_.size()) && add_helper()) {
  }
  return unit;
}

bool KernelUnits::add_helper() {
  try {
    helpers_.emplace_back([this] {
      while (run_one(true)) {
      }
    });
    return true;
  } catch (const std::system_error&) {
    return false;  // no thread to be had: finish() does it all
  }
}

KernelUnits::Job* KernelUnits::take(const KernelUnit* unit) {
  auto at = unit ? std::ranges::find(waiting_, unit, [](const Job* j) { return j->unit.get(); })
                 : std::ranges::max_element(waiting_, {}, &Job::instructions);
  if (at == waiting_.end()) return nullptr;
  Job* job = *at;
  waiting_.erase(at);
  return job;
}

bool KernelUnits::run_one(bool waits) {
  Job* job = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (waits) changed_.wait(lock, [&] { return complete_ || !waiting_.empty(); });
    job = take();
  }
  if (job) run(*job);
  return job;
}

void KernelUnits::run(Job& job) {
  try {
    const bool is_new = job.ir.module != nullptr;
    compile(job);
    if (is_last(job)) {
      if (is_new && store_) store_->store(job.unit->key, pack(*job.unit));
      link(*job.unit);
    }
  } catch (...) {
    job.failure = std::current_exception();
  }
  {
    std::lock_guard lock(mutex_);
    auto left = left_.find(job.unit.get());
    if (left != left_.end() && --left->second.jobs == 0) left_.erase(left);
  }
  changed_.notify_all();
}

void KernelUnits::compile(Job& job) {
  if (!job.ir.module) return;
  if (job.optimizes) optimize(*job.ir.module, *options_.target);
  const Effort effort = options_.fast ? Effort::kQuick : Effort::kFull;
  job.unit->objects[job.object] = compile_object(*job.ir.module, *options_.target, effort);
  job.ir = IrModule();
}

// Of one that failed there is none.
bool KernelUnits::is_last(const Job& job) {
  std::lock_guard lock(mutex_);
  auto left = left_.find(job.unit.get());
  return left != left_.end() && --left->second.objects == 0;
}

void KernelUnits::link(KernelUnit& unit) {
  std::vector<LinkSymbol> symbols;
  for (const auto& callee : unit.callees) {
    complete(*callee);
    symbols.push_back({callee->calls[0].symbol, callee->addresses[0]});
  }
  unit.code = link_objects(unit.objects, symbols);
  for (const KernelCall& c : unit.calls) unit.addresses.push_back(unit.code.lookup(c.symbol));
}

// Here, if nobody has begun it; it waits for none itself.
void KernelUnits::complete(const KernelUnit& callee) {
  std::unique_lock lock(mutex_);
  if (Job* job = take(&callee)) {
    lock.unlock();
    run(*job);
  } else {
    changed_.wait(lock, [&] { return !left_.contains(&callee); });
  }
  if (callee.addresses.empty()) throw Error(ErrorKind::kFailed, "a micro-kernel could not be compiled");
}

void KernelUnits::end_jobs(bool drop) {
  {
    std::lock_guard lock(mutex_);
    complete_ = true;
    if (drop) {
      for (const Job* job : waiting_) left_.erase(job->unit.get());
      waiting_.clear();
    }
  }
  changed_.notify_all();
  while (run_one(false)) {
  }
  for (std::thread& t : helpers_) t.join();
  helpers_.clear();
}

std::vector<std::shared_ptr<const KernelUnit>> KernelUnits::finish() {
  end_jobs(false);
  for (Job& job : jobs_) {
    if (job.failure) std::rethrow_exception(job.failure);
    Kept::get().add(job.unit);
  }
  return std::move(units_);
}

}  // namespace hlojit::codegen
