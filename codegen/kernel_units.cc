#include "codegen/kernel_units.h"

#include <algorithm>
#include <list>
#include <system_error>

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "codegen/kernel_key.h"
#include "codegen/kernels/kernel.h"
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

std::string symbol_of(const std::string& key, size_t n) { return fmt::format("kernel_{}_{}", key.substr(0, 32), n); }

// Number of calls; chunks, scratch and cost of each; the object.
std::string pack(const KernelUnit& unit) {
  std::string bytes;
  put_number(bytes, static_cast<int64_t>(unit.calls.size()));
  for (const KernelCall& c : unit.calls) {
    for (int64_t n : {c.chunks, c.scratch_bytes, c.cost_ns}) put_number(bytes, n);
  }
  return bytes + unit.object;
}

std::shared_ptr<KernelUnit> unpack(const std::string& key, std::string_view bytes) {
  auto unit = std::make_shared<KernelUnit>();
  unit->key = key;
  int64_t count = take_number(bytes);
  if (count < 0 || static_cast<uint64_t>(count) > bytes.size() / 24) return nullptr;
  for (int64_t n = 0; n < count; ++n) {
    KernelCall& c = unit->calls.emplace_back();
    c.symbol = symbol_of(key, static_cast<size_t>(n));
    c.chunks = take_number(bytes);
    c.scratch_bytes = take_number(bytes);
    c.cost_ns = take_number(bytes);
  }
  unit->object = bytes;
  return unit;
}

}  // namespace

void forget_kernels() { Kept::get().forget(); }

KernelUnits::KernelUnits(const EmitOptions& options, ObjectStore* store, int threads)
    : options_(options),
      option_text_(option_text(options)),
      store_(store),
      helpers_most_(static_cast<size_t>(std::max(1, threads) - 1)) {}

KernelUnits::~KernelUnits() { end_jobs(true); }  // what is left then is not wanted: an error is on its way

const std::vector<KernelCall>& KernelUnits::kernel(const Instruction& fusion, const OverlapMatrix& overlap) {
  std::string key = kernel_key(fusion, overlap, option_text_);
  auto [known, fresh] = known_.try_emplace(key);
  if (!fresh) return known->second->calls;
  if (auto kept = Kept::get().find(key)) {
    if (store_ && !store_->contains(key)) store_->store(key, pack(*kept));
    known->second = kept;
    units_.push_back(kept);
    return kept->calls;
  }
  std::shared_ptr<KernelUnit> unit;
  IrModule ir;
  if (store_) {
    if (std::optional<std::string> bytes = store_->load(key)) unit = unpack(key, *bytes);
  }
  if (!unit) {
    unit = std::make_shared<KernelUnit>();
    unit->key = key;
    ir = IrModule("kernel");
    ir.context->setDiscardValueNames(true);
    for (const KernelFunction& f : emit_kernel(*ir.module, fusion, overlap, options_)) {
      unit->calls.push_back({symbol_of(key, unit->calls.size()), f.chunks, f.scratch_bytes, f.cost_ns});
      f.function->setName(unit->calls.back().symbol);
      f.function->setLinkage(llvm::GlobalValue::ExternalLinkage);
    }
    ++compiled_;
  }
  known->second = unit;
  units_.push_back(unit);
  add_job(unit, std::move(ir));
  return unit->calls;
}

// ---- compiling -------------------------------------------------------------------------------------------

void KernelUnits::add_job(std::shared_ptr<KernelUnit> unit, IrModule ir) {
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(unit), std::move(ir), nullptr});
  }
  more_.notify_one();
  if (helpers_.size() >= std::min(helpers_most_, jobs_.size())) return;
  try {
    helpers_.emplace_back([this] {
      while (run_one(true)) {
      }
    });
  } catch (const std::system_error&) {
    // No thread to be had: finish() does it all.
  }
}

bool KernelUnits::run_one(bool waits) {
  Job* job = nullptr;
  {
    std::unique_lock lock(mutex_);
    if (waits) more_.wait(lock, [&] { return complete_ || next_ < jobs_.size(); });
    if (next_ == jobs_.size()) return false;
    job = &jobs_[next_++];
  }
  try {
    run(*job);
  } catch (...) {
    job->failure = std::current_exception();
  }
  return true;
}

void KernelUnits::run(Job& job) {
  KernelUnit& unit = *job.unit;
  if (job.ir.module) {
    optimize(*job.ir.module, *options_.target);
    unit.object = compile_object(*job.ir.module, *options_.target, options_.fast ? Effort::kQuick : Effort::kFull);
    job.ir = IrModule();
    if (store_) store_->store(unit.key, pack(unit));
  }
  unit.code = link_objects({unit.object});
  for (const KernelCall& c : unit.calls) unit.addresses.push_back(unit.code.lookup(c.symbol));
}

void KernelUnits::end_jobs(bool drop) {
  {
    std::lock_guard lock(mutex_);
    complete_ = true;
    if (drop) next_ = jobs_.size();
  }
  more_.notify_all();
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
