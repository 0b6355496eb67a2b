// Every access relation against the evaluator: each result element is put together from its relation, on
// numbers, and must be what the op means.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "compiler/analysis/access.h"
#include "compiler/eval/evaluator.h"
#include "compiler/text/parser.h"

namespace hlojit::test {
namespace {

constexpr std::string_view kReducers = R"(
add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT s = s32[] add(a, b) }
)";

using Numbers = std::vector<int64_t>;

int64_t flat(const Ints& dims, const Numbers& index) {
  int64_t at = 0;
  for (size_t d = 0; d < dims.size(); ++d) at = at * dims[d] + index[d];
  return at;
}

void for_each(const Ints& dims, const std::function<void(const Numbers&)>& f) {
  Numbers index(dims.size(), 0);
  for (int64_t n : dims) {
    if (n == 0) return;
  }
  for (;;) {
    f(index);
    size_t d = dims.size();
    while (d > 0 && ++index[d - 1] == dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

Coords variables(const Ints& dims, VarSource& vars) {
  Coords c;
  for (int64_t n : dims) c.push_back(IndexExpr::var(vars.fresh(), n));
  return c;
}

/// Relations by number: `values` holds the variables' values.
class Check {
 public:
  Check(const Instruction& op, std::vector<Literal> operands) : op_(op), operands_(std::move(operands)) {
    result_ = variables(op.shape.dims, vars_);
    reduced_ = variables(reduction_sizes(op), vars_);
    relation_ = access_relation(op, result_, reduced_, vars_);
    values_.resize(static_cast<size_t>(vars_.fresh()));
  }

  void run(const Literal& expected) {
    for_each(op_.shape.dims, [&](const Numbers& at) {
      for (size_t d = 0; d < at.size(); ++d) values_[d] = at[d];
      int64_t got = is_reduction(op_) ? combined() : moved(relation_);
      INFO(op_.name, " element ", flat(op_.shape.dims, at));
      CHECK(got == expected.as_int(flat(op_.shape.dims, at)));
    });
  }

 private:
  int64_t number(const IndexExpr& e) const { return e.evaluate(values_); }
  Numbers numbers(const Coords& c) const {
    Numbers n;
    for (const IndexExpr& e : c) n.push_back(number(e));
    return n;
  }
  int64_t element(size_t operand, const Coords& c) const {
    Numbers at = numbers(c);
    const Ints& dims = operands_[operand].shape().dims;
    REQUIRE(at.size() == dims.size());
    for (size_t d = 0; d < at.size(); ++d) REQUIRE((at[d] >= 0 && at[d] < dims[d]));
    return operands_[operand].as_int(flat(dims, at));
  }
  bool applies(const Read& r) const {
    for (const Guard& g : r.guards) {
      int64_t v = number(g.expr);
      if (v < g.lo || v >= g.hi) return false;
    }
    return true;
  }
  int64_t moved(const AccessRelation& relation) {
    for (const Symbol& s : relation.symbols) {
      values_[static_cast<size_t>(s.var)] = std::clamp(element(s.operand, s.coords), s.clamp.lo, s.clamp.hi);
    }
    for (const Read& r : relation.reads) {
      if (applies(r)) return element(r.operand, r.coords);
    }
    REQUIRE(relation.fill);
    return element(*relation.fill, {});
  }
  // Sums of elements, or of products of two factors.
  int64_t combined() {
    auto inits = initial_values(op_);
    int64_t sum = inits.empty() ? 0 : operands_.back().as_int(0);
    for_each(reduction_sizes(op_), [&](const Numbers& k) {
      for (size_t d = 0; d < k.size(); ++d) values_[result_.size() + d] = k[d];
      int64_t product = 1;
      for (const Read& r : relation_.reads) {
        if (!applies(r)) return;
        product *= element(r.operand, r.coords);
      }
      sum += product;
    });
    return sum;
  }

  const Instruction& op_;
  std::vector<Literal> operands_;
  VarSource vars_;
  Coords result_, reduced_;
  AccessRelation relation_;
  std::vector<int64_t> values_;
};

/// The root of a computation of s32 parameters, which hold 1, 2, 3, ...
void check(std::string_view body) {
  auto module = parse_module(std::string(kReducers) + "ENTRY e {\n" + std::string(body) + "\n}\n");
  std::vector<Literal> arguments;
  for (const Instruction* p : module->entry()->parameters()) {
    arguments.emplace_back(p->shape);
    auto data = arguments.back().data<int32_t>();
    for (size_t k = 0; k < data.size(); ++k) data[k] = static_cast<int32_t>(k) + 1;
  }
  const Instruction& root = *module->entry()->root();
  std::vector<Literal> operands;
  for (const Instruction* o : root.operands()) {
    operands.push_back(o->is(Opcode::kConstant) ? *o->literal
                                                : arguments.at(static_cast<size_t>(o->attrs.parameter_number)));
  }
  Check(root, operands).run(evaluate(*module->entry(), arguments));
}

std::string one(std::string_view shape, std::string_view op) {
  return "x = s32" + std::string(shape) + " parameter(0) ROOT r = s32" + std::string(op);
}

}  // namespace

TEST_CASE("fixed movement") {
  check(one("[2,3]", "[3,4,2] broadcast(x), dimensions={2,0}"));
  check(one("[4,6]", "[3,8] reshape(x)"));
  check(one("[2,3,4]", "[4,2,3] transpose(x), dimensions={2,0,1}"));
  check(one("[9,5]", "[3,2] slice(x), slice={[1:9:3], [2:4]}"));
  check(one("[3,4,2]", "[3,4,2] reverse(x), dimensions={0,2}"));
  check(one("[2,3]{0,1}", "[3,2]{0,1} bitcast(x)"));
  check(one("[2,3]{0,1}", "[3,2] bitcast(x)"));
  check(
      "x = s32[2,3] parameter(0) y = s32[2,0] parameter(1) z = s32[2,2] parameter(2) "
      "ROOT r = s32[2,5] concatenate(x, y, z), dimensions={1}");
}

TEST_CASE("pads") {
  for (const char* padding :
       {"[8] pad(x, v), padding=2_2", "[3] pad(x, v), padding=-1_0", "[10] pad(x, v), padding=1_2_1",
        "[6] pad(x, v), padding=-1_0_1", "[5] pad(x, v), padding=2_-7_2", "[16] pad(x, v), padding=5_7"}) {
    check("x = s32[4] parameter(0) v = s32[] constant(9) ROOT r = s32" + std::string(padding));
  }
  check("x = s32[2,3] parameter(0) v = s32[] constant(9) ROOT r = s32[5,4] pad(x, v), padding=1_1_1x-1_2");
  check("x = s32[0] parameter(0) v = s32[] constant(9) ROOT r = s32[3] pad(x, v), padding=2_1_3");
}

TEST_CASE("starts known at run time") {
  for (const char* start : {"constant({1, 2})", "constant({-4, 9})", "constant({9, -1})"}) {
    std::string vector = "i = s32[2] " + std::string(start);
    check("x = s32[3,5] parameter(0) " + vector + " ROOT r = s32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}");
    check("x = s32[3,5] parameter(0) u = s32[3,2] parameter(1) " + vector +
          " ROOT r = s32[3,5] dynamic-update-slice(x, u, i)");
  }
  check("x = s32[9] parameter(0) i = u8[] constant(255) ROOT r = s32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}");
  check(
      "x = s32[9] parameter(0) u = s32[0] parameter(1) i = s8[] constant(-3) "
      "ROOT r = s32[9] dynamic-update-slice(x, u, i)");
}

TEST_CASE("gathers") {
  check(
      "x = s32[3,4] parameter(0) i = s32[4,2] constant({{0,0},{-5,1},{2,3},{100,-100}}) "
      "ROOT r = s32[4,2,2] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, "
      "index_vector_dim=1, slice_sizes={2,2}");
  check(
      "x = s32[3,4] parameter(0) i = s32[2,3] constant({{3,0,2},{0,1,2}}) "
      "ROOT r = s32[3] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, "
      "index_vector_dim=0, slice_sizes={1,1}");
  // Batch dims before and behind the index vector's.
  check(
      "x = s32[2,3,4] parameter(0) i = s32[2,1,3] constant({{{3,0,1}},{{2,2,9}}}) "
      "ROOT r = s32[2,3] gather(x, i), offset_dims={}, collapsed_slice_dims={2}, start_index_map={2}, "
      "operand_batching_dims={0,1}, start_indices_batching_dims={0,2}, index_vector_dim=1, slice_sizes={1,1,1}");
}

TEST_CASE("reductions and windows") {
  check(
      "x = s32[2,3,4] parameter(0) z = s32[] constant(5) ROOT r = s32[3] reduce(x, z), dimensions={2,0}, to_apply=add");
  for (const char* window :
       {"[3] reduce-window(x, z), window={size=3 stride=2 pad=1_1}",
        "[3] reduce-window(x, z), window={size=2 rhs_dilate=2}",
        "[8] reduce-window(x, z), window={size=2 lhs_dilate=2}", "[4] reduce-window(x, z), window={size=3 pad=-1_2}",
        "[0] reduce-window(x, z), window={size=7}", "[1] reduce-window(x, z), window={size=9 pad=2_2}"}) {
    check("x = s32[5] parameter(0) z = s32[] constant(1) ROOT r = s32" + std::string(window) + ", to_apply=add");
  }
}

TEST_CASE("contractions") {
  check(
      "x = s32[2,3,4] parameter(0) y = s32[4,5,2] parameter(1) ROOT r = s32[2,3,5] dot(x, y), lhs_batch_dims={0}, "
      "rhs_batch_dims={2}, lhs_contracting_dims={2}, rhs_contracting_dims={0}");
  for (const char* window :
       {"[1,1,3] convolution(x, w), window={size=3}", "[1,1,3] convolution(x, w), window={size=3 rhs_reversal=1}",
        "[1,1,3] convolution(x, w), window={size=3 stride=2 pad=1_1}",
        "[1,1,7] convolution(x, w), window={size=3 lhs_dilate=2}",
        "[1,1,1] convolution(x, w), window={size=3 pad=-1_-1}",
        "[1,1,1] convolution(x, w), window={size=3 rhs_dilate=2}"}) {
    check("x = s32[1,1,5] parameter(0) w = s32[1,1,3] parameter(1) ROOT r = s32" + std::string(window) +
          ", dim_labels=bf0_oi0->bf0");
  }
  check(
      "x = s32[1,3,4] parameter(0) w = s32[2,2,4] parameter(1) ROOT r = s32[1,2,4] convolution(x, w), window={size=2}, "
      "dim_labels=b0f_0io->b0f, feature_group_count=2");
  check(
      "x = s32[4,3,1] parameter(0) w = s32[2,1,4] parameter(1) ROOT r = s32[2,2,4] convolution(x, w), window={size=2}, "
      "dim_labels=b0f_0io->b0f, batch_group_count=2");
  check(
      "x = s32[4,3] parameter(0) w = s32[3,2] parameter(1) ROOT r = s32[4,2] convolution(x, w), dim_labels=bf_io->bf");
}

TEST_CASE("an elementwise op reads its own element, a move does not") {
  auto module = parse_module(R"(ENTRY e {
    x = s32[2,3] parameter(0)
    n = s32[2,3] negate(x)
    v = s32[2,3] reverse(x), dimensions={1}
    ROOT o = (s32[2,3], s32[2,3]) tuple(n, v) })");
  CHECK(reads_own_element(*module->entry()->find("n"), 0));
  CHECK(!reads_own_element(*module->entry()->find("v"), 0));
}

}  // namespace hlojit::test
