// Blocks and branches are read off the text; an edge to a block that is an ancestor in the depth-first walk
// is a back edge, and the loop is what reaches its source without passing the header.
#include "tests/runner/inner_loops.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace hlojit::test {
namespace {

struct Block {
  std::string label;
  std::vector<std::string> lines;
  std::vector<size_t> next;
};

std::string word_after(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && !std::string_view(" ,(:").contains(text[end])) ++end;
  return std::string(text.substr(at, end - at));
}

class Function {
 public:
  explicit Function(std::string name) : name_(std::move(name)) {}

  void add(const std::string& line) {
    if (line.empty() || line.starts_with(';')) return;
    if (line[0] != ' ') {
      blocks_.push_back({word_after(line, 0), {}, {}});
    } else if (!blocks_.empty()) {
      blocks_.back().lines.push_back(line);
    }
  }

  void loops(std::vector<InnerLoop>& out) {
    link();
    state_.assign(blocks_.size(), kNew);
    if (!blocks_.empty()) walk(0);
    for (const auto& [header, body] : bodies_) {
      const bool innermost = std::ranges::none_of(bodies_, [&, h = header, &b = body](const auto& other) {
        return other.first != h && b.contains(other.first);
      });
      if (!innermost) continue;
      InnerLoop loop{name_, blocks_[header].label, {}};
      for (size_t b : body) loop.lines.insert(loop.lines.end(), blocks_[b].lines.begin(), blocks_[b].lines.end());
      out.push_back(std::move(loop));
    }
  }

 private:
  enum State : char { kNew, kOpen, kDone };

  void link() {
    std::map<std::string, size_t> number;
    for (size_t b = 0; b < blocks_.size(); ++b) number[blocks_[b].label] = b;
    before_.assign(blocks_.size(), {});
    for (size_t b = 0; b < blocks_.size(); ++b) {
      for (const std::string& line : blocks_[b].lines) {
        constexpr std::string_view kLabel = "label %";
        for (size_t at = line.find(kLabel); at != line.npos; at = line.find(kLabel, at + 1)) {
          auto target = number.find(word_after(line, at + kLabel.size()));
          if (target == number.end()) continue;
          blocks_[b].next.push_back(target->second);
          before_[target->second].push_back(b);
        }
      }
    }
  }

  void walk(size_t b) {
    state_[b] = kOpen;
    for (size_t n : blocks_[b].next) {
      if (state_[n] == kNew)
        walk(n);
      else if (state_[n] == kOpen)
        collect(n, b);
    }
    state_[b] = kDone;
  }

  void collect(size_t header, size_t from) {
    std::set<size_t>& body = bodies_[header];
    body.insert(header);
    std::vector<size_t> work = {from};
    while (!work.empty()) {
      const size_t b = work.back();
      work.pop_back();
      if (!body.insert(b).second) continue;
      work.insert(work.end(), before_[b].begin(), before_[b].end());
    }
  }

  std::string name_;
  std::vector<Block> blocks_;
  std::vector<std::vector<size_t>> before_;
  std::vector<State> state_;
  std::map<size_t, std::set<size_t>> bodies_;
};

}  // namespace

std::vector<InnerLoop> inner_loops(std::string_view ir) {
  std::vector<InnerLoop> found;
  std::istringstream stream{std::string(ir)};
  std::vector<Function> open;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("define ")) {
      open.emplace_back(word_after(line, line.find('@') + 1));
    } else if (line == "}" && !open.empty()) {
      open.back().loops(found);
      open.clear();
    } else if (!open.empty()) {
      open.back().add(line);
    }
  }
  return found;
}

}  // namespace hlojit::test
