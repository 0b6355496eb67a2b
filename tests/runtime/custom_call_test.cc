// Custom calls through the C++ API: what a maker is told, what a call is given, and how either
// refuses.
#include <hlojit/custom_call.h>
#include <hlojit/hlojit.h>

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

constexpr const char* kProgram = R"(HloModule m
ENTRY e {
  x = f32[2,3] parameter(0)
  y = (f32[2,3], s32[]) custom-call(x), custom_call_target="test.twice",
      operand_layout_constraints={f32[2,3]{0,1}}, api_version=API_VERSION_TYPED_FFI,
      backend_config={factor = 2 : i32}
  a = f32[2,3] get-tuple-element(y), index=0
  ROOT t = (f32[2,3], (f32[2,3], s32[])) tuple(a, y)
})";

// Removes the registration at the end of a case.
struct Registered {
  std::string target;
  Registered(std::string name, CustomCallMaker maker) : target(std::move(name)) {
    register_custom_call(target, std::move(maker));
  }
  ~Registered() { register_custom_call(target, {}); }
};

std::vector<Buffer> run(const char* program) {
  static const float x[6] = {1, 2, 3, 4, 5, 6};
  return compile(parse(program)).run({Buffer::borrow(x, Shape::parse("f32[2,3]{1,0}"))});
}

std::string error_of(const char* program) {
  try {
    run(program);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

TEST_CASE("a registered call is told its shapes, layouts and attributes") {
  int made = 0;
  Registered twice("test.twice", [&](const CustomCallSite& site) -> CustomCallFunction {
    ++made;
    CHECK(site.target == "test.twice");
    CHECK(site.api_version == "API_VERSION_TYPED_FFI");
    CHECK(site.backend_config == "{factor = 2 : i32}");
    REQUIRE(site.operands.size() == 1);
    CHECK(site.operands[0] == Shape::parse("f32[2,3]{0,1}"));
    REQUIRE(site.results.size() == 2);
    CHECK(site.results[1] == Shape::parse("s32[]"));
    return [](const CustomCallRun& call) -> std::string {
      const auto* in = static_cast<const float*>(call.operands[0]);
      auto* out = static_cast<float*>(call.results[0]);
      call.parallel(2, [&](int64_t row) {  // column-major in, row-major out
        for (int64_t column = 0; column < 3; ++column) out[row * 3 + column] = 2 * in[column * 2 + row];
      });
      *static_cast<int32_t*>(call.results[1]) = call.threads > 0 ? 7 : 0;
      return {};
    };
  });
  std::vector<Buffer> results = run(kProgram);
  REQUIRE(results.size() == 3);
  for (size_t leaf : {0, 1}) {
    for (int k = 0; k < 6; ++k) CHECK(results[leaf].data<float>()[k] == 2.0f * static_cast<float>(k + 1));
  }
  CHECK(results[2].data<int32_t>()[0] == 7);
  CHECK(made >= 1);  // checking what is supported asks, too
}

TEST_CASE("a call that fails says so, with its name") {
  Registered fails("test.twice", [](const CustomCallSite&) -> CustomCallFunction {
    return [](const CustomCallRun&) -> std::string { return "no luck"; };
  });
  CHECK(error_of(kProgram).find("custom call \"test.twice\": no luck") != std::string::npos);
}

TEST_CASE("a call that throws does not leave through native code") {
  Registered throws("test.twice", [](const CustomCallSite&) -> CustomCallFunction {
    return [](const CustomCallRun&) -> std::string { throw std::runtime_error("thrown"); };
  });
  CHECK(error_of(kProgram).find("thrown") != std::string::npos);
}

TEST_CASE("a maker may refuse when compiling; nobody is refused by name") {
  {
    Registered refuses("test.twice", [](const CustomCallSite&) -> CustomCallFunction {
      throw Error(ErrorKind::kUnsupported, "only for squares");
    });
    CHECK(error_of(kProgram).find("only for squares") != std::string::npos);
  }
  CHECK(error_of(kProgram).find("no registered implementation of custom call \"test.twice\"") != std::string::npos);
}

}  // namespace
}  // namespace hlojit
