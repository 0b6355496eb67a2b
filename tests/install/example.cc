// The example of the README, built against an installed hlojit; the last lines show that an error of
// the library can be caught by its type across the boundary of the shared library.
#include <hlojit/hlojit.h>
#include <layout/dtype.h>

#include <cstdio>

static_assert(USERS_OWN_DTYPE);

int main() {
  auto module = hlojit::parse(R"(
    HloModule twice
    ENTRY e {
      p = f32[3]{0} parameter(0)
      ROOT r = f32[3]{0} add(p, p)
    })");
  auto executable = hlojit::compile(module, hlojit::Options{});
  float data[] = {1, 2, 3};
  auto out = executable.run({hlojit::Buffer::borrow(data, hlojit::Shape::parse("f32[3]"))});
  const float* twice = out[0].data<float>();
  std::printf("%g %g %g\n", twice[0], twice[1], twice[2]);

  try {
    hlojit::parse("HloModule m\nENTRY e { ROOT r = f32[3]{0} frobnicate() }");
  } catch (const hlojit::Error& error) {
    std::printf("caught: %s\n", error.what());
  }
}
