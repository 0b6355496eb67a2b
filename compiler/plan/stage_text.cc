// A plan's stages as text and back. What is read is checked once, here: every reduction and every result
// in one stage, nothing read before the stage that makes it; the emitter then only obeys.
#include <algorithm>
#include <unordered_map>

#include "compiler/plan/contraction.h"
#include "compiler/plan/stages.h"
#include "layout/divide.h"

namespace hlojit {
namespace {

constexpr std::string_view kMark = R"("stages":[)";

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string text_of(const Stage& s, const KernelPlan& plan) {
  std::string text = s.inner ? "inner" : "outer";
  if (s.product) text = "product %" + s.product->name + " " + blocks_text(*s.blocks);
  auto list = [&](std::string_view word, const auto& items, auto name) {
    if (items.empty()) return;
    text += " " + std::string(word);
    for (const auto& i : items) text += " %" + name(i);
  };
  auto own = [](const Instruction* i) { return i->name; };
  auto root = [&](size_t k) { return plan.roots[k]->name; };
  list("reduce", s.reduces, own);
  list("keep", s.keeps, own);
  list("store", s.stores, root);
  list("reread", s.rereads, root);
  return text;
}

/// Everything a stage reads at the domain's elements stands in registers, or was made before.
class Checker {
 public:
  Checker(const KernelGraph& g, const TargetInfo& target, const KernelPlan& plan)
      : g_(g), target_(target), plan_(plan) {
    for (const Stage& s : plan.stages) {
      if (s.product) products_.insert(s.product);
    }
  }

  void run() {
    std::vector<int> stored(plan_.roots.size(), 0);
    std::unordered_map<const Instruction*, int> reduced;
    for (const Stage& s : plan_.stages) {
      if (s.product) check_product(s);
      for (const Instruction* r : s.reduces) {
        if (!s.inner) refuse("a reduction outside the inner dims");
        if (++reduced[r] > 1) refuse(r->name + " is reduced twice");
        for (const Instruction* o : r->operands()) need(o, r->name);
      }
      for (const Instruction* v : s.keeps) {
        if (!s.inner || dims_of(v) != plan_.domain) refuse(v->name + " has no row to be kept in");
        need(v, v->name);
      }
      for (size_t k : s.stores) {
        ++stored[k];
        bool full = !plan_.inner.empty() && dims_of(plan_.roots[k]) == plan_.domain;
        if (!s.product && full != s.inner) refuse(plan_.roots[k]->name + " is stored by a stage of other sizes");
        need(plan_.roots[k], plan_.roots[k]->name);
      }
      for (const Instruction* r : s.reduces) complete_.insert(r);
    }
    for (size_t k = 0; k < stored.size(); ++k) {
      if (stored[k] != 1) refuse(plan_.roots[k]->name + " is not stored once");
    }
    for (const auto* list : {&g_.reduces, &g_.dots}) {
      for (const Instruction* r : *list) {
        if (!complete_.contains(r) && (plan_.by_blocks() || !r->is(Opcode::kDot))) refuse(r->name + " is in no stage");
      }
    }
  }

 private:
  void check_product(const Stage& s) {
    const Instruction* dot = s.product;
    if (s.inner || !s.reduces.empty() || !s.keeps.empty() || !s.rereads.empty())
      refuse("a product beside other work of a stage");
    if (complete_.contains(dot)) refuse(dot->name + " is multiplied twice");
    if (!plan_.by_blocks() && s.stores.empty()) refuse(dot->name + " has no result");
    const int taken = taken_operand(plan_, dot);
    for (const Instruction* o : dot->operands()) {
      if (taken < 0 || dot->operand(static_cast<size_t>(taken)) != o) need(o, dot->name);
    }
    if (taken >= 0 && s.blocks->multiply_add != MultiplyAdd::kOne) refuse("terms in groups that no one packs");
    MatrixProduct p = matrix_product(plan_, s, target_.vector_bytes);
    const Blocks& b = *s.blocks;
    if (plan_.by_blocks() && b.columns < p.n) refuse("the block of " + dot->name + " leaves columns out");
    if (plan_.by_blocks() && (b.rows != plan_.block_rows() || b.rows > 4096)) refuse("blocks of different rows");
    complete_.insert(dot);
  }

  /// All reductions below `value` are complete.
  void need(const Instruction* value, const std::string& reader) {
    std::vector<const Instruction*> open = {value};
    std::unordered_set<const Instruction*> seen;
    while (!open.empty()) {
      const Instruction* i = open.back();
      open.pop_back();
      if (!g_.has(i) || complete_.contains(i) || !seen.insert(i).second) continue;
      bool waits = i->is(Opcode::kReduce) || (plan_.by_blocks() && products_.contains(i));
      if (waits) refuse(reader + " reads " + i->name + " before its stage");
      open.insert(open.end(), i->operands().begin(), i->operands().end());
    }
  }

