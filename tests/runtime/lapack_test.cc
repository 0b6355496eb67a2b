// LAPACK's functions as JAX calls them: what a factorisation gives, put together, is the matrix again.
#include <hlojit/hlojit.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace hlojit {
namespace {

// A column-major 3x2 or 3x3 matrix in, the leaves of one call out.
std::vector<Buffer> call(const std::string& target, const std::string& operands, const std::string& result,
                         const std::string& config, std::vector<Buffer> inputs) {
  std::string text = "HloModule m\nENTRY e {\n", names, types;
  size_t number = 0;
  for (size_t from = 0; from < operands.size();) {
    size_t end = std::min(operands.find(' ', from), operands.size());
    std::string type = operands.substr(from, end - from), name = "p" + std::to_string(number);
    text += name + " = " + type + " parameter(" + std::to_string(number++) + ")\n";
    names += (names.empty() ? "" : ", ") + name;
    types += (types.empty() ? "" : ", ") + type;
    from = end + 1;
  }
  text += "ROOT r = " + result + " custom-call(" + names + "), custom_call_target=\"" + target +
          "\", operand_layout_constraints={" + types +
          "}, api_version=API_VERSION_TYPED_FFI, backend_config=" + config + "\n}\n";
  return compile(parse(text)).run(std::move(inputs));
}

const float kMatrix[6] = {3, 0, 4, 1, 2, -1};  // columns (3, 0, 4) and (1, 2, -1)
const float kSymmetric[9] = {4, 1, 2, 1, 3, 0, 2, 0, 5};

TEST_CASE("gesvd: u s vt is the matrix") {
  auto out =
      call("lapack_sgesvd_ffi", "f32[3,2]{0,1}", "(f32[3,2]{0,1}, f32[2]{0}, f32[3,2]{0,1}, f32[2,2]{0,1}, s32[])",
           "{mode = 83 : ui8}", {Buffer::copy_of(kMatrix, Shape::parse("f32[3,2]{0,1}"))});
  const float *s = out[1].data<float>(), *u = out[2].data<float>(), *vt = out[3].data<float>();
  CHECK(*out[4].data<int32_t>() == 0);
  CHECK(s[0] >= s[1]);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      float sum = u[i] * s[0] * vt[2 * j] + u[3 + i] * s[1] * vt[2 * j + 1];
      CHECK(sum == doctest::Approx(kMatrix[3 * j + i]).epsilon(1e-4));
    }
  }
}

