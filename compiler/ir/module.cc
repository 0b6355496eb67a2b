// Module, Computation: ownership, order, names.
//
// Names never become free again: a removed instruction's name stays taken, so that a dump of one
// pass and a dump of a later one never give the same name to different values.
#include "compiler/ir/module.h"

#include <algorithm>
#include <unordered_set>

#include "compiler/ir/ensure.h"
#include "compiler/ir/instruction_set.h"
#include "compiler/ir/instruction_table.h"

namespace hlojit {
namespace {

// Returns `base` if it is free, else the first free `root.N`, where root is base without a numeric
// suffix. `names` remembers for each root the next N to try, which keeps a pass that makes
// thousands of "fusion" linear.
std::string free_name(std::unordered_map<std::string, int>& names, std::string_view base) {
  std::string wanted(base);
  if (!names.contains(wanted)) return wanted;
  std::string_view root = base;
  size_t digits = root.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits > 0 && digits + 1 < root.size() && root[digits] == '.') {
    root = root.substr(0, digits);
  }
  int& next = names.try_emplace(std::string(root), 1).first->second;
  for (;; ++next) {
    std::string candidate = std::string(root) + "." + std::to_string(next);
    if (!names.contains(candidate)) return candidate;
  }
}

template <class T>
auto find_owned(std::vector<std::unique_ptr<T>>& owners, const T* wanted) {
  return std::ranges::find(owners, wanted, [](const std::unique_ptr<T>& p) { return p.get(); });
}

}  // namespace

Computation* Module::add_computation(std::string_view computation_name) {
  return add_computation_before(computation_name, nullptr);
}

Computation* Module::add_computation_before(std::string_view computation_name, const Computation* before) {
  auto made = std::make_unique<Computation>();
  made->name = free_name(names_, computation_name);
  made->parent_ = this;
  names_.try_emplace(made->name, 1);
  Computation* raw = made.get();
  auto at = before ? find_owned(computations_, before) : computations_.end();
  computations_.insert(at, std::move(made));
  return raw;
}

Computation* Module::find(std::string_view computation_name) const {
  for (const auto& c : computations_) {
    if (c->name == computation_name) return c.get();
  }
  return nullptr;
}

void Module::remove_unreachable() {
  // Depth first from the entry, callees first; an explicit stack, since call chains may be long.
  struct Frame {
    Computation* computation;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  std::vector<Computation*> order;
  std::unordered_set<const Computation*> seen;
  std::vector<Frame> stack;
  auto enter = [&](Computation* c) {
    if (!seen.insert(c).second) return;
    Frame frame{c, {}};
    for (const auto& i : c->instructions_) {
      frame.callees.insert(frame.callees.end(), i->called.begin(), i->called.end());
    }
    stack.push_back(std::move(frame));
  };
  if (entry_) enter(entry_);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (top.next < top.callees.size()) {
      enter(top.callees[top.next++]);  // may invalidate `top`
    } else {
      order.push_back(top.computation);
      stack.pop_back();
    }
  }
  std::unordered_map<const Computation*, size_t> rank;
  for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  std::erase_if(computations_, [&](const auto& c) { return !rank.contains(c.get()); });
  std::ranges::sort(computations_, {}, [&](const auto& c) { return rank[c.get()]; });
}

const Shape& Module::parameter_shape(size_t k) const {
  bool given = config.has_entry_layout && k < config.entry_parameters.size();
  return given ? config.entry_parameters[k] : entry_->parameters().at(k)->shape;
}

const Shape& Module::result_shape() const {
  return config.has_entry_layout ? config.entry_result : entry_->root()->shape;
}

void Module::freeze_entry_layout() {
  if (config.has_entry_layout) return;
  config.entry_parameters.clear();
  for (const Instruction* p : entry_->parameters()) config.entry_parameters.push_back(p->shape);
  config.entry_result = entry_->root()->shape;
  config.has_entry_layout = true;
}

