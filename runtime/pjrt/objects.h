// What stands behind the pointers of the PJRT interface.
//
// A client owns devices, each with its memories and its queue of work. A PJRT_Buffer is a name for an
// Array: memory that is, or will be, filled. Work holds the Arrays it reads and writes, never the names,
// so that a frontend may delete a buffer while work that reads it is under way; memory goes when the
// last holder does. A donated Array is moved into the work: if nothing else holds it, its memory becomes
// the result's.
//
// Programs that are over soon run on the caller's thread when their operands are there; the others
// queue on their device, in order. An Array that could not be made carries the reason, and whatever
// reads it fails with that reason.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hlojit/hlojit.h"
#include "runtime/pjrt/abi.h"
#include "runtime/pjrt/ffi_call.h"
#include "runtime/pjrt/shards.h"
#include "runtime/workers.h"

namespace hlojit::pjrt {

extern const PJRT_Error_FunctionTable kErrorFunctions;
extern const PJRT_Memory_FunctionTable kMemoryFunctions;

/// An error as it crosses the border. Also what the functions of this folder throw.
struct PJRT_Error {
  const PJRT_Error_FunctionTable* functions = &kErrorFunctions;  ///< first, by the interface
  PJRT_Error_Code code = PJRT_Error_Code_INTERNAL;
  std::string message;

  PJRT_Error() = default;
  PJRT_Error(PJRT_Error_Code c, std::string m) : code(c), message(std::move(m)) {}
};

/// Done or not, and with which error; told once.
class Completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  /// Waits; the error, or null for success.
  const PJRT_Error* wait() const;
  /// Of one that is done.
  const PJRT_Error* error() const { return error_ ? &*error_ : nullptr; }
  void finish(std::optional<PJRT_Error> error = {});
  /// Calls f once done: now, or on the thread that finishes.
  void then(std::function<void()> f);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::optional<PJRT_Error> error_;
  std::vector<std::function<void()>> waiting_;
};

struct PJRT_Event {
  std::shared_ptr<Completion> completion;
};
PJRT_Event* new_event(std::shared_ptr<Completion> completion);
/// An event that is done already.
PJRT_Event* done_event();

/// Memory that is, or will be, filled. Nothing changes after `ready`, except that a donation takes `data`.
struct Array {
  Buffer data;  ///< empty for a token
  Completion ready;
  std::function<void()> released;  ///< tells the owner of borrowed memory that we are done with it
  ~Array() {
    if (released) released();
  }
};

/// Work of one device, in order, on a thread that starts with the first item. A process that is forked has no such
/// thread: add() throws there.
class Queue {
 public:
  Queue();
  ~Queue();
  void add(std::function<void()> work);
  /// Nothing waits or runs.
  bool idle() const;

 private:
  struct Worker;
  std::unique_ptr<Worker> worker_;
};

struct PJRT_DeviceDescription {
  int id = 0;
  std::string kind, text;
};

struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* functions = &kMemoryFunctions;  ///< first, by the interface
  PJRT_Device* device = nullptr;
  int id = 0;
  int kind_id = 0;  ///< index into kMemoryKinds
  std::string kind, text;

  /// What a frontend keeps with us, by its own keys.
  struct Kept {
    void* data = nullptr;
    void (*destroy)(void*) = nullptr;
  };
  std::mutex mutex;
  std::map<const void*, Kept> kept;
  ~PJRT_Memory();
};

/// Memories by kind. All are this machine's memory: the kinds are names that programs may ask for.
constexpr const char* kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};
constexpr size_t kMemories = 3;

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription description;
  PJRT_Memory memory[kMemories];  ///< the first is the default
  PJRT_Memory* memories[kMemories] = {};
  PJRT_Device* self[1] = {this};
  Queue queue;
};

struct PJRT_TopologyDescription {
  PJRT_Client* client = nullptr;
};

/// Turns a program in MLIR bytecode (or text) into an HloModuleProto: calls emit(sink, bytes, size) once
/// with the proto and returns 0, or with the reason and returns anything else. Called on any thread.
using Decoder = int(const char* program, size_t size, void* sink,
                    void (*emit)(void* sink, const char* bytes, size_t size));

struct PJRT_Client {
  std::string platform_name, platform_version;
  Workers workers;  ///< of programs on several devices, whose queues end before it
  std::vector<std::unique_ptr<PJRT_Device>> owned;
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_Memory*> memories;
  std::vector<PJRT_DeviceDescription*> descriptions;
  PJRT_TopologyDescription topology;
  Decoder* decoder = nullptr;
  Options options;              ///< of every compile
  std::atomic<int> dumped = 0;  ///< programs so far that options.dump_dir has a folder of

  PJRT_Device* device(int64_t id) const;
};

struct PJRT_Buffer {
  Shape shape;  ///< an array, or a token
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
  PJRT_Memory* memory = nullptr;

  /// The Array; null once deleted or donated.
  std::shared_ptr<Array> array() const;
  /// The same; throws if it is gone.
  std::shared_ptr<Array> live_array() const;
  /// Takes the Array away (deleted, donated); null if it was gone.
  std::shared_ptr<Array> release();
  void hold();
  void drop();

  PJRT_Buffer(Shape shape, PJRT_Memory* memory, std::shared_ptr<Array> array);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Array> array_;
  std::shared_ptr<Array> held_;  ///< memory that outlives Delete while others count on it
  int holders_ = 0;
};

struct PJRT_Layouts_MemoryLayout {
  std::string text;
};

