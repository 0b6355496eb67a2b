// See reorder.h. The computation runs on all pairs, and on all triples in both associations.
#include "compiler/analysis/reorder.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "compiler/analysis/counting.h"
#include "compiler/eval/scalar_function.h"
#include "compiler/ir/combining.h"
#include "compiler/ir/module.h"

namespace hlojit {
namespace {

constexpr size_t kMaxElements = 48;  // a triple each: some 100,000 evaluations

/// Of parameters: comparisons, selections, extrema; logic on truth values only. No other constants than
/// those, as there is an order between them and the elements.
bool only_selects(const Computation& c) {
  auto is_truth = [](const Instruction* i) { return is_pred(i->shape.type); };
  for (const auto& i : c.instructions()) {
    if (i->is(Opcode::kTuple)) continue;
    bool logic = is_truth(i.get()) && std::ranges::all_of(i->operands(), is_truth) &&
                 (i->is(Opcode::kConstant) || is_elementwise(i->opcode));
    bool admitted = logic || i->is(Opcode::kParameter) || has_trait(*i, op_trait::kPicks);
    if (!admitted || !i->shape.is_scalar()) return false;
  }
  return true;
}

/// Of parameters: continuous arithmetic on floats, without numbers of its own, but for tests for NaN.
bool is_continuous(const Computation& c) {
  auto tests_nan = [](const Instruction* i) { return i->is(Opcode::kCompare) && i->operand(0) == i->operand(1); };
  auto admitted = [&](const Instruction* i) { return is_float(i->shape.type) || tests_nan(i); };
  return std::ranges::all_of(c.instructions(), [&](const auto& i) {
    const bool known = i->is(Opcode::kParameter) || (is_elementwise(i->opcode) && !has_trait(*i, op_trait::kJumps));
    return (known || tests_nan(i.get())) && admitted(i.get()) && std::ranges::all_of(i->operands(), admitted);
  });
}

constexpr double kNumbers[] = {0.25, 1, -2, 3.5};  // that arithmetic is tried on

Literal refuse_one() { throw Error(ErrorKind::kFailed, "not straight-line code"); }
const eval::RunComputation refuse = [](const Computation&, std::span<const Literal>) { return refuse_one(); };

/// Elements are numbered; an element is a value of each part, as a number of a sample.
class Trial {
 public:
  explicit Trial(const Computation& c) : function_(c, refuse) {
    parts_ = function_.result_count();
    valid_ = function_.parameter_count() == 2 * parts_;
    for (size_t p = 0; p < parts_ && valid_; ++p) {
      DType type = function_.parameter_type(p);
      valid_ = type == function_.result_type(p) && type == function_.parameter_type(parts_ + p) && !is_complex(type);
      samples_.push_back(samples(type));
      count_ *= samples_.back().size();
      valid_ = valid_ && count_ <= kMaxElements;
    }
    if (valid_) table_ = pairs();
  }

  bool valid() const { return valid_; }
  /// Combining is commutative and associative; `position` as in Reorder.
  bool reorders(int position) const {
    std::vector<size_t> f(count_ * count_);
    for (size_t a = 0; a < count_; ++a) {
      for (size_t b = 0; b < count_; ++b) {
        size_t straight = table_[a * count_ + b], crossed = table_[b * count_ + a];
        size_t& result = f[a * count_ + b] = straight;
        if (straight == crossed) continue;
        if (position < 0 || part(a, position) == part(b, position)) return false;
        if (part(b, position) < part(a, position)) result = crossed;
      }
    }
    for (size_t a = 0; a < count_; ++a) {
      for (size_t b = 0; b < count_; ++b) {
        for (size_t c = 0; c < count_; ++c) {
          if (f[f[a * count_ + b] * count_ + c] != f[a * count_ + f[b * count_ + c]]) return false;
        }
      }
    }
    return true;
  }
  /// Two whose parts `number` are equal give what they would if the first one's were less.
  bool takes_equal_as_less(int number) const {
    size_t scale = 1;
    for (int p = 0; p < number; ++p) scale *= samples_[static_cast<size_t>(p)].size();
    const auto n = static_cast<size_t>(number);
    for (size_t a = 0; a < count_; ++a) {
      for (size_t b = 0; b < count_; ++b) {
        if (part(a, n) != 0 || part(b, n) != 0) continue;
        const size_t result = table_[a * count_ + b + scale];
        if (result - part(result, n) * scale != table_[a * count_ + b]) return false;
      }
    }
    return true;
  }

 private:
  static std::vector<Literal> samples(DType type) {
    std::vector<Literal> list;
    for (int k = 0; k < (is_pred(type) ? 2 : 3); ++k) {
      Literal& l = list.emplace_back(Shape::scalar(type));
      is_float(type) ? l.set_double(0, 1 << k) : l.set_int(0, k);  // 1, 2, 4 every float type has
    }
    if (is_float(type)) {
      Literal nan(Shape::scalar(type));
      nan.set_double(0, std::numeric_limits<double>::quiet_NaN());
      if (std::isnan(nan.as_double(0))) list.push_back(std::move(nan));
    }
    return list;
  }

  /// Number of the sample that part `p` of `element` is. Ascending, NaN last.
  size_t part(size_t element, size_t p) const {
    for (size_t q = 0; q < p; ++q) element /= samples_[q].size();
    return element % samples_[p].size();
  }