TEST_CASE("XLA's Qr and its reflectors: q r is the matrix") {
  auto out = compile(parse(R"(HloModule m
ENTRY e {
  x = f32[3,2]{0,1} parameter(0)
  qr = (f32[3,2], f32[2]) custom-call(x), custom_call_target="Qr"
  a = f32[3,2] get-tuple-element(qr), index=0
  taus = f32[2] get-tuple-element(qr), index=1
  q = f32[3,2] custom-call(a, taus), custom_call_target="ProductOfElementaryHouseholderReflectors"
  ROOT t = (f32[3,2]{0,1}, f32[3,2]{0,1}) tuple(q, a)
})"))
                 .run({Buffer::copy_of(kMatrix, Shape::parse("f32[3,2]{0,1}"))});
  const float *q = out[0].data<float>(), *r = out[1].data<float>();
  for (int i = 0; i < 3; ++i) {
    CHECK(q[i] * r[0] == doctest::Approx(kMatrix[i]).epsilon(1e-4));
    CHECK(q[i] * r[3] + q[3 + i] * r[4] == doctest::Approx(kMatrix[3 + i]).epsilon(1e-4));
  }
}

TEST_CASE("XLA's Eigh: the named triangle, values ascending, NaN where it finds none") {
  const float kNan = std::nanf("");
  for (const char* lower : {"1", "0"}) {
    float matrix[8] = {2, 1, 7, 2, kNan, 1, 7, 2};  // symmetric in the triangle that is read
    if (lower[0] == '1') std::swap(matrix[1], matrix[2]), std::swap(matrix[5], matrix[6]);
    auto out = compile(parse(std::string(R"(HloModule m
ENTRY e {
  x = f32[2,2,2]{2,1,0} parameter(0)
  ROOT vw = (f32[2,2,2], f32[2,2]) custom-call(x), custom_call_target="Eigh", backend_config=")") +
                             lower + ",1,100,0.000001\"\n}"))
                   .run({Buffer::copy_of(matrix, Shape::parse("f32[2,2,2]"))});
    const float *v = out[0].data<float>(), *w = out[1].data<float>();
    CHECK(w[0] == doctest::Approx(1));
    CHECK(w[1] == doctest::Approx(3));
    CHECK(v[0] * v[2] < 0);  // (1, -1) and (1, 1) in columns
    CHECK(v[1] * v[3] > 0);
    CHECK(std::isnan(w[2]));
    CHECK(std::isnan(v[7]));
  }
}

TEST_CASE("geqp3: the column of the largest norm comes first") {
  const int32_t free[2] = {0, 0};
  auto out =
      call("lapack_sgeqp3_ffi", "f32[3,2]{0,1} s32[2]{0}", "(f32[3,2]{0,1}, s32[2]{0}, f32[2]{0})", "{}",
           {Buffer::copy_of(kMatrix, Shape::parse("f32[3,2]{0,1}")), Buffer::copy_of(free, Shape::parse("s32[2]"))});
  CHECK(std::abs(out[0].data<float>()[0]) == doctest::Approx(5));
  CHECK(out[1].data<int32_t>()[0] == 1);
  CHECK(out[1].data<int32_t>()[1] == 2);
}

TEST_CASE("sytrd: the tridiagonal form has the same trace and norm") {
  auto out = call("lapack_ssytrd_ffi", "f32[3,3]{0,1}", "(f32[3,3]{0,1}, f32[3]{0}, f32[2]{0}, f32[2]{0}, s32[])",
                  "{uplo = 76 : ui8}", {Buffer::copy_of(kSymmetric, Shape::parse("f32[3,3]{0,1}"))});
  const float *d = out[1].data<float>(), *e = out[2].data<float>();
  CHECK(d[0] + d[1] + d[2] == doctest::Approx(12));
  CHECK(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 2 * (e[0] * e[0] + e[1] * e[1]) == doctest::Approx(60));
  CHECK(*out[4].data<int32_t>() == 0);
}

TEST_CASE("several matrices at a time are solved as one after the other") {
  auto program = parse(R"(HloModule m
    ENTRY e {
      a = f32[64,16,16] parameter(0)
      i = s32[16,16] iota(), iota_dimension=0
      j = s32[16,16] iota(), iota_dimension=1
      d = pred[16,16] compare(i, j), direction=EQ
      f = f32[16,16] convert(d)
      six = f32[16,16] broadcast(f32[] constant(6)), dimensions={}
      g = f32[16,16] multiply(f, six)
      h = f32[64,16,16] broadcast(g), dimensions={1,2}
      m = f32[64,16,16] add(a, h)
      b = f32[64,16,8] parameter(1)
      ROOT x = f32[64,16,8] triangular-solve(m, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
    })");
  std::vector<float> a(64 * 16 * 16), b(64 * 16 * 8);
  for (size_t k = 0; k < a.size(); ++k) a[k] = static_cast<float>(k * 7919 % 1000) / 500 - 1;
  for (size_t k = 0; k < b.size(); ++k) b[k] = static_cast<float>(k * 104729 % 1000) / 500 - 1;
  auto solved = [&](const Executable& e) {
    auto out = e.run({Buffer::copy_of(a.data(), Shape::parse("f32[64,16,16]")),
                      Buffer::copy_of(b.data(), Shape::parse("f32[64,16,8]"))});
    return std::vector<float>(out[0].data<float>(), out[0].data<float>() + b.size());
  };
  Options alone, together;
  alone.threads = 1;
  together.threads = 2;
  const std::vector<float> expected = solved(compile(program, alone));
  const Executable e = compile(program, together);
  int wrong = 0;
  for (int call = 0; call < 300; ++call) wrong += solved(e) != expected;
  CHECK(wrong == 0);
}

TEST_CASE("complex forms take their scratch") {
  const float a[8] = {2, 0, 0, 1, 0, -1, 3, 0};  // {{2, -i}, {i, 3}}, Hermitian
  Buffer matrix = Buffer::copy_of(a, Shape::parse("c64[2,2]{0,1}"));
  auto svd = call("lapack_cgesvd_ffi", "c64[2,2]{0,1}",
                  "(c64[2,2]{0,1}, f32[2]{0}, c64[2,2]{0,1}, c64[2,2]{0,1}, s32[])", "{mode = 65 : ui8}", {matrix});
  CHECK(svd[1].data<float>()[0] * svd[1].data<float>()[1] == doctest::Approx(5));
  auto tri = call("lapack_chetrd_ffi", "c64[2,2]{0,1}", "(c64[2,2]{0,1}, f32[2]{0}, f32[1]{0}, c64[1]{0}, s32[])",
                  "{uplo = 76 : ui8}", {matrix});
  CHECK(tri[1].data<float>()[0] + tri[1].data<float>()[1] == doctest::Approx(5));
  CHECK(std::abs(tri[2].data<float>()[0]) == doctest::Approx(1));
  const int32_t free[2] = {0, 0};
  auto qr = call("lapack_cgeqp3_ffi", "c64[2,2]{0,1} s32[2]{0}", "(c64[2,2]{0,1}, s32[2]{0}, c64[2]{0})", "{}",
                 {matrix, Buffer::copy_of(free, Shape::parse("s32[2]"))});
  CHECK(qr[1].data<int32_t>()[0] == 2);
}

}  // namespace
}  // namespace hlojit
