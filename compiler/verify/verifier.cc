// The verifier: what rule_list.h promises, checked for a whole module.
//
// One walk over the computations in their order (callees first) and over their instructions in
// theirs (operands first), so that each check looks only at what has been checked. An op's own rule
// is the function that also infers shapes; here stand the rules that need more than one
// instruction's operands: names, order, calls, pairs, the entry's interface.
//
// A broken shape or computation is remembered, and whatever rests on it is passed over: one
// mistake, one finding.
#include "compiler/verify/verifier.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "compiler/verify/rules.h"
#include "compiler/verify/shape_inference.h"
#include "compiler/verify/sharding.h"
#include "layout/index.h"

namespace hlojit {
namespace {

using rules::list;

// Halves of asynchronous ops: `first` is used by one instruction, which is `second`. Between
// async-start and async-done there may be a chain of async-update.
struct Pair {
  Opcode first, second;
};
constexpr Pair kPairs[] = {
    {Opcode::kSend, Opcode::kSendDone},
    {Opcode::kRecv, Opcode::kRecvDone},
    {Opcode::kCopyStart, Opcode::kCopyDone},
    {Opcode::kAsyncStart, Opcode::kAsyncDone},
    {Opcode::kAsyncUpdate, Opcode::kAsyncDone},
    {Opcode::kAllReduceStart, Opcode::kAllReduceDone},
    {Opcode::kAllGatherStart, Opcode::kAllGatherDone},
    {Opcode::kCollectivePermuteStart, Opcode::kCollectivePermuteDone},
};

// The array at an index of a shape, or null.
const Shape* leaf_at(const Shape& shape, const Ints& index) {
  const Shape* at = rules::subshape(shape, index);
  return at && at->is_array() ? at : nullptr;
}

// The async-start at the other end of a chain of updates; null if there is none.
const Instruction* chain_start(const Instruction& i) {
  const Instruction* at = &i;
  while (at->is(Opcode::kAsyncUpdate) || at->is(Opcode::kAsyncDone)) at = at->operand(0);
  return at->is(Opcode::kAsyncStart) ? at : nullptr;
}

// The op that an async instruction wraps: by name in the short form, else what is computed last.
std::string_view wrapped_name(const Instruction& i) {
  std::string_view name = text_attribute(i.attrs, "wrapped-op");
  return name.empty() && !i.called.empty() ? op_name(i.to_apply()->root()->opcode) : name;
}

std::string thread_of(const Computation& c) {
  return '"' + (c.execution_thread.empty() ? "main" : c.execution_thread) + '"';
}

std::string execution_thread(const Instruction& start) {
  std::string_view given = text_attribute(start.attrs, "async_execution_thread");
  if (!given.empty()) return std::string(given);
  return start.called.empty() ? "\"main\"" : thread_of(*start.to_apply());
}

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  std::vector<Diagnostic> run() {
    std::unordered_set<std::string_view> names;
    for (const auto& c : module_.computations()) {
      if (!names.insert(c->name).second) {
        report(*c, "name-unique", fmt::format("there are two computations {}", c->name));
      }
      check_computation(*c);
      checked_.insert(c.get());
    }
    check_entry();
    return in_text_order();
  }

 private:
  // ---- findings ----

  // Findings in the order of the text; of the walk, if not all have a place in it.
  std::vector<Diagnostic> in_text_order() {
    bool located = std::ranges::all_of(found_, [](const auto& d) { return d.location.known(); });
    if (!located) return std::move(found_);
    std::multimap<std::pair<int, int>, Diagnostic> by_place;
    for (Diagnostic& d : found_) {
      by_place.emplace(std::pair(d.location.line, d.location.column), std::move(d));
    }
    std::vector<Diagnostic> sorted;
    for (auto& [place, d] : by_place) sorted.push_back(std::move(d));
    return sorted;
  }

  void report(const Instruction& at, RuleId rule, std::string message, std::string details = {}) {
    report(at.location, at.name, rule, std::move(message), std::move(details));
  }
  void report(const Computation& at, RuleId rule, std::string message, std::string details = {}) {
    report(at.location, at.name, rule, std::move(message), std::move(details));
  }
  void report(Location where, std::string name, std::string_view rule, std::string message, std::string details = {}) {
    found_.push_back({where, std::move(name), std::string(rule), std::move(message), std::move(details)});
  }

  // ---- computations ----