  size_t find(size_t p, const std::byte* bytes) const {
    Literal got(samples_[p][0].shape());
    std::memcpy(got.bytes().data(), bytes, got.bytes().size());
    for (size_t k = 0; k < samples_[p].size(); ++k) {
      const Literal& s = samples_[p][k];
      bool both_nan = is_float(got.shape().type) && std::isnan(got.as_double(0)) && std::isnan(s.as_double(0));
      if (both_nan || std::ranges::equal(got.bytes(), s.bytes())) return k;
    }
    return 0;  // cannot be: selections make no values
  }

  /// f(a, b) for all elements.
  std::vector<size_t> pairs() {
    size_t n = count_ * count_;
    std::vector<std::vector<std::byte>> in(2 * parts_), out(parts_);
    for (size_t k = 0; k < 2 * parts_; ++k) {
      size_t p = k % parts_;
      for (size_t at = 0; at < n; ++at) {
        size_t element = k < parts_ ? at / count_ : at % count_;
        auto bytes = samples_[p][part(element, p)].bytes();
        in[k].insert(in[k].end(), bytes.begin(), bytes.end());
      }
    }
    std::vector<const void*> arguments;
    std::vector<void*> results;
    for (auto& v : in) arguments.push_back(v.data());
    for (size_t p = 0; p < parts_; ++p) {
      out[p].resize(in[p].size());
      results.push_back(out[p].data());
    }
    function_.run(static_cast<int64_t>(n), arguments.data(), results.data());
    std::vector<size_t> table(n);
    for (size_t at = 0; at < n; ++at) {
      size_t scale = 1;
      for (size_t p = 0; p < parts_; ++p) {
        table[at] += scale * find(p, out[p].data() + at * (out[p].size() / n));
        scale *= samples_[p].size();
      }
    }
    return table;
  }

  eval::ScalarFunction function_;
  size_t parts_ = 0, count_ = 1;
  bool valid_ = false;
  std::vector<std::vector<Literal>> samples_;
  std::vector<size_t> table_;
};

/// f(x[k], y[k]) of doubles, through the function's own type.
std::vector<double> results(eval::ScalarFunction& f, const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<int64_t>(x.size());
  Literal a(Shape::array(f.parameter_type(0), {n})), b = a, out = a;
  for (int64_t k = 0; k < n; ++k) {
    a.set_double(k, x[static_cast<size_t>(k)]);
    b.set_double(k, y[static_cast<size_t>(k)]);
  }
  const void* arguments[] = {a.bytes().data(), b.bytes().data()};
  void* result = out.bytes().data();
  f.run(n, arguments, &result);
  std::vector<double> values;
  for (int64_t k = 0; k < n; ++k) values.push_back(out.as_double(k));
  return values;
}

}  // namespace

bool regroups(const Computation& c) {
  if (combining_op(c)) return true;
  const Shape& type = c.root()->shape;
  if (!type.is_scalar() || !is_float(type.type) || !is_continuous(c)) return false;
  constexpr double kRounding = 0.05;  // narrow types have few bits
  std::vector<double> x, y, z;
  for (double a : kNumbers) {
    for (double b : kNumbers) {
      for (double d : kNumbers) x.push_back(a), y.push_back(b), z.push_back(d);
    }
  }
  try {
    eval::ScalarFunction f(c, refuse);
    if (f.parameter_count() != 2 || f.parameter_type(0) != type.type) return false;
    if (results(f, x, y) != results(f, y, x)) return false;
    const std::vector<double> left = results(f, results(f, x, y), z), right = results(f, x, results(f, y, z));
    return std::ranges::equal(
        left, right, [&](double l, double r) { return std::fabs(l - r) <= kRounding * std::max(std::fabs(l), 1.0); });
  } catch (const Error&) {
    return false;
  }
}

bool is_neutral(const Literal& number, const Computation& regrouped) {
  std::vector<double> x(std::begin(kNumbers), std::end(kNumbers));
  x.push_back(number.as_double(0));
  eval::ScalarFunction f(regrouped, refuse);
  return results(f, x, std::vector<double>(x.size(), x.back())) == x;
}

Reorder selection_order(const Instruction& reduce) {
  if (!reduce.is(Opcode::kReduce) || !only_selects(*reduce.to_apply())) return {};
  Trial trial(*reduce.to_apply());
  if (!trial.valid()) return {};
  Reorder order{trial.reorders(-1), -1, -1};
  const Ints& reduced = reduce.attrs.dimensions;
  const size_t values = reduce.operand_count() / 2;
  for (size_t k = 0; k < values && reduced.size() == 1; ++k) {
    if (!counts_along(*reduce.operand(k), reduced[0])) continue;
    const int number = static_cast<int>(k);
    if (!order.allowed && trial.reorders(number)) order.allowed = true, order.position = number;
    // The first element's is 0.
    const Instruction* initial = reduce.operand(values + k);
    const bool before = initial->is(Opcode::kConstant) && initial->literal->as_int(0) <= 0;
    if (order.numbers < 0 && before && trial.takes_equal_as_less(number)) order.numbers = number;
  }
  return order;
}

}  // namespace hlojit
