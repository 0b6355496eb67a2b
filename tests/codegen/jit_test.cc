// What is prepared on a thread of its own compiles as what is made when it is needed, wanted or not.
#include "codegen/jit.h"

#include <doctest/doctest.h>

#include <optional>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace hlojit::codegen {
namespace {

// The code of n + 1.
std::string object_of_next(const Target& target) {
  IrModule ir("next");
  auto* number = llvm::Type::getInt64Ty(*ir.context);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(number, {number}, false), llvm::GlobalValue::ExternalLinkage,
                                   "next", *ir.module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(*ir.context, "entry", f));
  b.CreateRet(b.CreateAdd(f->getArg(0), b.getInt64(1)));
  optimize(*ir.module, target);
  return compile_object(*ir.module, target, Effort::kFull);
}

TEST_CASE("a CPU by its name") {
  const Target& zen = Target::get("znver4");
  CHECK(zen.isa() == Isa::kAvx512);
  CHECK(zen.info().l2_keeps_up);
  CHECK(zen.info().l2_bytes == TargetInfo().l2_bytes);
  CHECK_FALSE(Target::get("sapphirerapids").info().l2_keeps_up);
  CHECK(Target::get("znver3").isa() == Isa::kAvx2);
  const Target& another = Target::get(Target::of_another_maker());
  if (Target::of_another_maker() != "native") CHECK(another.is_zen() != Target::get("native").is_zen());
  another.check_runs_here();
  CHECK_THROWS_AS(Target::get("pantherlake").check_runs_here(), Error);  // its integers' SHA-512 is in no server
  CHECK_THROWS_AS(Target::get("k6"), Error);
  CHECK_THROWS_AS(Target::get("avx1024"), Error);
  Target::get("native").check_runs_here();
}

TEST_CASE("prepared compilers") {
  const Target& target = Target::get("avx2");
  {
    Preparation unused(target);
  }
  std::optional<Preparation> first(target), second(target);
  const std::string object = object_of_next(target);
  first.reset();
  CHECK(object_of_next(target) == object);
  JitCode code = link_objects({object});
  CHECK(reinterpret_cast<int64_t (*)(int64_t)>(code.lookup("next"))(41) == 42);
}

}  // namespace
}  // namespace hlojit::codegen
