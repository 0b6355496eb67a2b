// The IR itself: edges, order, names, the op table.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "compiler/ir/instruction_set.h"
#include "compiler/ir/module.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"

namespace hlojit {
namespace {

bool uses(const Instruction* user, const Instruction* value) { return std::ranges::count(value->users(), user) == 1; }

// Users are the inverse of operands, each listed once; operands come first.
void check_edges(const Computation& c) {
  std::vector<const Instruction*> seen;
  for (const auto& i : c.instructions()) {
    for (const Instruction* o : i->operands()) {
      CHECK(uses(i.get(), o));
      CHECK(std::ranges::find(seen, o) != seen.end());
    }
    for (const Instruction* u : i->users()) {
      CHECK(std::ranges::find(u->operands(), i.get()) != u->operands().end());
    }
    seen.push_back(i.get());
  }
}

struct Fixture {
  Module module{"m"};
  Computation* c = module.add_computation("e");
  Shape shape = Shape::array(DType::kF32, {2});
  Instruction* p = c->add_parameter(0, shape, "p");
};

TEST_CASE("op table") {
  for (int i = 0; i < op_count(); ++i) {
    auto opcode = static_cast<Opcode>(i);
    CHECK(op_info(opcode).opcode == opcode);
    CHECK(op_from_name(op_name(opcode)) == opcode);
  }
  CHECK(op_from_name("round-nearest-afz") == Opcode::kRoundAfz);
  CHECK(!op_from_name("round"));
  CHECK(!op_from_name(""));
}

TEST_CASE_FIXTURE(Fixture, "users are distinct and follow operands") {
  Instruction* twice = c->add(Opcode::kAdd, shape, {p, p});
  CHECK(p->users().size() == 1);
  Instruction* n = c->add(Opcode::kNegate, shape, {p});
  CHECK(p->users().size() == 2);
  twice->set_operand(0, p);
  check_edges(*c);
  Instruction* sum = c->add(Opcode::kAdd, shape, {twice, n});
  sum->set_operand(0, n);
  CHECK(twice->users().empty());
  CHECK(n->users().size() == 1);
  sum->set_operands({p, twice});
  sum->append_operand(p);
  CHECK(n->users().empty());
  check_edges(*c);
}

TEST_CASE_FIXTURE(Fixture, "replacing uses moves the root, and spares the new value") {
  Instruction* n = c->add(Opcode::kNegate, shape, {p});
  Instruction* sum = c->add(Opcode::kAdd, shape, {n, n});
  c->set_root(n);
  Instruction* copy = c->add(Opcode::kCopy, shape, {n}, {}, sum);
  n->replace_all_uses_with(copy);
  CHECK(sum->operand(0) == copy);
  CHECK(sum->operand(1) == copy);
  CHECK(copy->operand(0) == n);
  CHECK(c->root() == copy);
  CHECK(copy->is_root());
  check_edges(*c);
}

TEST_CASE_FIXTURE(Fixture, "removal keeps order constraints and parameters") {
  Instruction* q = c->add_parameter(1, shape, "q");
  Instruction* r = c->add_parameter(2, shape, "r");
  Instruction* a = c->add(Opcode::kNegate, shape, {p});
  Instruction* b = c->add(Opcode::kNegate, shape, {a});
  Instruction* d = c->add(Opcode::kNegate, shape, {r});
  c->set_root(d);
  b->control_predecessors = {p};
  d->control_predecessors = {b};
  Instruction* dead[] = {a, b};
  c->remove_all(dead);
  CHECK(d->control_predecessors == std::vector<Instruction*>{p});
  CHECK(p->users().empty());
  c->remove(q);
  c->renumber_parameters();
  CHECK(c->parameters() == std::vector<Instruction*>{p, r});
  CHECK(r->attrs.parameter_number == 1);
}

TEST_CASE_FIXTURE(Fixture, "names are unique and stay taken") {
  CHECK(c->add(Opcode::kNegate, shape, {p}, "x")->name == "x");
  CHECK(c->add(Opcode::kNegate, shape, {p}, "x")->name == "x.1");
  Instruction* third = c->add(Opcode::kNegate, shape, {p}, "x.1");
  CHECK(third->name == "x.2");
  c->remove(third);
  CHECK(c->unique_name("x") == "x.3");
  CHECK(c->add(Opcode::kNegate, shape, {p})->name == "negate");
  CHECK(c->find("x.1")->name == "x.1");
  CHECK(c->find("nothing") == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "topological order is stable, cycles are told") {
  Instruction* a = c->add(Opcode::kNegate, shape, {p}, "a");
  Instruction* b = c->add(Opcode::kNegate, shape, {p}, "b");
  Instruction* d = c->add(Opcode::kNegate, shape, {b}, "d");
  c->set_root(d);
  a->set_operand(0, d);  // a now needs d, which stands behind it
  CHECK(c->sort_topologically());
  std::string order;
  for (const auto& i : c->instructions()) order += i->name;
  CHECK(order == "pbda");
  b->control_predecessors = {a};
  CHECK(!c->sort_topologically());
}

TEST_CASE("modules: reachability, order, clones") {
  auto module = parse_module(
      "unused { a = f32[] parameter(0) } f { a = f32[] parameter(0) r = negate(a) }\n"
      "g { a = f32[] parameter(0) r = call(a), to_apply=f }\n"
      "ENTRY e { p = f32[] parameter(0) q = negate(p) r = call(p), to_apply=g,"
      " control-predecessors={q} }");
  auto clone = module->clone();
  CHECK(to_string(*clone) == to_string(*module));
  CHECK(clone->entry() != module->entry());
  CHECK(clone->entry()->root()->to_apply()->parent() == clone.get());
  CHECK(clone->entry()->root()->control_predecessors[0]->parent() == clone->entry());
  module->remove_unreachable();
  CHECK(module->find("unused") == nullptr);
  CHECK(module->computations().size() == 3);
  CHECK(module->computations().back().get() == module->entry());

  Computation* copy = module->clone_computation(*module->find("g"), "g");
  CHECK(copy->name == "g.1");
  CHECK(copy->root()->to_apply() == module->find("f"));
  CHECK(copy->parameters().size() == 1);
  module->entry()->root()->called[0] = copy;
  module->remove_unreachable();
  CHECK(module->find("g") == nullptr);
  check_edges(*module->entry());
}

TEST_CASE("side effects are seen through calls") {
  auto module = parse_module(
      "f { a = f32[] parameter(0) r = f32[] rng(a, a), distribution=rng_uniform }\n"
      "g { a = f32[] parameter(0) r = call(a), to_apply=f }\n"
      "h { a = f32[] parameter(0) r = negate(a) }\n"
      "ENTRY e { p = f32[] parameter(0) x = call(p), to_apply=g  y = call(p), to_apply=h\n"
      "c = f32[] custom-call(p), custom_call_target=\"t\", custom_call_has_side_effect=true\n"
      "d = f32[] custom-call(p), custom_call_target=\"t\"\n t = token[] after-all() }");
  auto effect = [&](std::string_view name) { return has_side_effect(*module->entry()->find(name)); };
  CHECK(effect("x"));
  CHECK(!effect("y"));
  CHECK(effect("c"));
  CHECK(!effect("d"));
  CHECK(!effect("t"));
}

TEST_CASE("shared callees are looked at once") {
  std::string text = "g.0 { a = f32[] parameter(0) r = negate(a) }\n";
  for (int i = 1; i < 150; ++i) {
    std::string callee = "g." + std::to_string(i - 1);
    text += "g." + std::to_string(i) + " { a = f32[] parameter(0) b = call(a), to_apply=" + callee +
            " r = call(b), to_apply=" + callee + " }\n";
  }
  auto module = parse_module(text);
  CHECK(!has_side_effect(*module->entry()->root()));  // 2^149 calls
}

TEST_CASE_FIXTURE(Fixture, "maps number instructions in order, few and many") {
  InstructionMap<int> map;
  std::vector<const Instruction*> keys;
  for (int n = 0; n < 100; ++n) {
    const Instruction* i = c->add(Opcode::kNegate, shape, {p});
    CHECK(!map.contains(i));
    keys.push_back(i);
    map[i] = n;
    for (int k = 0; k <= n; ++k) {
      auto [value, fresh] = map.insert(keys[static_cast<size_t>(k)]);
      CHECK(!fresh);
      CHECK(value == k);
    }
  }
  CHECK(map.keys() == keys);
}

TEST_CASE("random edits keep the edges right") {
  std::mt19937 random(5);
  Fixture x;
  std::vector<Instruction*> live = {x.p};
  auto pick = [&] { return live[random() % live.size()]; };
  for (int step = 0; step < 2000; ++step) {
    switch (random() % 4) {
      case 0:
      case 1: live.push_back(x.c->add(Opcode::kAdd, x.shape, {pick(), pick()})); break;
      case 2: {
        size_t user = random() % live.size();
        if (live[user]->operand_count() == 0) break;
        live[user]->set_operand(random() % 2, live[random() % user]);
        break;
      }
      default: {
        Instruction* dead = live.back();
        if (!dead->users().empty() || live.size() == 1) break;
        live.pop_back();
        x.c->remove(dead);
      }
    }
  }
  check_edges(*x.c);
  CHECK(x.c->instructions().size() == live.size());
}

}  // namespace
}  // namespace hlojit
