// See shrink.h. Each cut is a function of the module and a number: it changes one thing, or says that
// there are no more such things. A cut that the verifier refuses is not asked about.
#include "tools/fuzz/shrink.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "compiler/builder.h"
#include "compiler/text/parser.h"
#include "compiler/text/printer.h"
#include "compiler/verify/verifier.h"

namespace hlojit::tools::fuzz {
namespace {

enum class Cut { kMade, kSkipped, kNoMore };

// ---- helpers ---------------------------------------------------------------------------------------

void drop_unread(Module& module) {
  module.remove_unreachable();
  for (const auto& c : module.computations()) {
    std::vector<Instruction*> all = c->snapshot();
    for (auto i = all.rbegin(); i != all.rend(); ++i) {
      bool parameter = (*i)->is(Opcode::kParameter);
      if (!parameter && (*i)->users().empty() && !(*i)->is_root()) c->remove(*i);
    }
  }
  module.remove_unreachable();
}

// Parameters of the entry that nobody reads go too; what the header says of them with them.
void drop_unread_parameters(Module& module) {
  Computation* entry = module.entry();
  std::vector<Instruction*> parameters = entry->parameters();
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    if (!(*p)->users().empty() || (*p)->is_root()) continue;
    ModuleConfig& config = module.config;
    if (config.has_entry_layout)
      config.entry_parameters.erase(config.entry_parameters.begin() + (*p)->attrs.parameter_number);
    std::erase_if(config.input_output_alias, [&](const Alias& a) { return a.operand == (*p)->attrs.parameter_number; });
    for (Alias& a : config.input_output_alias) a.operand -= a.operand > (*p)->attrs.parameter_number;
    entry->remove(*p);
    entry->renumber_parameters();
  }
}

void set_entry_root(Module& module, Instruction* root) {
  module.entry()->set_root(root);
  module.config.entry_result = root->shape;
  module.config.input_output_alias.clear();
}

Instruction* nth(const Module& module, size_t n) {
  for (const auto& c : module.computations()) {
    if (n < c->instructions().size()) return c->instructions()[n].get();
    n -= c->instructions().size();
  }
  return nullptr;
}

bool plain(const Shape& s) {
  return std::ranges::all_of(s.elements, plain) && (!s.is_array() || s.layout.is_default());
}

void make_plain(Shape& s) {
  for (Shape& e : s.elements) make_plain(e);
  if (s.is_array()) s.layout = Layout::descending(s.rank());
}

// ---- cuts ------------------------------------------------------------------------------------------

Cut root_to_instruction(Module& m, size_t n) {
  std::vector<Instruction*> all = m.entry()->snapshot();
  if (n >= all.size()) return Cut::kNoMore;
  if (all[n]->is_root()) return Cut::kSkipped;
  set_entry_root(m, all[n]);
  return Cut::kMade;
}

Cut fewer_results(Module& m, size_t n) {
  Instruction* root = m.entry()->root();
  if (!root->is(Opcode::kTuple) || n >= root->operand_count()) return Cut::kNoMore;
  std::vector<Instruction*> rest(root->operands().begin(), root->operands().end());
  rest.erase(rest.begin() + static_cast<int64_t>(n));
  set_entry_root(m, Builder(m.entry()).tuple(rest));
  return Cut::kMade;
}

Cut operand_for_result(Module& m, size_t n) {
  Instruction* i = nth(m, n / 4);
  if (!i) return Cut::kNoMore;
  size_t k = n % 4;
  if (k >= i->operand_count() || !compatible(i->operand(k)->shape, i->shape)) return Cut::kSkipped;
  i->replace_all_uses_with(i->operand(k));
  return Cut::kMade;
}

Cut parameter_for_result(Module& m, size_t n) {
  std::vector<Instruction*> all = m.entry()->snapshot();
  if (n >= all.size()) return Cut::kNoMore;
  Instruction* i = all[all.size() - 1 - n];
  if (i->is(Opcode::kParameter) || i->is(Opcode::kTuple) || i->is_root() || !i->shape.is_array()) return Cut::kSkipped;
  Instruction* p = Builder(m.entry()).parameter(i->shape);
  if (m.config.has_entry_layout) m.config.entry_parameters.push_back(p->shape);
  i->replace_all_uses_with(p);
  m.entry()->sort_topologically();
  return Cut::kMade;
}

Cut zero_for_result(Module& m, size_t n) {
  Instruction* i = nth(m, n);
  if (!i) return Cut::kNoMore;
  if (i->is_root() || !i->shape.is_array() || is_complex(i->shape.type) || i->users().empty()) return Cut::kSkipped;
  if (i->is(Opcode::kConstant) || (i->is(Opcode::kBroadcast) && i->operand(0)->is(Opcode::kConstant)))
    return Cut::kSkipped;
  Builder b(i->parent());
  Instruction* zero = b.constant(i->shape.type, 0);
  if (i->shape.rank() > 0) zero = b.broadcast(zero, i->shape.dims);
  i->replace_all_uses_with(zero);
  i->parent()->sort_topologically();
  return Cut::kMade;
}

Cut plain_layouts(Module& m, size_t n) {
  if (n == 0) {
    bool any = false;
    for (const auto& c : m.computations()) {
      for (const auto& i : c->instructions()) any |= !plain(i->shape), make_plain(i->shape);
    }
    for (Shape& s : m.config.entry_parameters) make_plain(s);
    make_plain(m.config.entry_result);
    return any ? Cut::kMade : Cut::kSkipped;
  }
  Instruction* i = nth(m, n - 1);
  if (!i) return Cut::kNoMore;
  if (plain(i->shape)) return Cut::kSkipped;
  make_plain(i->shape);
  return Cut::kMade;
}

Cut header(Module& m, size_t n) {
  ModuleConfig& c = m.config;
  if (n == 0) {
    if (!c.has_entry_layout) return Cut::kSkipped;
    c.has_entry_layout = false;
    c.entry_parameters.clear();
    c.entry_result = {};
    return Cut::kMade;
  }
  if (n - 1 >= c.input_output_alias.size()) return Cut::kNoMore;
  c.input_output_alias.erase(c.input_output_alias.begin() + static_cast<int64_t>(n - 1));
  return Cut::kMade;
}

// ---- sizes: every number in the text that equals one of them ---------------------------------------

std::string with_size(const std::string& text, int64_t from, int64_t to) {
  std::string out, was = std::to_string(from), now = std::to_string(to);
  for (size_t i = 0; i < text.size();) {
    bool starts = std::isdigit(static_cast<unsigned char>(text[i])) &&
                  (i == 0 || std::string_view("[,={:").contains(text[i - 1]));
    if (!starts) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    std::string number = text.substr(i, end - i);
    out += number == was ? now : number;
    i = end;
  }
  return out;
}

std::set<int64_t, std::greater<>> sizes_of(const Module& m) {
  std::set<int64_t, std::greater<>> sizes;
  for (const auto& c : m.computations()) {
    for (const auto& i : c->instructions()) sizes.insert(i->shape.dims.begin(), i->shape.dims.end());
  }
  return sizes;
}

class Shrinker {
 public:
  Shrinker(std::string text, const std::function<bool(const std::string&)>& fails, int tries, double seconds)
      : text_(std::move(text)), fails_(fails), tries_(tries), end_(Clock::now() + Seconds(seconds)) {}

