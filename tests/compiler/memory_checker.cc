#include "tests/compiler/memory_checker.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "compiler/analysis/dataflow.h"
#include "compiler/analysis/steps.h"
#include "compiler/ir/allocation.h"
#include "compiler/plan/kernel.h"
#include "layout/index.h"

namespace hlojit::test {
namespace {

using Token = int;  // a value, once computed
using Tokens = std::vector<Token>;
using Place = std::tuple<int, int64_t>;  // kind of buffer, index

struct Stretch {
  Place place;
  int64_t begin, end;
  Token token;
  bool operator==(const Stretch&) const = default;
};

class Machine {
 public:
  Machine(const Module& module, const BufferPlan& plan, bool donated) : module_(module), plan_(plan) {
    if (!donated) return;
    const Computation& entry = *module.entry();
    for (const Alias& a : module.config.input_output_alias) {
      const Instruction* p = entry.parameters()[a.operand];
      int64_t in = leaf_at(p->shape, a.operand_index);
      for (int64_t k = 0; k < a.operand; ++k) in += leaf_count(entry.parameters()[k]->shape);
      shared_[leaf_at(entry.root()->shape, a.output_index)] = in;
    }
  }

  std::vector<std::string> run() {
    const Computation& entry = *module_.entry();
    for (const auto& c : plan_.constants) {
      constants_[c.instruction] = fresh();
      write({BufferSlice::Kind::kConstant, 0, c.offset, physical_size(c.instruction->shape)},
            constants_[c.instruction]);
    }
    std::vector<Tokens> arguments;
    for (const Instruction* p : entry.parameters()) {
      Tokens tokens;
      for (const BufferSlice& s : slices(p)) {
        tokens.push_back(fresh());
        write(s, tokens.back());
      }
      arguments.push_back(tokens);
    }
    Tokens root = execute(entry, arguments);
    read(entry.root(), root, "the caller");
    for (size_t k = 0; k < root.size(); ++k) {
      const BufferSlice& s = slices(entry.root())[k];
      if (s.kind != BufferSlice::Kind::kResult || s.index != static_cast<int64_t>(k)) {
        complain(entry.root()->name + ": leaf " + std::to_string(k) + " is not in its result buffer");
      }
    }
    return errors_;
  }

 private:
  const std::vector<BufferSlice>& slices(const Instruction* i) const {
    static const std::vector<BufferSlice> kNone;
    auto at = plan_.slices.find(i);
    return at == plan_.slices.end() ? kNone : at->second;
  }

  Token fresh() { return next_++; }
  void complain(std::string what) { errors_.push_back(std::move(what)); }

  Place place(const BufferSlice& s) const {
    if (s.kind == BufferSlice::Kind::kResult && shared_.contains(s.index)) {
      return {static_cast<int>(BufferSlice::Kind::kParameter), shared_.at(s.index)};
    }
    return {static_cast<int>(s.kind), s.index};
  }

  bool overlap(const BufferSlice& a, const BufferSlice& b) const {
    return place(a) == place(b) && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
  }

  void write(const BufferSlice& s, Token token) {
    if (s.size == 0) return;
    std::erase_if(memory_, [&](const Stretch& m) {
      return m.place == place(s) && m.begin < s.offset + s.size && s.offset < m.end;
    });
    memory_.push_back({place(s), s.offset, s.offset + s.size, token});
  }

  void read(const Instruction* value, const Tokens& tokens, const std::string& reader) {
    for (size_t k = 0; k < tokens.size(); ++k) {
      const BufferSlice& s = slices(value)[k];
      if (s.size == 0) continue;
      bool there = std::ranges::any_of(memory_, [&](const Stretch& m) {
        return m.place == place(s) && m.begin <= s.offset && s.offset + s.size <= m.end && m.token == tokens[k];
      });
      if (!there) {
        complain(reader + " reads leaf " + std::to_string(k) + " of " + value->name + ", which has been overwritten");
      }
    }
  }

  Tokens execute(const Computation& c, const std::vector<Tokens>& arguments) {
    std::unordered_map<const Instruction*, Tokens> env;
    for (const auto& owned : c.instructions()) {
      const Instruction* i = owned.get();
      Tokens& result = env[i];
      switch (i->opcode) {
        case Opcode::kParameter:
          result = arguments.at(i->attrs.parameter_number);
          read(i, result, c.name);
          break;
        case Opcode::kConstant: result = {constants_.at(i)}; break;
        case Opcode::kTuple:
          for (const Instruction* o : i->operands()) {
            result.insert(result.end(), env.at(o).begin(), env.at(o).end());
          }
          break;
        case Opcode::kGetTupleElement: {
          const Tokens& all = env.at(i->operand(0));
          int64_t first = first_leaf(i->operand(0)->shape, i->attrs.tuple_index);
          result.assign(all.begin() + first, all.begin() + first + leaf_count(i->shape));
          break;
        }
        case Opcode::kBitcast: result = env.at(i->operand(0)); break;
        case Opcode::kCopy:
          result = env.at(i->operand(0));
          read(i->operand(0), result, i->name);
          write(slices(i)[0], result[0]);
          break;
        case Opcode::kFusion: result = fusion(i, env); break;
        case Opcode::kWhile: result = loop(i, env.at(i->operand(0))); break;
        case Opcode::kConditional: result = conditional(i, env); break;
        case Opcode::kAfterAll: break;
        default:
          if (is_step(*i) || is_allocation(*i)) {
            result = step(i, env);
            break;
          }
          complain(i->name + ": " + std::string(op_name(i->opcode)) + " is not in a planned module");
          for (size_t k = 0; k < slices(i).size(); ++k) result.push_back(fresh());
      }
    }
    return env.at(c.root());
  }