  const KernelGraph& g_;
  const TargetInfo& target_;
  const KernelPlan& plan_;
  std::unordered_set<const Instruction*> products_;
  std::unordered_set<const Instruction*> complete_;
};

/// The target has the registers and the scratch for what the plan says.
bool fits_target(const KernelPlan& plan, const TargetInfo& target) {
  for (const Stage& s : plan.stages) {
    if (!s.product) continue;
    MatrixProduct p = matrix_product(plan, s, target.vector_bytes);
    int64_t lanes = sum_lanes(*s.product, target.vector_bytes);
    const bool along_depth = s.blocks->along_depth;
    // One row is rarely worth a micro-kernel, which has nothing against it.
    const bool any = s.product->shape.element_count() > 0 && p.k > 0;
    const bool row = any && p.m == 1 && s.product->is(Opcode::kDot) && is_float(sum_type(*s.product)) && p.n >= lanes;
    if (!row && !choose_blocks(*s.product, p, target, {.columns_in_memory = along_depth, .along_depth = along_depth}))
      return false;
    if (s.blocks->tile_columns % lanes != 0 || s.blocks->tile_rows > p.m) return false;
    const bool sliced = s.blocks->depth >= p.k || s.blocks->depth % lanes == 0;
    const bool along = may_sum_along_depth(*s.product, p, lanes) && sliced;
    if (s.blocks->along_depth && (!along || s.blocks->tile_columns > round_up(p.n, lanes) || plan.by_blocks()))
      return false;
    if (!holds_runs(*s.blocks, p) || !suits(s.blocks->multiply_add, *s.product, p, s.blocks->depth, target))
      return false;
  }
  return plan.tile_bytes <= target.l2_bytes;
}

}  // namespace

std::string kernel_config(const KernelPlan& plan) {
  std::string text = R"({"hlojit":{"kernel":")" + std::string(kernel_kind_name(plan.kind)) + '"';
  bool plain = plan.stages.empty() || (plan.stages.size() == 1 && !plan.stages[0].inner && !plan.stages[0].product);
  if (!plain && plan.kind != KernelKind::kScatter && plan.kind != KernelKind::kScan) {
    text += "," + std::string(kMark);
    for (size_t s = 0; s < plan.stages.size(); ++s) text += (s ? ",\"" : "\"") + text_of(plan.stages[s], plan) + '"';
    text += "]";
  }
  return text + "}}";
}

bool has_kernel_config(const Instruction& fusion) { return !planned_kind(fusion).empty(); }

std::string_view planned_kind(const Instruction& fusion) {
  constexpr std::string_view kBefore = R"("hlojit":{"kernel":")";
  const std::string_view config = fusion.attrs.backend_config;
  const size_t at = config.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = config.substr(at + kBefore.size());
  return rest.substr(0, rest.find('"'));
}

std::optional<std::vector<std::string>> stages_in(std::string_view config) {
  size_t at = config.find(kMark);
  if (at == std::string_view::npos) return std::nullopt;
  std::vector<std::string> texts;
  at += kMark.size();
  while (at < config.size() && config[at] != ']') {
    size_t open = config.find('"', at), close = open == std::string_view::npos ? open : config.find('"', open + 1);
    if (close == std::string_view::npos) break;
    texts.emplace_back(config.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return texts;
}

bool read_stages(const KernelGraph& g, const std::vector<std::string>& texts, const TargetInfo& target,
                 KernelPlan& plan) {
  std::unordered_map<std::string, const Instruction*> named;
  for (const Instruction* i : g.members) named[i->name] = i;
  auto value = [&](const std::string& name) {
    auto at = named.find(name);
    if (at == named.end()) refuse("the plan names " + name + ", which the kernel does not have");
    return at->second;
  };
  auto root = [&](const std::string& name) {
    auto at = std::ranges::find(plan.roots, value(name));
    if (at == plan.roots.end()) refuse("the plan stores " + name + ", which is no result");
    return static_cast<size_t>(at - plan.roots.begin());
  };
  for (const std::string& text : texts) {
    Stage s;
    if (size_t at = text.find(" tile "); at != std::string::npos) s.blocks = read_blocks(text.substr(at + 1));
    std::string verb;
    for (const std::string& word : words_of(text)) {
      std::string name = word.starts_with('%') ? word.substr(1) : "";
      if (name.empty() && (word == "inner" || word == "outer"))
        s.inner = word == "inner";
      else if (name.empty() && std::isdigit(static_cast<unsigned char>(word[0])))
        continue;  // sizes of the blocks
      else if (name.empty())
        verb = word;
      else if (verb == "product")
        s.product = value(name);
      else if (verb == "reduce")
        s.reduces.push_back(value(name));
      else if (verb == "keep")
        s.keeps.push_back(value(name));
      else if (verb == "store")
        s.stores.push_back(root(name));
      else if (verb == "reread")
        s.rereads.push_back(root(name));
      else
        refuse("the plan has a stage that says " + verb);
    }
    for (const Instruction* r : s.reduces) {
      if (!r->is(Opcode::kReduce)) refuse("the plan reduces " + r->name + ", which is no reduction");
    }
    bool multiplies = s.product && (s.product->is(Opcode::kDot) || s.product->is(Opcode::kConvolution));
    if (s.product && !multiplies) refuse("the plan multiplies " + s.product->name + ", which is no contraction");
    if (!s.product != !s.blocks) refuse("a product without blocks that can be had");
    plan.stages.push_back(std::move(s));
  }
  if (plan.by_blocks()) place_tiles(g, target, plan);
  Checker(g, target, plan).run();
  if (fits_target(plan, target)) return true;
  plan.stages.clear();
  plan.tiles.clear();
  return false;
}

}  // namespace hlojit
