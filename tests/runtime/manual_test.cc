// shard_map's programs: Shardy's text, and the program of one device run on four.
#include "runtime/pjrt/manual.h"

#include <doctest/doctest.h>

#include "compiler/passes/inline_calls.h"
#include "hlojit/hlojit.h"
#include "runtime/pjrt/flow.h"
#include "runtime/pjrt/sdy.h"

namespace hlojit::pjrt {
namespace {

using Groups = std::vector<std::vector<int64_t>>;

// psum over y of a part of x, times one plus the place along x.
constexpr const char* kProgram =
    R"(HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
body {
  p = f32[1,2] parameter(0)
  s = f32[1,2] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  id = u32[] partition-id()
  two = u32[] constant(2)
  x = u32[] divide(id, two)
  one = u32[] constant(1)
  n = u32[] add(x, one)
  f = f32[] convert(n)
  b = f32[1,2] broadcast(f), dimensions={}
  ROOT r = f32[1,2] multiply(s, b)
}
ENTRY main {
  a = f32[2,4] parameter(0), sharding={devices=[2,2]<=[4]}
  l = f32[1,2] custom-call(a), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\", ?}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>"}
  c = f32[1,2] call(l), to_apply=body
  g = f32[2,2] custom-call(c), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.manual_axes="#sdy<manual_axes{\"x\", \"y\"}>",xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>"}
  ROOT n = f32[2,2] negate(g)
})";

// Each device's result, the whole parameter being 0, 1, ... 7.
std::vector<std::vector<float>> run(const char* text, std::string_view parameter, std::string_view result,
                                    bool& gathers) {
  std::unique_ptr<Module> module = parse(text)->clone();
  Shape whole = Shape::array(DType::kF32, {2, 4}), out = Shape::array(DType::kF32, {2, 2});
  Shards in_shards = read_shards(parameter, whole, 4), out_shards = read_shards(result, out, 4);
  inline_calls(*module, {});
  make_program_of_one_device(*module, {in_shards}, {out_shards});
  ModulePtr made(std::move(module));
  gathers = to_text(made).find("all-gather") != std::string::npos;
  Executable code = compile(made);
  const float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  Buffer all = Buffer::copy_of(values, whole);
  std::vector<std::vector<Buffer>> inputs;
  for (size_t d = 0; d < 4; ++d) inputs.push_back({cut_shard(all, in_shards, d)});
  std::vector<std::vector<float>> results;
  for (const auto& r : code.run_devices(inputs)) {
    const float* data = r.at(0).data<float>();
    results.emplace_back(data, data + r.at(0).shape().element_count());
  }
  return results;
}

