// What is one kernel and of which kind, and what is refused with which reason.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "compiler/pipeline.h"
#include "compiler/plan/blocks.h"
#include "compiler/plan/cost.h"
#include "compiler/plan/kernel.h"
#include "compiler/text/parser.h"

namespace hlojit::test {
namespace {

constexpr std::string_view kReducers = R"(
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
)";

/// The kind and domain of a computation's kernel, or the reason there is none.
std::string plan(std::string_view body) {
  auto module = parse_module(std::string(kReducers) + "ENTRY e {\n" + std::string(body) + "\n}\n");
  std::string why;
  auto plan = plan_kernel(*module->entry(), TargetInfo{}, {}, &why);
  if (!plan) return why;
  std::string text(kernel_kind_name(plan->kind));
  for (int64_t d : plan->domain) text += " " + std::to_string(d);
  for (int64_t d : plan->inner) text += " r" + std::to_string(d);
  return text;
}

TEST_CASE("nests") {
  CHECK(plan("x = f32[4,6] parameter(0) ROOT n = f32[4,6] negate(x)") == "nest 4 6");
  CHECK(plan(R"(x = f32[4,6] parameter(0)
                t = f32[6,4] transpose(x), dimensions={1,0}
                r = f32[4,6] reshape(t)
                s = f32[4,6] add(x, r)
                ROOT u = (f32[4,6], f32[4,6]) tuple(s, r))") == "nest 4 6");
  CHECK(plan(R"(x = f32[64] parameter(0) u = f32[4] parameter(1) i = s32[] parameter(2)
                n = f32[4] negate(u)
                ROOT d = f32[64] dynamic-update-slice(x, n, i))") == "nest 4");
  CHECK(plan(R"(x = f32[4] parameter(0)
                n = f32[4] negate(x)
                r = f32[2,2] reshape(x)
                ROOT u = (f32[4], f32[2,2]) tuple(n, r))") == "results of different sizes");
  CHECK(plan(R"(x = f32[64] parameter(0) u = f32[64] parameter(1) i = s32[] parameter(2)
                n = f32[64] add(u, x)
                ROOT d = f32[64] dynamic-update-slice(x, n, i))") == "what d updates is read elsewhere");
  CHECK(plan(R"(x = f32[64] parameter(0) u = f32[4] parameter(1) i = s32[] parameter(2)
                n = f32[64] negate(x)
                ROOT d = f32[64] dynamic-update-slice(n, u, i))") ==
        "dynamic-update-slice d updates a value of the kernel itself");
  CHECK(plan("x = f32[4] parameter(0) ROOT t = (f32[4]) tuple(x)") == "result x is not computed by the kernel");
}

TEST_CASE("rows") {
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                ROOT s = f32[4] reduce(x, z), dimensions={1}, to_apply=add)") == "rows 4 6 r1");
  // The physically minor dim decides.
  CHECK(plan(R"(x = f32[5,6]{0,1} parameter(0) z = f32[] constant(0)
                ROOT s = f32[6] reduce(x, z), dimensions={0}, to_apply=add)") == "rows 5 6 r0");
  // Rows of at most four elements leave lanes empty: they go across.
  CHECK(plan(R"(x = f32[4,6]{0,1} parameter(0) z = f32[] constant(0)
                ROOT s = f32[6] reduce(x, z), dimensions={0}, to_apply=add)") == "columns 4 6 r0");
  CHECK(plan(R"(x = f32[2,4,6] parameter(0) z = f32[] constant(0)
                ROOT s = f32[4] reduce(x, z), dimensions={2,0}, to_apply=add)") == "rows 2 4 6 r0 r2");
  // A chain with results of both sizes; the mean has a dim of size 1 on its way.
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                s = f32[4] reduce(x, z), dimensions={1}, to_apply=add
                c = f32[4,1] reshape(s)
                f = f32[4] reshape(c)
                b = f32[4,6] broadcast(f), dimensions={0}
                d = f32[4,6] subtract(x, b)
                m = f32[4] reduce(d, z), dimensions={1}, to_apply=max
                n = f32[4] negate(m)
                ROOT t = (f32[4,6], f32[4], f32[4]) tuple(d, n, s))") == "rows 4 6 r1");
}

TEST_CASE("rows that are none") {
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                s = f32[4] reduce(x, z), dimensions={1}, to_apply=add
                t = f32[6] reduce(x, z), dimensions={0}, to_apply=add
                ROOT u = (f32[4], f32[6]) tuple(s, t))") == "t and s reduce different dims");
  CHECK(plan(R"(x = f32[4,4] parameter(0) z = f32[] constant(0)
                s = f32[4] reduce(x, z), dimensions={1}, to_apply=add
                b = f32[4,4] broadcast(s), dimensions={1}
                ROOT d = f32[4,4] subtract(x, b))") == "s is read across rows");
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                s = f32[4] reduce(x, z), dimensions={1}, to_apply=add
                ROOT r = f32[4] reverse(s), dimensions={0})") == "reverse r moves elements after a reduction");
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                s = f32[4] reduce(x, z), dimensions={1}, to_apply=add
                ROOT r = f32[2,2] reshape(s))") == "result r has neither the sizes of the rows nor of their elements");
}

TEST_CASE("columns") {
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                n = f32[4,6] exponential(x)
                s = f32[6] reduce(n, z), dimensions={0}, to_apply=add
                m = f32[6] reduce(x, z), dimensions={0}, to_apply=max
                ROOT d = f32[6] divide(s, m))") == "columns 4 6 r0");
  CHECK(plan(R"(x = f32[4,6] parameter(0) z = f32[] constant(0)
                s = f32[6] reduce(x, z), dimensions={0}, to_apply=add
                b = f32[4,6] broadcast(s), dimensions={1}
                ROOT d = f32[4,6] subtract(x, b))") == "columns 4 6 r0");
}

/// The stages of a computation's kernel as they are printed, or the reason there are none. `given`: a
/// backend_config to be read.
std::string stages(std::string_view body, std::string_view given = {}) {
  auto module = parse_module(std::string(kReducers) + "ENTRY e {\n" + std::string(body) + "\n}\n");
  std::string why;
  auto plan = plan_kernel(*module->entry(), TargetInfo{}, given, &why);
  return plan ? kernel_config(*plan) : why;
}

constexpr std::string_view kSoftmax = R"(x = f32[4,600] parameter(0) z = f32[] constant(0)
    m = f32[4] reduce(x, z), dimensions={1}, to_apply=max
    b = f32[4,600] broadcast(m), dimensions={0}
    d = f32[4,600] subtract(x, b)
    e = f32[4,600] exponential(d)
    s = f32[4] reduce(e, z), dimensions={1}, to_apply=add
    c = f32[4,600] broadcast(s), dimensions={0}
    y = f32[4,600] divide(e, c)
    ROOT t = (f32[4,600], f32[4]) tuple(y, s))";

TEST_CASE("stages") {
  CHECK(
      stages(kSoftmax) ==
      R"({"hlojit":{"kernel":"rows","stages":["inner reduce %m","inner reduce %s keep %e","inner store %y","outer store %s"]}})");
  // A result that a reduction computes anyway is stored by its pass, and a dear one is read back from there.
  CHECK(stages(R"(x = f32[4,600] parameter(0) z = f32[] constant(0)
      e = f32[4,600] exponential(x)
      s = f32[4] reduce(e, z), dimensions={1}, to_apply=add
      c = f32[4,600] broadcast(s), dimensions={0}
      y = f32[4,600] divide(e, c)
      ROOT t = (f32[4,600], f32[4,600]) tuple(e, y))") ==
        R"({"hlojit":{"kernel":"rows","stages":["inner reduce %s store %e reread %e","inner store %y"]}})");
  // What costs less than a load is computed again.
  CHECK(stages(R"(x = f32[4,600] parameter(0) z = f32[] constant(0)
      n = f32[4,600] negate(x)
      s = f32[4] reduce(n, z), dimensions={1}, to_apply=add
      c = f32[4,600] broadcast(s), dimensions={0}
      ROOT y = f32[4,600] subtract(n, c))") ==
        R"({"hlojit":{"kernel":"rows","stages":["inner reduce %s","inner store %y"]}})");
}

TEST_CASE("stages that were printed") {
  auto given = [](std::string list) {
    return stages(kSoftmax, R"({"hlojit":{"kernel":"rows","stages":[)" + list + "]}}");
  };
  CHECK(
      given(R"("inner reduce %m","inner reduce %s","inner store %y","outer store %s")") ==
      R"({"hlojit":{"kernel":"rows","stages":["inner reduce %m","inner reduce %s","inner store %y","outer store %s"]}})");
  CHECK(given(R"("inner reduce %s","inner reduce %m","inner store %y","outer store %s")") ==
        "s reads m before its stage");
  CHECK(given(R"("inner reduce %m","inner reduce %s","inner store %y")") == "s is not stored once");
  CHECK(given(R"("inner reduce %m","inner store %y","outer store %s")") == "y reads s before its stage");
  CHECK(given(R"("inner reduce %m %s","inner store %y","outer store %s")") == "s reads m before its stage");
  CHECK(given(R"("inner reduce %m","inner reduce %s keep %q")") == "the plan names q, which the kernel does not have");
  CHECK(given(R"("inner reduce %e")") == "the plan reduces e, which is no reduction");
}

TEST_CASE("contractions") {
  CHECK(plan(R"(x = bf16[4,6] parameter(0) y = f32[5,6] parameter(1) b = f32[5] parameter(2)
                c = f32[4,6] convert(x)
                t = f32[6,5] transpose(y), dimensions={1,0}
                d = f32[4,5] dot(c, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
                w = f32[4,5] broadcast(b), dimensions={1}
                s = f32[4,5] add(d, w)
                ROOT r = f32[4,5] tanh(s))") == "contraction 4 5");
  CHECK(plan(R"(x = f32[4,4] parameter(0)
                d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
                ROOT e = f32[4,4] dot(d, x), lhs_contracting_dims={1}, rhs_contracting_dims={0})") ==
        "dot d is too small for a micro-kernel");
  CHECK(plan(R"(x = f32[4,4] parameter(0)
                n = f32[4,4] tanh(x)
                ROOT d = f32[4,4] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0})") ==
        "tanh n does not fold into the packing of a dot");
  CHECK(plan(R"(x = f32[4,4] parameter(0)
                d = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
                ROOT t = f32[4,4] transpose(d), dimensions={1,0})") == "transpose t after a dot is not elementwise");
}

TEST_CASE("what may be overwritten while it is read") {
  auto reads = [](std::string_view body, int64_t parameter, int64_t root = 0) {
    auto module = parse_module("ENTRY e {\n" + std::string(body) + "\n}\n");
    return reads_in_place(*module->entry(), parameter, root);
  };
  std::string_view mixed = R"(
    x = f32[4,4] parameter(0)
    y = f32[4,4] parameter(1)
    z = f32[4,4]{0,1} parameter(2)
    k = s32[4,4] parameter(3)
    h = f16[4,4] parameter(4)
    t = f32[4,4] transpose(y), dimensions={1,0}
    a = f32[4,4] add(x, t)
    b = f32[4,4] add(a, z)
    c = f32[4,4] convert(k)
    w = f32[4,4] convert(h)
    d = f32[4,4] add(b, c)
    ROOT r = f32[4,4] multiply(d, w))";
  CHECK(reads(mixed, 0));
  CHECK(!reads(mixed, 1));  // read at another element
  CHECK(!reads(mixed, 2));  // in another order
  CHECK(reads(mixed, 3));   // of the same width
  CHECK(!reads(mixed, 4));  // of another width
  CHECK(!reads(R"(x = f32[4] parameter(0) r = f32[4] reverse(x), dimensions={0}
                  ROOT s = f32[4] add(x, r))",
               0));
}

TEST_CASE("ops that no kernel admits are refused by name") {
  auto module = parse_module(R"(
ENTRY e {
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  d = f32[<=8] set-dimension-size(x, n), dimensions={0}
  ROOT g = s32[] get-dimension-size(d), dimensions={0}
}
)");
  PipelineOptions options;
  options.only = {"legalize_check"};
  try {
    run_pipeline(*module, options);
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kUnsupported);
    REQUIRE(e.diagnostics().size() == 2);
    CHECK(e.diagnostics()[0].message == "set-dimension-size of dynamic size is not compiled yet");
    CHECK(e.diagnostics()[0].location.line == 5);
    CHECK(e.diagnostics()[1].message == "get-dimension-size is not compiled yet");
  }
}

TEST_CASE("costs") {
  auto cost = [](std::string_view body) {
    auto module = parse_module(std::string(kReducers) + "ENTRY e {\n" + std::string(body) + "\n}\n");
    std::vector<const Instruction*> members;
    for (const auto& i : module->entry()->instructions()) {
      if (!i->is(Opcode::kParameter)) members.push_back(i.get());
    }
    return kernel_cost(members, *plan_kernel(*module->entry(), TargetInfo{}), TargetInfo{});
  };
  // Reading a value twice at the same element is one read; through two slices it is computed twice.
  auto once = cost("x = f32[1000,1000] parameter(0) ROOT m = f32[1000,1000] multiply(x, x)");
  CHECK(once.buffers == 2);
  auto sine = cost(R"(x = f32[1002] parameter(0) s = f32[1002] sine(x)
                      ROOT a = f32[1000] slice(s), slice={[0:1000]})");
  auto twice = cost(R"(x = f32[1002] parameter(0) s = f32[1002] sine(x)
                       a = f32[1000] slice(s), slice={[0:1000]}
                       b = f32[1000] slice(s), slice={[2:1002]}
                       ROOT c = f32[1000] add(a, b))");
  CHECK(twice.compute_ns > 1.9 * sine.compute_ns);
  CHECK(twice.instructions > 1.9 * sine.instructions);
  // Code to round each result of a type that nothing computes in, and of functions of complex numbers.
  auto product = [&](std::string_view type) {
    return cost(fmt::format("x = {0}[100] parameter(0) ROOT m = {0}[100] multiply(x, x)", type)).instructions;
  };
  CHECK(product("f4e2m1fn") > 20 * product("f32"));
  CHECK(product("bf16") > 5 * product("f32"));
  auto complex = cost("x = c64[1002] parameter(0) ROOT s = c64[1002] sine(x)");
  CHECK(complex.instructions > 5 * sine.instructions);
  // What does not depend on the inner dim is computed outside of its loop.
  auto outer = cost(R"(x = f32[1000] parameter(0) y = f32[1000,1000] parameter(1)
                       s = f32[1000] sine(x) b = f32[1000,1000] broadcast(s), dimensions={0}
                       ROOT m = f32[1000,1000] multiply(b, y))");
  auto inner = cost(R"(x = f32[1000] parameter(0) y = f32[1000,1000] parameter(1)
                       s = f32[1000] sine(x) b = f32[1000,1000] broadcast(s), dimensions={1}
                       ROOT m = f32[1000,1000] multiply(b, y))");
  CHECK(inner.compute_ns > 10 * outer.compute_ns);
}

TEST_CASE("a product costs what the machine's multiply-adds take") {
  auto cost = [](const std::string& type, const TargetInfo& target) {
    auto module = parse_module("ENTRY e {\n  a = " + type + "[60,64] parameter(0)\n  b = " + type +
                               "[64,96] parameter(1)\n  ROOT d = " + (type == "s8" ? "s32" : type) +
                               "[60,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
    const Instruction* dot = module->entry()->root();
    return kernel_cost(std::vector{dot}, *plan_kernel(*module->entry(), target), target).compute_ns;
  };
  TargetInfo target{.vector_bytes = 64, .vector_registers = 32, .multiplies_bytes = true, .multiplies_bfloats = true};
  const double two = cost("f32", target);
  CHECK(cost("bf16", target) < 0.7 * two);
  CHECK(cost("s8", target) < 0.5 * two);
  target.multiply_adds = 1;
  CHECK(cost("f32", target) == doctest::Approx(2 * two).epsilon(0.2));
}

/// Of a sum of arrays of many sizes that stand elsewhere in memory each time.
TEST_CASE("a cost does not depend on addresses") {
  std::string body;
  for (int k = 0; k < 40; ++k) {
    std::string n = std::to_string(k);
    body += "p" + n + " = f32[" + std::to_string(1 + k * k * 37) + "] parameter(" + n + ") cut" + n +
            " = f32[1] slice(p" + n + "), slice={[0:1]}\n";
    if (k == 0) body += "a0 = f32[1] negate(cut0)\n";
    if (k > 0) body += "a" + n + " = f32[1] add(a" + std::to_string(k - 1) + ", cut" + n + ")\n";
  }
  std::vector<std::unique_ptr<Module>> kept;  // so that no module gets another one's memory
  std::set<double> costs;
  for (int k = 0; k < 20; ++k) {
    kept.push_back(parse_module("ENTRY e {\n" + body + "\n}\n"));
    auto plan = plan_kernel(*kept.back()->entry(), TargetInfo{});
    std::vector<const Instruction*> members;
    for (const auto& i : kept.back()->entry()->instructions()) {
      if (!i->is(Opcode::kParameter)) members.push_back(i.get());
    }
    costs.insert(kernel_cost(members, *plan, TargetInfo{}).memory_ns);
  }
  CHECK(costs.size() == 1);
}

/// How the terms of a product of two matrices are added up on such a machine; its text is read back.
std::string_view terms_at_once(const std::string& left, const std::string& right, const TargetInfo& target) {
  const std::string type = left.substr(0, left.find('['));
  const std::string result = (type == "s8" || type == "u8" ? "s32" : type) + "[60,96]";
  auto module = parse_module("ENTRY e {\n  a = " + left + " parameter(0)\n  b = " + right +
                             " parameter(1)\n  ROOT d = " + result +
                             " dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
  const Instruction& dot = *module->entry()->root();
  auto blocks = choose_blocks(dot, MatrixProduct(dot, dot.shape, sum_lanes(dot, target.vector_bytes)), target);
  REQUIRE(blocks);
  CHECK(read_blocks(blocks_text(*blocks) + " store %d") == blocks);
  return form_of(blocks->multiply_add).name;
}

TEST_CASE("several terms at once") {
  const TargetInfo small,
      large{.vector_bytes = 64, .vector_registers = 32, .multiplies_bytes = true, .multiplies_bfloats = true};
  CHECK(terms_at_once("s8[60,64]", "s8[64,96]", small) == "words");
  CHECK(terms_at_once("s8[60,64]", "s8[64,96]", large) == "bytes");
  CHECK(terms_at_once("s8[60,66]", "s8[66,96]", large) == "bytes");
  CHECK(terms_at_once("s8[60,65]", "s8[65,96]", small) == "words");
  CHECK(terms_at_once("u8[60,64]", "u8[64,96]", large) == "words");
  CHECK(terms_at_once("bf16[60,64]", "bf16[64,96]", small) == "");
  CHECK(terms_at_once("bf16[60,64]", "bf16[64,96]", large) == "bfloats");
  CHECK(terms_at_once("bf16[60,64]{0,1}", "bf16[64,96]", large) == "bfloats");
  CHECK(terms_at_once("f32[60,64]", "f32[64,96]", large) == "");
}

TEST_CASE("whole tiles, where the machine multiplies them and there is enough of one") {
  TargetInfo target{.vector_bytes = 64, .vector_registers = 32, .multiplies_bytes = true, .multiplies_tiles = true};
  CHECK(terms_at_once("bf16[60,64]", "bf16[64,96]", target) == "bfloat_tiles");
  CHECK(terms_at_once("bf16[60,17]", "bf16[17,96]", target) == "bfloat_tiles");
  CHECK(terms_at_once("bf16[60,15]", "bf16[15,96]", target) == "");
  CHECK(terms_at_once("s8[60,65]", "s8[65,96]", target) == "byte_tiles");
  CHECK(terms_at_once("s8[60,30]", "s8[30,96]", target) == "bytes");
  CHECK(terms_at_once("s8[60,60]", "s8[60,96]", target) == "bytes");
  CHECK(terms_at_once("u8[60,64]", "u8[64,96]", target) == "words");
  target.keeps_subnormals = true;
  CHECK(terms_at_once("bf16[60,64]", "bf16[64,96]", target) == "");
  CHECK(terms_at_once("s8[60,64]", "s8[64,96]", target) == "byte_tiles");
  for (const char* no : {"tile 32x40 block 32x40x64 by bfloat_tiles", "tile 33x32 block 33x32x64 by bfloat_tiles",
                         "tile 16x64 block 16x64x64 by byte_tiles"})
    CHECK_FALSE(read_blocks(no));
}

TEST_CASE("products of a block, one by tiles, agree about its rows") {
  auto module = parse_module(R"(ENTRY e {
      a = bf16[197,64] parameter(0)
      b = bf16[64,197] parameter(1)
      c = bf16[197,64] parameter(2)
      m = bf16[197,197] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT d = bf16[197,64] dot(m, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
  const TargetInfo target{.vector_bytes = 64, .vector_registers = 32, .multiplies_tiles = true, .l2_bytes = 2 << 20};
  std::string why;
  auto plan = plan_kernel(*module->entry(), target, {}, &why);
  REQUIRE_MESSAGE(plan, why);
  CHECK(plan->stages[0].blocks->multiply_add == MultiplyAdd::kBfloatTiles);
  CHECK(plan->stages[0].blocks->tile_rows == 32);
  CHECK(plan->stages[1].blocks->tile_rows == 6);
}

TEST_CASE("a plan that takes subnormals for zeros is not kept where they are wanted") {
  auto module = parse_module(R"(ENTRY e {
      a = bf16[60,64] parameter(0)
      b = bf16[64,96] parameter(1)
      ROOT d = bf16[60,96] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
  TargetInfo target{.vector_bytes = 64, .vector_registers = 32, .multiplies_bfloats = true};
  const std::string printed = kernel_config(*plan_kernel(*module->entry(), target));
  CHECK(printed.contains("by bfloats"));
  target.multiplies_bfloats = false;  // its twin gives the same bits
  CHECK(kernel_config(*plan_kernel(*module->entry(), target, printed)).contains("by bfloats"));
  target.keeps_subnormals = true;
  CHECK_FALSE(kernel_config(*plan_kernel(*module->entry(), target, printed)).contains("by bfloats"));
}

TEST_CASE("the kind of kernel that a fusion's text names") {
  auto module = parse_module(R"(f {
      p = f32[4] parameter(0)
      ROOT n = f32[4] negate(p)
    }
    ENTRY e {
      p = f32[4] parameter(0)
      ROOT k = f32[4] fusion(p), kind=kLoop, calls=f, backend_config={"hlojit":{"kernel":"nest","stages":["outer"]}}
    })");
  const Instruction* fusion = module->entry()->root();
  CHECK(planned_kind(*fusion) == "nest");
  CHECK(has_kernel_config(*fusion));
  CHECK(planned_kind(*fusion->operand(0)).empty());
  CHECK_FALSE(has_kernel_config(*fusion->operand(0)));
}

TEST_CASE("a product of what lies in scratch takes its terms one by one") {
  auto module = parse_module(R"(ENTRY e {
      a = bf16[64,63] parameter(0)
      b = bf16[63,65] parameter(1)
      c = bf16[65,64] parameter(2)
      m = bf16[64,65] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT d = bf16[64,64] dot(m, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
  const TargetInfo target{.vector_bytes = 64, .vector_registers = 32, .multiplies_bfloats = true};
  std::string why;
  auto plan = plan_kernel(*module->entry(), target, {}, &why);
  REQUIRE_MESSAGE(plan, why);
  REQUIRE(plan->stages.size() == 2);
  CHECK(plan->stages[0].blocks->multiply_add == MultiplyAdd::kBfloats);
  CHECK(plan->stages[0].blocks->depth == 63);
  CHECK(plan->stages[1].blocks->multiply_add == MultiplyAdd::kOne);
  CHECK(plan->stages[1].blocks->depth == 65);
  std::string grouped = kernel_config(*plan);
  size_t second = grouped.find("product %d");
  grouped.insert(grouped.find(" store", second), " by bfloats");
  grouped.replace(grouped.find("x65", second), 3, "x66");
  CHECK_FALSE(plan_kernel(*module->entry(), target, grouped, &why));
  CHECK(why == "terms in groups that no one packs");
}

TEST_CASE("what is known of a product is of its operands and its result as they are in the kernel") {
  auto module = parse_module(R"(ENTRY e {
      x = f32[20,1024] parameter(0)
      w = f32[256,1024] parameter(1)
      n = f32[256,1024] negate(w)
      d = f32[20,256] dot(x, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      c = f32[20,256]{0,1} negate(d)
      ROOT t = (f32[20,256], f32[20,256]{0,1}) tuple(d, c)
    })");
  const TargetInfo target{.vector_bytes = 64, .vector_registers = 32};
  using List = std::vector<const Instruction*>;
  const Instruction *c = module->entry()->root()->operand(1), *d = c->operand(0), *n = d->operand(1);
  const std::vector<List> kernels = {{d}, {n, d}, {n, d, c}, {d, c}};
  auto config = [](const List& members, Products& products) {
    const List roots = {members.back()};
    auto plan = plan_kernel(members, roots, products);
    return plan ? kernel_config(*plan) : "none";
  };
  Products known(target);
  std::set<std::string> configs;
  for (int round = 0; round < 2; ++round) {
    for (const List& members : kernels) {
      Products fresh(target);
      const std::string first = config(members, fresh);
      CHECK(config(members, known) == first);
      configs.insert(first);
    }
  }
  CHECK(configs.size() > 2);
  CHECK_FALSE(configs.contains("none"));
}

TEST_CASE("where the second cache does not keep up, panels for many rows are packed, all of the depth at once") {
  auto depth = [](int64_t m, int64_t k, int64_t n, bool transposed, bool l2_keeps_up) {
    const TargetInfo target{.vector_bytes = 64,
                            .vector_registers = 32,
                            .l2_keeps_up = l2_keeps_up,
                            .l1_bytes = 48 << 10,
                            .l2_bytes = 2 << 20};
    const std::string left = transposed ? fmt::format("f32[{},{}]", k, m) : fmt::format("f32[{},{}]", m, k);
    auto module = parse_module(fmt::format(R"(ENTRY e {{
      a = {} parameter(0)
      b = f32[{},{}] parameter(1)
      ROOT d = f32[{},{}] dot(a, b), lhs_contracting_dims={{{}}}, rhs_contracting_dims={{0}}
    }})",
                                           left, k, n, m, n, transposed ? 0 : 1));
    const Instruction& dot = *module->entry()->root();
    const MatrixProduct product(dot, dot.shape, sum_lanes(dot, target.vector_bytes));
    return choose_blocks(dot, product, target, {.rows_in_memory = true, .columns_in_memory = true})->depth;
  };
  CHECK(depth(1024, 1024, 1024, false, true) == 1024);
  CHECK(depth(1024, 1024, 1024, false, false) == 1024);
  CHECK(depth(1024, 1024, 1024, true, false) == 128);  // rows are packed for each slice
  CHECK(depth(64, 1024, 1024, false, false) == 128);   // by few rows
  CHECK(depth(512, 512, 512, false, false) == 128);    // read in place
  CHECK(depth(2048, 512, 512, false, false) == 512);
}

}  // namespace
}  // namespace hlojit::test