  std::string run() {
    for (size_t before = 0; before != text_.size() && goes_on();) {
      before = text_.size();
      for (auto cut : {root_to_instruction, fewer_results, header, plain_layouts, parameter_for_result,
                       operand_for_result, zero_for_result}) {
        apply(cut);
      }
      sizes();
    }
    return text_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  bool goes_on() const { return tries_ > 0 && Clock::now() < end_; }

  bool accept(const std::string& candidate) {
    if (candidate == text_ || !goes_on()) return false;
    try {
      if (!verify(*parse_module(candidate)).empty()) return false;
    } catch (const Error&) {
      return false;
    }
    --tries_;
    if (!fails_(candidate)) return false;
    text_ = candidate;
    return true;
  }

  void apply(Cut (*cut)(Module&, size_t)) {
    for (size_t n = 0; goes_on();) {
      std::unique_ptr<Module> m = parse_module(text_);
      Cut made = Cut::kSkipped;
      try {
        made = cut(*m, n);
        if (made == Cut::kNoMore) return;
        if (made == Cut::kMade) {
          drop_unread(*m);
          drop_unread_parameters(*m);
        }
      } catch (const Error&) {
        made = Cut::kSkipped;
      }
      if (made != Cut::kMade || !accept(to_string(*m))) ++n;  // after success the same place holds the next thing
    }
  }

  void sizes() {
    for (int64_t size : sizes_of(*parse_module(text_))) {
      for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, size / 2, size - 1}) {
        if (smaller < size && smaller > 0 && accept(with_size(text_, size, smaller))) break;
      }
    }
  }

  std::string text_;
  const std::function<bool(const std::string&)>& fails_;
  int tries_;
  const std::chrono::time_point<Clock, Seconds> end_;
};

}  // namespace

std::string shrink(const std::string& text, const std::function<bool(const std::string&)>& fails, int tries,
                   double seconds) {
  return Shrinker(text, fails, tries, seconds).run();
}

}  // namespace hlojit::tools::fuzz