Computation* Module::clone_computation(const Computation& from, std::string_view computation_name) {
  auto at = find_owned(computations_, &from);
  const Computation* next = at == computations_.end() || at + 1 == computations_.end() ? nullptr : (at + 1)->get();
  Computation* to = add_computation_before(computation_name, next);
  to->execution_thread = from.execution_thread;
  to->location = from.location;
  InstructionTable<Instruction*> copies(from);
  for (const auto& i : from.instructions_) {
    std::vector<Instruction*> operands;
    operands.reserve(i->operand_count());
    for (Instruction* o : i->operands()) operands.push_back(copies[o]);
    copies[i.get()] = to->clone_instruction(*i, std::move(operands), i->name);
  }
  for (const auto& i : from.instructions_) {
    for (Instruction* p : i->control_predecessors) copies[i.get()]->control_predecessors.push_back(copies[p]);
  }
  if (from.root_) to->root_ = copies[from.root_];
  to->names_ = from.names_;
  return to;
}

std::unique_ptr<Module> Module::clone() const {
  auto to = std::make_unique<Module>(name);
  to->config = config;
  to->source = source;
  std::unordered_map<const Computation*, Computation*> copies;
  for (const auto& c : computations_) {
    Computation* copy = to->clone_computation(*c, c->name);
    for (const auto& i : copy->instructions_) {
      for (Computation*& called : i->called) called = copies.at(called);
    }
    copies[c.get()] = copy;
  }
  to->names_ = names_;
  if (entry_) to->entry_ = copies.at(entry_);
  return to;
}

std::vector<Instruction*> Computation::snapshot() const {
  std::vector<Instruction*> list;
  list.reserve(instructions_.size());
  for (const auto& i : instructions_) list.push_back(i.get());
  return list;
}

Instruction* Computation::add(Opcode opcode, Shape shape, std::vector<Instruction*> operands,
                              std::string_view instruction_name, Instruction* before) {
  if (instruction_name.empty()) instruction_name = op_name(opcode);
  std::string unique = free_name(names_, instruction_name);
  names_.try_emplace(unique, 1);
  std::unique_ptr<Instruction> made(new Instruction(opcode, std::move(unique), std::move(shape)));
  made->parent_ = this;
  made->number_ = numbers_++;
  Instruction* raw = made.get();
  if (before) {
    auto at = find_owned(instructions_, static_cast<const Instruction*>(before));
    ensure(at != instructions_.end(), "an instruction is added before one that is not there");
    instructions_.insert(at, std::move(made));
  } else {
    instructions_.push_back(std::move(made));
  }
  raw->set_operands(std::move(operands));
  return raw;
}

Instruction* Computation::add_parameter(int64_t number, Shape shape, std::string_view instruction_name) {
  Instruction* p = add(Opcode::kParameter, std::move(shape), {}, instruction_name);
  p->attrs.parameter_number = number;
  if (parameters_.size() <= static_cast<size_t>(number)) parameters_.resize(number + 1);
  parameters_[number] = p;
  return p;
}

Instruction* Computation::add_constant(Literal literal, std::string_view instruction_name, Instruction* before) {
  Instruction* c = add(Opcode::kConstant, literal.shape(), {}, instruction_name, before);
  c->literal = std::make_shared<const Literal>(std::move(literal));
  return c;
}

Instruction* Computation::clone_instruction(const Instruction& from, std::vector<Instruction*> operands,
                                            std::string_view instruction_name, Instruction* before) {
  if (instruction_name.empty()) instruction_name = from.name;
  Instruction* to = add(from.opcode, from.shape, std::move(operands), instruction_name, before);
  to->attrs = from.attrs;
  to->literal = from.literal;
  to->called = from.called;
  to->location = from.location;
  if (to->is(Opcode::kParameter)) {
    size_t number = to->attrs.parameter_number;
    if (parameters_.size() <= number) parameters_.resize(number + 1);
    parameters_[number] = to;
  }
  return to;
}