using Results = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("shardy's words") {
  CHECK(frontend_attribute(R"({a="x,\"y\"}",b={c = <[1, 2]>},d="")", "a") == "x,\"y\"}");
  CHECK(frontend_attribute(R"({a="x",b={c = <[1, 2]>, e={}}})", "b") == "{c = <[1, 2]>, e={}}");
  Meshes meshes = read_meshes(R"({mesh = #sdy.mesh<["x"=2, "y"=4]>, other = #sdy.mesh<["z"=2], device_ids=[1, 0]>})");
  CHECK(meshes.at("other").devices == std::vector<int64_t>{1, 0});
  const Mesh& mesh = meshes.at("mesh");
  CHECK(groups_along(mesh, {"x"}) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups_along(mesh, {"x", "y"}) == Groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  auto read = read_named_shardings(
      R"(#sdy.sharding_per_value<[<@mesh, [{"y", "x"}, {?}]>, <@mesh, [{"y":(2)2}], replicated={"x"}>]>)", meshes, 8);
  REQUIRE(read.size() == 2);
  Shards both = shards_along(read[0], {"x", "y"}, 8), x = shards_along(read[0], {"x"}, 8),
         half = shards_along(read[1], {"y"}, 8);
  CHECK(both.tiles == std::vector<int64_t>{8, 1});
  CHECK(both.of == Groups{{0, 0}, {2, 0}, {4, 0}, {6, 0}, {1, 0}, {3, 0}, {5, 0}, {7, 0}});
  CHECK(x.of == Groups{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}});
  CHECK(half.of == Groups{{0}, {1}, {0}, {1}, {0}, {1}, {0}, {1}});
  CHECK_THROWS_AS(read_named_shardings(R"(#sdy.sharding_per_value<[<@none, []>]>)", meshes, 8), Error);
  auto sums = read_named_shardings(R"(#sdy.sharding_per_value<[<@mesh, [{"y"}], unreduced={"x"}>]>)", meshes, 8);
  CHECK(shards_along(sums[0], {"x", "y"}, 8).term == std::vector<int64_t>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(read_manual_axes(R"(#sdy<manual_axes{"x", "y"}>)") == std::vector<std::string>{"x", "y"});
}

TEST_CASE("a region's parts are taken from whole arrays and gathered into them") {
  bool gathers = false;
  const std::vector<float> whole = {-2, -4, -20, -24};
  CHECK(run(kProgram, "{replicated}", "{replicated}", gathers) == Results(4, whole));
  CHECK(gathers);
  CHECK(run(kProgram, "{devices=[1,4]<=[4]}", "{replicated}", gathers) == Results(4, whole));
}

TEST_CASE("parts that come as a region takes them are not gathered") {
  bool gathers = false;
  std::string text = kProgram;
  text.replace(text.find("negate(g)"), 9, "add(g, g)");
  // The result is computed from the whole one; the parameter is taken as it comes.
  CHECK(run(text.c_str(), "{devices=[2,2]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", gathers) ==
        Results{{4, 8}, {4, 8}, {40, 48}, {40, 48}});
  text.replace(text.find("ROOT n"), 6, "n");
  text.replace(text.find("  g = "), 6, "  ROOT g = ");
  CHECK(run(text.c_str(), "{devices=[2,2]<=[4]}", "{devices=[2,1,2]<=[4] last_tile_dim_replicate}", gathers) ==
        Results{{2, 4}, {2, 4}, {20, 24}, {20, 24}});
  CHECK(!gathers);
}

TEST_CASE("sums that are left to do are done where the whole array is asked for") {
  bool gathers = false;
  std::string text = kProgram;
  const std::string given = "[{\\\"x\\\"}, {}]>]>\"";
  text.replace(text.find(given), given.size(), "[{\\\"x\\\"}, {}], unreduced={\\\"y\\\"}>]>\"");
  CHECK(run(text.c_str(), "{replicated}", "{replicated}", gathers) == Results(4, {-4, -8, -40, -48}));
  // The first addend is all of an array that is no sum.
  CHECK(run(kProgram, "{replicated}", "{devices=[1,1,2,2]<=[4] last_tile_dims={replicated, unreduced}}", gathers) ==
        Results{{-2, -4, -20, -24}, {0, 0, 0, 0}, {-2, -4, -20, -24}, {0, 0, 0, 0}});
}

TEST_CASE("results are cut as what they are made of") {
  std::unique_ptr<Module> module = parse(kProgram)->clone();
  inline_calls(*module, {});
  const Shards cut = read_shards("{devices=[2,2]<=[4]}", Shape::array(DType::kF32, {2, 4}), 4);
  const ShardFlow flow(*module->entry(), meshes_of(*module), {cut}, 4);
  const Shards& rows = flow.of(*module->entry()->root());
  CHECK(rows == read_shards("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", Shape::array(DType::kF32, {2, 2}), 4));
  CHECK(sharding_proto(rows) == std::string("\x08\x03\x1a\x03\x02\x01\x02\x22\x04\x00\x01\x02\x03\x30\x01", 15));
}

TEST_CASE("shardings follow the dimensions") {
  std::unique_ptr<Module> module = parse(R"(HloModule m
second { x = f32[] parameter(0)  ROOT y = f32[] parameter(1) }
ENTRY e {
  a = f32[2,4,6] parameter(0)
  t = f32[6,2,4] transpose(a), dimensions={2,0,1}
  r = f32[6,2,4] reverse(t), dimensions={0}
  s = f32[6,2,3] slice(r), slice={[0:6], [0:2], [1:4]}
  one = s32[1] constant({1})
  u = f32[2,4,1] slice(a), slice={[0:2], [0:4], [0:1]}
  v = f32[2,4] reshape(u)
  w = f32[2,4,6] scatter(a, one, v), update_window_dims={0,1}, inserted_window_dims={2}, scatter_dims_to_operand_dims={2}, index_vector_dim=0, to_apply=second
  ROOT d = f32[6,2,6,2] dot(s, s), lhs_contracting_dims={2}, rhs_contracting_dims={2}
})")
                                       ->clone();
  const Shards cut = read_shards("{devices=[1,2,2]<=[4]}", Shape::array(DType::kF32, {2, 4, 6}), 4);
  const ShardFlow flow(*module->entry(), {}, {cut}, 4);
  CHECK(flow.of(*module->entry()->find("r")).tiles == std::vector<int64_t>{2, 1, 2});
  CHECK(flow.of(*module->entry()->find("s")).tiles == std::vector<int64_t>{2, 1, 1});
  CHECK(flow.of(*module->entry()->find("v")).tiles == std::vector<int64_t>{1, 2});
  CHECK(flow.of(*module->entry()->find("w")).whole());
  // The devices that cut one side's rows cannot cut the other's as well.
  CHECK(flow.of(*module->entry()->root()).tiles == std::vector<int64_t>{2, 1, 1, 1});
}

}  // namespace hlojit::pjrt
