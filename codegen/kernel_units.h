// Kernels as units of their own: LLVM modules, compiled beside the others, found again by key.
//
// A kernel is looked for in the process first, then in the store, and only then emitted; it is emitted on the
// asking thread (entry code needs its number of chunks at once) and compiled on whichever thread is free.
// Micro-kernels are units too: shared between dots, compiled beside what calls them, or written as machine code at
// once. The process keeps what was used last, up to kKeptBytes; what an executable uses lives at least as long as it.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "codegen/jit.h"
#include "codegen/kernel_source.h"
#include "codegen/object_store.h"

namespace hlojit::codegen {

/// A linked kernel. Immutable once it is shared.
struct KernelUnit {
  std::string key;
  std::vector<KernelCall> calls;
  std::vector<void*> addresses;                            ///< of the calls
  std::vector<std::string> objects;                        ///< a module each
  std::vector<std::shared_ptr<const KernelUnit>> callees;  ///< micro-kernels
  JitCode code;
  /// Memory held, coarsely: pages of code, the object, the linker's tables.
  size_t bytes() const;
};

/// Stores the unit, not its callees, if it is not there yet.
void keep(const KernelUnit& unit, ObjectStore& store);

/// Code that the process keeps though no executable uses it.
inline constexpr size_t kKeptBytes = size_t{16} << 20;
/// Forgets all of it (tests; callers who want their memory back).
void forget_kernels();

/// The kernels of one compilation.
class KernelUnits final : public KernelSource {
 public:
  /// `store` may be null; `threads`: at most this many compile at once, the caller included.
  KernelUnits(const EmitOptions& options, ObjectStore* store, int threads);
  ~KernelUnits() override;

  const std::vector<KernelCall>& kernel(const Instruction& fusion, const Surroundings& around) override;

  /// Helps compiling until all are there; the units in the order they were asked for.
  /// Throws the first failure in that order.
  std::vector<std::shared_ptr<const KernelUnit>> finish();
  int64_t compiled() const { return compiled_; }  ///< neither in the process nor in the store

 private:
  /// A module to be compiled. Whoever compiles the last one of a unit links it.
  struct Job {
    std::shared_ptr<KernelUnit> unit;
    size_t object;
    IrModule ir;  ///< empty: `unit` has all its objects
    int64_t instructions = 0;
    bool optimizes = true;
    std::exception_ptr failure = nullptr;
  };
  /// The unit of this key in this compilation, in the process or in the store; none if it must be emitted.
  std::shared_ptr<const KernelUnit> find(const std::string& key);
  void adopt(const std::shared_ptr<const KernelUnit>& unit);
  std::shared_ptr<const KernelUnit> micro_kernel_unit(const MicroKernelShape& shape);
  /// Modules that are to be compiled; none: its objects are there.
  std::shared_ptr<const KernelUnit> add(std::shared_ptr<KernelUnit> unit, std::deque<IrModule> modules,
                                        bool optimizes = true);
  bool add_helper();
  /// The unit's job, or any unit's largest one; null if no such job waits. Under the lock.
  Job* take(const KernelUnit* unit = nullptr);
  bool run_one(bool waits);
  void run(Job& job);
  void compile(Job& job);
  bool is_last(const Job& job);
  void link(KernelUnit& unit);
  void complete(const KernelUnit& callee);
  void end_jobs(bool drop);

  const EmitOptions& options_;
  const std::string option_text_;
  ObjectStore* const store_;
  const size_t helpers_most_;
  int64_t compiled_ = 0;
  std::unordered_map<std::string, std::shared_ptr<const KernelUnit>> known_;
  std::vector<std::shared_ptr<const KernelUnit>> units_;
  std::mutex mutex_;  // guards what follows, but for the jobs that were handed out
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // stays in place while it grows
  std::vector<Job*> waiting_;
  /// Jobs of a unit that have not ended, and objects that are not there.
  struct Left {
    size_t jobs, objects;
  };
  std::unordered_map<const KernelUnit*, Left> left_;  // units that are not linked
  bool complete_ = false;                             // no job will follow
  std::vector<std::thread> helpers_;
};

}  // namespace hlojit::codegen