/// What CompileOptionsProto says, as far as it matters here.
struct CompileOptions {
  int64_t replicas = 1, partitions = 1;
  std::vector<int64_t> devices;  ///< ids by replica, then partition; empty if none are given
  bool portable = false;         ///< runs on the device that each call names
  bool spmd = false;
  /// Results whose sharding is left open, a leaf each; one entry is for all of them.
  std::vector<bool> open_results;

  bool makes_same_code(const CompileOptions& o) const {
    return replicas == o.replicas && partitions == o.partitions && spmd == o.spmd && open_results == o.open_results;
  }
};
CompileOptions read_compile_options(std::string_view proto);

/// A parameter or result: an array or a token.
struct Leaf {
  Shape shape;
  PJRT_Buffer_Type type = PJRT_Buffer_Type_INVALID;
};

/// A compiled program, shared by all names for it.
struct Program {
  PJRT_Client* client = nullptr;
  std::string proto, options_proto;  ///< what it was made from
  CompileOptions options;
  bool default_layouts = false;
  std::string name, fingerprint, optimized;
  std::optional<Executable> code;
  std::vector<Leaf> parameters, results;
  bool partitioned = false;  ///< operands and results are cut among the devices
  /// Several devices, one run on whole arrays (shards.h); else each device runs the program on a thread of
  /// its own. `parameters` and `results` are one device's.
  bool joint = false;
  std::vector<Shape> whole_parameters, whole_results;
  std::vector<Shards> parameter_shards, result_shards;
  bool result_is_tuple = false;
  std::vector<size_t> result_memories;  ///< an index into kMemoryKinds each
  std::vector<bool> donated;            ///< parameters whose memory a call may take
  bool brief = false;                   ///< over soon: runs on the caller's thread if nothing is in its way
  bool calls_python = false;            ///< runs on the caller's thread, and waits there for its arguments
  // Kept for questions that are answered by pointers.
  std::vector<PJRT_Layouts_MemoryLayout> parameter_layouts, result_layouts;
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layout_pointers, result_layout_pointers;
  std::vector<PJRT_Buffer_Type> result_types;
  std::vector<int64_t> result_dims;
  std::vector<size_t> result_ranks;
  std::vector<const char*> memory_kinds;
  std::vector<size_t> memory_kind_sizes;
  std::vector<PJRT_NamedValue> costs;
};
/// Compiles an HloModuleProto or HLO text. A program that came as MLIR has no say in the layouts of its
/// parameters and results (what stands in the proto is chance): they are the default ones. `inspected`:
/// callbacks that ask for shardings are called. `code`: what Executable::serialize made of it before.
std::shared_ptr<Program> make_program(PJRT_Client* client, std::string hlo, std::string options_proto,
                                      bool default_layouts, bool inspected, std::string_view code = {});

struct PJRT_Executable {
  std::shared_ptr<Program> program;
};

struct PJRT_LoadedExecutable {
  std::shared_ptr<Program> program;
  std::vector<PJRT_Device*> devices;  ///< by replica, then partition
  std::vector<PJRT_LogicalDeviceIds> logical_ids;
  std::atomic<bool> deleted{false};
};
PJRT_LoadedExecutable* load_program(std::shared_ptr<Program> program);

struct PJRT_ExecuteContext {
  std::vector<ffi::UserData> user_data;
};

// ---- helpers of the functions --------------------------------------------------------------------

[[noreturn]] void fail(PJRT_Error_Code code, std::string message);
/// The error in flight, as it crosses the border. Call it in a catch block.
PJRT_Error current_error();

/// Runs f; what it throws becomes the error that is returned.
template <class F>
PJRT_Error* guard(F f) noexcept {
  try {
    f();
    return nullptr;
  } catch (...) {
    return new PJRT_Error(current_error());
  }
}

PJRT_Buffer_Type to_pjrt(DType type);
/// Throws for types that HLO does not have.
DType from_pjrt(PJRT_Buffer_Type type);
/// The array that dims, type and layout (null: default) describe. Strides are taken where they are an
/// order of dimensions without gaps.
Shape make_shape(PJRT_Buffer_Type type, const int64_t* dims, size_t rank, const PJRT_Buffer_MemoryLayout* layout);

PJRT_NamedValue named(std::string_view name, int64_t value);
PJRT_NamedValue named(std::string_view name, float value);
PJRT_NamedValue named(std::string_view name, std::string_view value);
PJRT_NamedValue named(std::string_view name, std::span<const int64_t> values);

/// What each file puts into the table.
void add_event_functions(PJRT_Api& api);
void add_client_functions(PJRT_Api& api);
void add_buffer_functions(PJRT_Api& api);
void add_transfer_functions(PJRT_Api& api);
void add_program_functions(PJRT_Api& api);
void add_executable_functions(PJRT_Api& api);
void add_execute_functions(PJRT_Api& api);
PJRT_Extension_Base* layouts_extension();
PJRT_Extension_Base* ffi_extension();

// Puts a function of this name and type into its slot.
#define HLOJIT_PJRT_SET(api, name)                                  \
  do {                                                              \
    PJRT_Error* (*typed)(PJRT_##name##_Args*) = &name;              \
    (api).functions[kSlot_##name] = reinterpret_cast<void*>(typed); \
  } while (false)

}  // namespace hlojit::pjrt

extern "C" HLOJIT_API const hlojit::pjrt::PJRT_Api* hlojit_pjrt_api();