void Computation::remove(Instruction* instruction) {
  ensure(instruction->users_.empty(), "an instruction that is used is removed");
  remove_all(std::span(&instruction, 1));
}

void Computation::remove_all(std::span<Instruction* const> dead) {
  const InstructionSet gone(dead);
  for (const auto& i : instructions_) {
    auto& order = i->control_predecessors;
    if (order.empty() || gone.contains(i.get())) continue;
    // What had to wait for a dead instruction waits for what that one waited for and read.
    std::unordered_set<Instruction*> listed(order.begin(), order.end());
    auto list = [&](std::span<Instruction* const> before) {
      for (Instruction* p : before) {
        if (listed.insert(p).second) order.push_back(p);
      }
    };
    for (size_t k = 0; k < order.size(); ++k) {
      const Instruction* p = order[k];  // `list` moves the others
      if (!gone.contains(p)) continue;
      list(p->control_predecessors);
      list(p->operands());
    }
    std::erase_if(order, [&](Instruction* p) { return gone.contains(p); });
  }
  for (Instruction* i : dead) {
    ensure(i != root_, "the root is removed");
    i->set_operands({});  // an operand read twice counts once
    if (i->is(Opcode::kParameter)) std::erase(parameters_, i);
  }
  std::erase_if(instructions_, [&](const auto& i) { return gone.contains(i.get()); });
}

void Computation::renumber_parameters() {
  parameters_.clear();
  for (const auto& i : instructions_) {
    if (i->is(Opcode::kParameter)) parameters_.push_back(i.get());
  }
  std::ranges::sort(parameters_, {}, [](const Instruction* p) { return p->attrs.parameter_number; });
  for (size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i]->attrs.parameter_number = static_cast<int64_t>(i);
  }
}

bool Computation::is_sorted() const {
  InstructionTable<char> placed(*this);
  auto is_placed = [&](const Instruction* i) { return placed[i] != 0; };
  for (const auto& i : instructions_) {
    if (!std::ranges::all_of(i->operands_, is_placed)) return false;
    if (!std::ranges::all_of(i->control_predecessors, is_placed)) return false;
    placed[i.get()] = 1;
  }
  return true;
}

bool Computation::sort_topologically() {
  if (is_sorted()) return true;  // as most edits leave it
  // Depth first in the present order: an instruction moves only if something before it needs it.
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    Instruction* instruction;
    size_t next = 0;
  };
  InstructionTable<State> state(*this, State::kNew);
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  std::vector<Frame> stack;
  for (const auto& first : instructions_) {
    if (state[first.get()] == State::kDone) continue;
    state[first.get()] = State::kOpen;
    stack.push_back({first.get()});
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      size_t operands = i->operands_.size();
      if (next == operands + i->control_predecessors.size()) {
        state[i] = State::kDone;
        order.push_back(i);
        stack.pop_back();
        continue;
      }
      Instruction* needed = next < operands ? i->operands_[next] : i->control_predecessors[next - operands];
      ++next;
      State& s = state[needed];
      if (s == State::kOpen) return false;
      if (s == State::kNew) {
        s = State::kOpen;
        stack.push_back({needed});
      }
    }
  }
  set_order(order);
  return true;
}

void Computation::set_order(std::span<Instruction* const> order) {
  ensure(order.size() == instructions_.size(), "an order lacks instructions");
  InstructionTable<size_t> rank(*this);
  for (size_t k = 0; k < order.size(); ++k) rank[order[k]] = k;
  std::vector<std::unique_ptr<Instruction>> sorted(order.size());
  for (auto& i : instructions_) sorted[rank[i.get()]] = std::move(i);
  instructions_ = std::move(sorted);
}

Instruction* Computation::find(std::string_view instruction_name) const {
  for (const auto& i : instructions_) {
    if (i->name == instruction_name) return i.get();
  }
  return nullptr;
}

std::string Computation::unique_name(std::string_view base) { return free_name(names_, base); }

}  // namespace hlojit