  Tokens fusion(const Instruction* i, const std::unordered_map<const Instruction*, Tokens>& env) {
    std::string why;
    if (!plan_kernel(*i->to_apply(), {}, i->attrs.backend_config, &why)) complain(i->name + " is no kernel: " + why);
    for (const Instruction* o : i->operands()) read(o, env.at(o), i->name);
    const std::vector<BufferSlice>& results = slices(i);
    const std::vector<Update> updates = updated_parameters(*i->to_apply());
    for (size_t r = 0; r < results.size(); ++r) {
      for (size_t k = 0; k < i->operand_count(); ++k) {
        const BufferSlice& operand = slices(i->operand(k))[0];
        if (!overlap(results[r], operand)) continue;
        int64_t n = static_cast<int64_t>(k);
        bool same = place(results[r]) == place(operand) && results[r].offset == operand.offset;
        bool updated = std::ranges::any_of(
            updates, [&](const Update& u) { return u.parameter == n && u.result == static_cast<int64_t>(r); });
        bool fine = same && (updated || reads_in_place(*i->to_apply(), n, static_cast<int64_t>(r)));
        if (!fine) complain(i->name + " writes over its operand " + std::to_string(k));
      }
      for (size_t s = 0; s < r; ++s) {
        if (overlap(results[r], results[s])) complain(i->name + " has two results in one place");
      }
    }
    for (const Update& u : updates) {
      const BufferSlice &from = slices(i->operand(u.parameter))[0], &to = results.at(u.result);
      if (to.offset != from.offset || place(to) != place(from)) {
        complain(i->name + " does not update in place");
      }
    }
    Tokens tokens;
    for (const BufferSlice& s : results) {
      tokens.push_back(fresh());
      write(s, tokens.back());
    }
    return tokens;
  }

  /// The runtime reads whole operands while it writes results.
  Tokens step(const Instruction* i, const std::unordered_map<const Instruction*, Tokens>& env) {
    for (const Instruction* o : i->operands()) read(o, env.at(o), i->name);
    Tokens tokens;
    for (const BufferSlice& result : slices(i)) {
      for (const Instruction* o : i->operands()) {
        for (const BufferSlice& s : slices(o)) {
          if (overlap(result, s)) complain(i->name + " writes over its operand " + o->name);
        }
      }
      tokens.push_back(fresh());
      write(result, tokens.back());
    }
    return tokens;
  }

  Tokens loop(const Instruction* i, Tokens state) {
    read(i->operand(0), state, i->name);
    for (int iteration = 0; iteration < 2; ++iteration) {
      Tokens goes_on = execute(*i->while_condition(), {state});
      read(i->while_condition()->root(), goes_on, i->name);
      state = execute(*i->while_body(), {state});
      read(i->while_body()->root(), state, i->name);
      read(i->while_body()->parameters()[0], state, i->name + "'s next iteration");
    }
    execute(*i->while_condition(), {state});
    read(i, state, i->name + "'s users");
    return state;
  }

  Tokens conditional(const Instruction* i, const std::unordered_map<const Instruction*, Tokens>& env) {
    for (const Instruction* o : i->operands()) read(o, env.at(o), i->name);
    std::vector<Stretch> before = memory_, after;
    for (size_t b = 0; b < i->called.size(); ++b) {
      memory_ = before;
      Tokens result = execute(*i->called[b], {env.at(i->operand(b + 1))});
      read(i->called[b]->root(), result, i->name);
      read(i, result, i->name + "'s users");
      if (b == 0) after = memory_;
      std::erase_if(after, [&](const Stretch& s) { return std::ranges::find(memory_, s) == memory_.end(); });
    }
    memory_ = after;
    Tokens tokens;
    for (const BufferSlice& s : slices(i)) {
      tokens.push_back(fresh());
      write(s, tokens.back());
    }
    return tokens;
  }

  const Module& module_;
  const BufferPlan& plan_;
  std::map<int64_t, int64_t> shared_;  // result leaf -> parameter leaf in the same memory
  std::vector<Stretch> memory_;
  std::unordered_map<const Instruction*, Token> constants_;
  Token next_ = 0;
  std::vector<std::string> errors_;
};

}  // namespace

std::vector<std::string> check_memory(const Module& module, const BufferPlan& plan, bool donated) {
  return Machine(module, plan, donated).run();
}

}  // namespace hlojit::test