  void check_computation(const Computation& c) {
    size_t before = found_.size();
    if (!c.root() || c.root()->parent() != &c) {
      report(c, "root", fmt::format("computation {} has no root of its own", c.name));
    }
    check_parameters(c);
    if (found_.size() > before) broken_.insert(&c);

    std::unordered_set<std::string_view> names;
    std::unordered_set<const Instruction*> seen;
    names.reserve(c.instructions().size());
    seen.reserve(c.instructions().size());
    for (const auto& i : c.instructions()) {
      if (!names.insert(i->name).second) {
        report(*i, "name-unique", fmt::format("there are two instructions {} in {}", i->name, c.name));
      }
      bool sound = check_order(*i, seen) && check_calls(*i);
      seen.insert(i.get());
      if (!check_shape(*i)) {
        broken_values_.insert(i.get());
        continue;
      }
      sound = sound &&
              std::ranges::none_of(i->operands(), [&](const Instruction* o) { return broken_values_.contains(o); });
      if (sound && check_op(*i)) check_pair(*i);
    }
    if (c.root() && broken_values_.contains(c.root())) broken_.insert(&c);
    for (const Instruction* p : c.parameters()) {
      if (p && broken_values_.contains(p)) broken_.insert(&c);
    }
  }

  void check_parameters(const Computation& c) {
    const auto& parameters = c.parameters();
    size_t count = 0;
    for (const auto& i : c.instructions()) {
      if (!i->is(Opcode::kParameter)) continue;
      ++count;
      int64_t n = i->attrs.parameter_number;
      if (n < 0 || n >= static_cast<int64_t>(parameters.size()) || parameters[n] != i.get()) {
        report(*i, "parameter-numbers", fmt::format("parameter number {} of {} is given twice", n, c.name));
      }
    }
    if (count < parameters.size()) {
      report(c, "parameter-numbers",
             fmt::format("{} has {} parameters numbered up to {}", c.name, count, parameters.size() - 1));
    }
  }

  // Operands and control predecessors are of the same computation and stand before their user.
  bool check_order(const Instruction& i, const std::unordered_set<const Instruction*>& seen) {
    auto check = [&](const Instruction* o, std::string_view what) {
      if (seen.contains(o)) return true;
      if (o == &i) {
        report(i, "operand-order", fmt::format("{} is its own {}", i.name, what));
      } else if (o->parent() != i.parent()) {
        report(i, "operand-order", fmt::format("{} {} is in another computation", what, o->name));
      } else {
        report(i, "operand-order", fmt::format("{} {} does not come before its user", what, o->name));
      }
      return false;
    };
    bool good = true;
    for (const Instruction* o : i.operands()) good = check(o, "operand") && good;
    for (const Instruction* p : i.control_predecessors) {
      good = check(p, "control predecessor") && good;
    }
    return good;
  }

  // False if the rule of the op cannot be asked about what it calls.
  bool check_calls(const Instruction& i) {
    bool good = true;
    for (const Computation* c : i.called) {
      if (c && c == module_.entry()) {
        report(i, "entry", fmt::format("{} calls the entry computation {}", i.name, c->name));
        good = false;
      } else if (!checked_.contains(c)) {
        report(i, "call-order",
               fmt::format("{} calls {}, which does not come before it", i.name, c ? c->name : "nothing"));
        good = false;
      } else if (c->execution_thread != i.parent()->execution_thread && runs_calls(i)) {
        report(i, "execution-thread",
               fmt::format("{} runs on {}, the computation {} that it calls on {}", i.name, thread_of(*i.parent()),
                           c->name, thread_of(*c)));
      }
      good = good && !broken_.contains(c);
    }
    return good;
  }

  // Those that run what they call, other than those that apply it to elements.
  static bool runs_calls(const Instruction& i) {
    using enum Opcode;
    return i.is(kCall) || i.is(kConditional) || i.is(kCustomCall) || i.is(kFusion) || i.is(kWhile);
  }

  // ---- instructions ----

  bool check_shape(const Instruction& i) {
    std::vector<std::string> errors = shape_errors(i.shape);
    if (errors.empty()) return true;
    std::unordered_set<std::string> of_layout;
    for (const Shape* leaf : leaves(i.shape)) {
      for (std::string& e : layout_errors(*leaf)) of_layout.insert(std::move(e));
    }
    for (std::string& e : errors) {
      RuleId rule = of_layout.contains(e) ? RuleId("layout") : RuleId("shape");
      report(i, rule, std::move(e), "shape: " + i.shape.to_string());
    }
    return false;
  }

  bool check_op(const Instruction& i) {
    std::vector<const Shape*> operands;
    operands.reserve(i.operand_count());
    for (const Instruction* o : i.operands()) operands.push_back(&o->shape);
    try {
      rules::need_sharding(*i.attrs.sharding, i.shape);
      if (i.is(Opcode::kWhile) || i.is(Opcode::kConditional)) rules::need_shardings_agree(i);
      Shape expected = rules::apply({i.opcode, operands, i.attrs, i.called, &i.shape});
      if (!compatible(expected, i.shape)) {
        rules::Difference d = rules::difference(i.shape, expected);
        report(i, "result-shape",
               fmt::format("{} is declared {}{} but gives {}", op_name(i.opcode), *d.have, d.place(), *d.want),
               describe_operands(i));
        return false;
      }
    } catch (const Error& error) {
      for (const Diagnostic& d : error.diagnostics()) {
        std::string details = describe_operands(i);
        if (!d.details.empty() && !details.empty()) details += '\n';
        report(i.location, i.name, d.rule, d.message, details + d.details);
      }
      return false;
    }
    return check_literal(i);
  }

  bool check_literal(const Instruction& i) {
    if (!i.is(Opcode::kConstant)) return true;
    if (!i.literal) {
      report(i, "constant-literal", "the constant has no value");
      return false;
    }
    if (compatible(i.literal->shape(), i.shape)) return true;
    report(i, "constant-literal", fmt::format("the value of the constant is {}, not {}", i.literal->shape(), i.shape));
    return false;
  }

  static std::string describe_operands(const Instruction& i) {
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t k = 0; k < std::min(i.operand_count(), kMost); ++k) {
      if (k > 0) text += '\n';
      text += fmt::format("operand {} {}: {}", k, i.operand(k)->name, i.operand(k)->shape);
    }
    if (i.operand_count() > kMost) text += fmt::format("\n... {} operands", i.operand_count());
    return text;
  }

  void check_pair(const Instruction& i) {
    for (auto [first, second] : kPairs) {
      bool chain = second == Opcode::kAsyncDone;
      // The state of a channel may travel in a tuple.
      bool channel = first == Opcode::kSend || first == Opcode::kRecv;
      if (i.is(first)) {
        const Instruction* user = i.users().size() == 1 ? i.users()[0] : nullptr;
        bool carried = channel && user && user->is(Opcode::kTuple);
        if (!user || (!user->is(second) && !(chain && user->is(Opcode::kAsyncUpdate)) && !carried)) {
          report(i, "async-pair", fmt::format("{} must be used by one {} and nothing else", i.name, op_name(second)));
        }
      }
      if (i.is(second) && first != Opcode::kAsyncUpdate) {
        const Instruction& start = *i.operand(0);
        bool carried = channel && start.is(Opcode::kGetTupleElement);
        if (!start.is(first) && !(chain && start.is(Opcode::kAsyncUpdate)) && !carried) {
          report(i, "async-pair",
                 fmt::format("the operand of {} must be {}, not {}", op_name(second), op_name(first),
                             op_name(start.opcode)));
        }
        std::string_view here = text_attribute(i.attrs, "channel_id");
        std::string_view there = text_attribute(start.attrs, "channel_id");
        if (!here.empty() && !there.empty() && here != there) {
          report(i, "channel", fmt::format("{} has channel_id {}, {} has {}", i.name, here, start.name, there));
        }
      }
    }
    if (i.is(Opcode::kAsyncUpdate) && !i.operand(0)->is(Opcode::kAsyncStart) &&
        !i.operand(0)->is(Opcode::kAsyncUpdate)) {
      report(i, "async-pair",
             fmt::format("the operand of async-update must be async-start, not {}", op_name(i.operand(0)->opcode)));
    }
    if (i.is(Opcode::kAsyncUpdate) || i.is(Opcode::kAsyncDone)) check_chain(i);
  }

  // What an update or done says of the op, the computation and the thread is what its start says.
  void check_chain(const Instruction& i) {
    const Instruction* start = chain_start(i);
    if (!start) return;
    std::string_view here = text_attribute(i.attrs, "wrapped-op"), there = wrapped_name(*start);
    if (!here.empty() && here != there) {
      report(i, "async-pair", fmt::format("{} is of {}, its start {} of {}", i.name, here, start->name, there));
    }
    if (!i.called.empty() && !start->called.empty() && i.to_apply() != start->to_apply()) {
      report(i, "async-pair",
             fmt::format("{} calls {}, its start {} calls {}", i.name, i.to_apply()->name, start->name,
                         start->to_apply()->name));
    }
    std::string_view thread = text_attribute(i.attrs, "async_execution_thread");
    if (!thread.empty() && thread != execution_thread(*start)) {
      report(i, "async-pair",
             fmt::format("{} runs on thread {}, its start {} on {}", i.name, thread, start->name,
                         execution_thread(*start)));
    }
  }

  // ---- the module's interface ----

  void check_entry() {
    const Computation* entry = module_.entry();
    if (!entry || !checked_.contains(entry)) {
      report(Location{}, module_.name, RuleId("entry"), "the module has no entry computation");
      return;
    }
    if (broken_.contains(entry)) return;
    if (module_.config.has_entry_layout && !check_entry_layout(*entry)) return;
    check_aliases(*entry, module_.result_shape());
  }

  bool check_entry_layout(const Computation& entry) {
    bool good = true;
    const ModuleConfig& config = module_.config;
    Location where = place_of("entry_computation_layout", entry);
    auto check = [&](const Shape& given, const Instruction& i, std::string_view what) {
      for (const std::string& e : shape_errors(given)) {
        good = false;
        report(where, entry.name, RuleId("entry-layout"), fmt::format("{}: {}", what, e),
               "shape: " + given.to_string());
      }
      if (compatible(given, i.shape)) return;
      good = false;
      rules::Difference d = rules::difference(given, i.shape);
      report(i, "entry-layout",
             fmt::format("entry_computation_layout gives {} for {}{}, which is {}", *d.have, what, d.place(), *d.want));
    };
    const auto& parameters = entry.parameters();
    if (config.entry_parameters.size() != parameters.size()) {
      report(where, entry.name, RuleId("entry-layout"),
             fmt::format("entry_computation_layout has {} parameters, the entry computation {}",
                         config.entry_parameters.size(), parameters.size()));
      return false;
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      check(config.entry_parameters[i], *parameters[i], fmt::format("parameter {}", i));
    }
    check(config.entry_result, *entry.root(), "the result");
    return good;
  }

  void check_aliases(const Computation& entry, const Shape& result) {
    const ModuleConfig& config = module_.config;
    std::set<Ints> outputs;
    std::set<std::pair<int64_t, Ints>> parameters;
    auto parameter_leaf = [&](int64_t number, const Ints& index) -> const Shape* {
      const auto& all = entry.parameters();
      if (number < 0 || number >= static_cast<int64_t>(all.size())) return nullptr;
      return leaf_at(module_.parameter_shape(static_cast<size_t>(number)), index);
    };
    if (!config.input_output_alias.empty()) {
      Location where = place_of("input_output_alias", entry);
      auto complain = [&](std::string message) { report(where, entry.name, RuleId("alias"), std::move(message)); };
      for (const Alias& a : config.input_output_alias) {
        const Shape* out = leaf_at(result, a.output_index);
        const Shape* in = parameter_leaf(a.operand, a.operand_index);
        if (!out) {
          complain(fmt::format("there is no array {} in the result {}", list(a.output_index), result));
        } else if (!in) {
          complain(fmt::format("there is no array {} in parameter {}", list(a.operand_index), a.operand));
        } else if (physical_size(*in) != physical_size(*out)) {
          complain(fmt::format("output {} is {}, parameter {} is {}: their sizes differ", list(a.output_index), *out,
                               a.operand, *in));
        } else if (!outputs.insert(a.output_index).second) {
          complain(fmt::format("output {} is aliased twice", list(a.output_index)));
        } else if (!parameters.emplace(a.operand, a.operand_index).second) {
          complain(fmt::format("array {} of parameter {} is aliased twice", list(a.operand_index), a.operand));
        }
      }
    }
    if (config.buffer_donor.empty()) return;
    Location where = place_of("buffer_donor", entry);
    for (const auto& [number, index] : config.buffer_donor) {
      if (!parameter_leaf(number, index)) {
        report(where, entry.name, RuleId("buffer-donor"),
               fmt::format("there is no array {} in parameter {}", list(index), number));
      } else if (parameters.contains({number, index})) {
        report(where, entry.name, RuleId("buffer-donor"),
               fmt::format("array {} of parameter {} is also in input_output_alias", list(index), number));
      }
    }
  }

  // Where a module attribute stands in the text; the entry if there is no text.
  Location place_of(std::string_view attribute, const Computation& entry) const {
    if (!module_.source) return entry.location;
    std::string_view text = *module_.source;
    size_t at = text.find(fmt::format("{}=", attribute));
    if (at == text.npos) return entry.location;
    size_t start = text.rfind('\n', at) + 1;  // npos + 1 is 0
    return {static_cast<int>(std::count(text.begin(), text.begin() + at, '\n')) + 1, static_cast<int>(at - start) + 1};
  }

  const Module& module_;
  std::vector<Diagnostic> found_;
  std::unordered_set<const Computation*> checked_;        // callees of what follows
  std::unordered_set<const Computation*> broken_;         // callers cannot be judged by these
  std::unordered_set<const Instruction*> broken_values_;  // shapes that no rule may look at
};

}  // namespace

std::vector<Diagnostic> verify(const Module& module) { return Verifier(module).run(); }

void check(const Module& module) {
  std::vector<Diagnostic> found = verify(module);
  if (!found.empty()) throw Error(ErrorKind::kInvalid, std::move(found));
}

}  // namespace hlojit
