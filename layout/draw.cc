// A drawing of a buffer for a terminal: where each element of the array lies, with the tiles as
// boxes, and below it what lies where in memory. The element asked for stands in [ ].
//
//     f32[3,5]{1,0:T(2,2)}: 24 positions, 15 elements, 9 padding
//
//              0    1     2    3     4    .
//          +----------+----------+----------+
//        0 |   0    1 |   4    5 |   8    . |
//        1 |   2    3 |   6    7 |  10    . |
//          +----------+----------+----------+
//        2 |  12   13 |  16  [17]|  20    . |
//        . |   .    . |   .    . |   .    . |
//          +----------+----------+----------+
//
// Rows and columns are the last two logical dimensions, whatever their order in memory; the others
// give one grid each. Only a window of a large array is shown, around the element asked for.
#include <algorithm>

#include "layout/index.h"
#include "layout/tiling.h"

namespace hlojit {
namespace {

constexpr int64_t kWidth = 100;  // columns of the terminal
constexpr int64_t kMaxCells = 1024;
constexpr int64_t kMaxRows = 32;   // of one grid
constexpr int64_t kMaxLines = 20;  // of a memory of more than kMaxCells positions

std::string padded(const std::string& text, int64_t width) {
  int64_t missing = width - static_cast<int64_t>(text.size());
  return std::string(static_cast<size_t>(std::max<int64_t>(missing, 0)), ' ') + text;
}

// ` 17 `, or `[17]` if marked; the text right-aligned in `width`.
std::string cell(const std::string& text, int64_t width, bool marked) {
  if (!marked) return padded(text, width + 1) + ' ';
  return padded('[' + text, width + 1) + ']';
}

// Size of the first tile along each logical dimension; 1 where it does not reach or combines.
std::vector<int64_t> first_tile(const Shape& shape) {
  std::vector<int64_t> out(shape.dims.size(), 1);
  if (!shape.layout.tiled()) return out;
  const std::vector<int64_t>& tile = shape.layout.tiles.front().dims;
  for (size_t k = 0; k < std::min(tile.size(), out.size()); ++k) {
    size_t at = tile.size() - 1 - k;
    bool combined = tile[at] == Tile::kCombine || (at > 0 && tile[at - 1] == Tile::kCombine);
    // From a combined dimension on, boxes would no longer follow the array's own rows and columns.
    if (combined) break;
    out[shape.layout.minor_to_major[k]] = tile[at];
  }
  return out;
}

// The part [from, to) of one dimension that is shown, its real size, and the boxes along it.
struct Axis {
  int64_t size = 1, tile = 1, from = 0, to = 1;
  bool cut() const { return from > 0 || to < shown_size(); }
  // Whole tiles, if padding along this axis is few enough to show.
  int64_t shown_size() const {
    int64_t whole = saturating_product(ceildiv(size, tile), tile);
    return whole - size <= kMaxRows ? whole : size;
  }
  bool border_before(int64_t i) const { return i == from || (tile > 1 && i % tile == 0); }
  std::string label(int64_t i) const { return i < size ? std::to_string(i) : "."; }
};

Axis window(int64_t size, int64_t tile, int64_t most, int64_t centre) {
  Axis axis{.size = size, .tile = tile};
  int64_t shown = axis.shown_size();
  axis.from = std::clamp<int64_t>(centre - most / 2, 0, std::max<int64_t>(shown - most, 0));
  if (centre < most) axis.from = 0;
  axis.to = std::min(shown, axis.from + most);
  return axis;
}

class Drawing {
 public:
  Drawing(const Shape& shape, std::optional<int64_t> highlight)
      : shape_(shape), tile_(first_tile(shape)), stored_(physical_elements(shape)), highlight_(highlight) {
    if (highlight) marked_ = multi_index(shape, *highlight);
    number_width_ = static_cast<int64_t>(std::to_string(std::max<int64_t>(stored_ - 1, 0)).size());
  }

  std::string text() {
    int64_t count = shape_.element_count();
    out_ = shape_.to_string() + ": " + std::to_string(stored_) + " positions, " + std::to_string(count) +
           " elements, " + std::to_string(stored_ - count) + " padding\n";
    if (stored_ == 0) return out_;
    grids();
    memory();
    return out_;
  }

 private:
  // One grid for each index of the leading dimensions, until enough cells are drawn.
  void grids() {
    size_t rank = shape_.dims.size();
    auto at = [&](size_t d) { return marked_ ? (*marked_)[d] : 0; };
    Axis columns, rows;
    int64_t label_width = 4;
    for (size_t k = 1; k <= std::min<size_t>(rank, 2); ++k) {
      int64_t digits = static_cast<int64_t>(std::to_string(shape_.dims[rank - k]).size());
      label_width = std::max(label_width, digits);
    }
    cell_width_ = std::max(number_width_, label_width - 1);
    if (rank >= 1) {
      int64_t tile = tile_[rank - 1], room = kWidth - label_width - 4, wide = cell_width_ + 2;
      int64_t most = tile > room ? room / wide : room * tile / (wide * tile + (tile > 1));
      columns = window(shape_.dims[rank - 1], tile, std::max<int64_t>(most, 1), at(rank - 1));
    }
    if (rank >= 2) rows = window(shape_.dims[rank - 2], tile_[rank - 2], kMaxRows, at(rank - 2));
    int64_t cells = (columns.to - columns.from) * (rows.to - rows.from);
    int64_t total = 1;
    for (size_t d = 0; d + 2 < rank; ++d) total *= shape_.dims[d];
    int64_t most = std::max<int64_t>(kMaxCells / cells, 1), first = 0;
    for (size_t d = 0; d + 2 < rank; ++d) first = first * shape_.dims[d] + at(d);
    if (first < most) first = 0;
    int64_t last = std::min(total, first + most);
    for (int64_t g = first; g < last; ++g) grid(g, rows, columns, label_width);
    if (last - first < total) {
      out_ += "\n  (" + std::to_string(last - first) + " of " + std::to_string(total) + " grids)\n";
    }
    if (rows.cut() || columns.cut()) {
      out_ += "\n  (rows " + std::to_string(rows.from) + ".." + std::to_string(rows.to - 1) + ", columns " +
              std::to_string(columns.from) + ".." + std::to_string(columns.to - 1) + " only)\n";
    }
  }

  void grid(int64_t number, const Axis& rows, const Axis& columns, int64_t label_width) {
    size_t rank = shape_.dims.size();
    Index index(rank, 0);
    for (size_t d = rank < 2 ? 0 : rank - 2; d-- > 0;) {
      index[d] = number % shape_.dims[d];
      number /= shape_.dims[d];
    }
    out_ += '\n';
    if (rank > 2) {
      out_ += "  [";
      for (size_t d = 0; d + 2 < rank; ++d) out_ += std::to_string(index[d]) + ", ";
      out_ += ":, :]\n";
    }
    std::string margin(static_cast<size_t>(label_width + 1), ' ');
    std::string header = margin, border = margin;
    for (int64_t c = columns.from; c < columns.to; ++c) {
      bool edge = columns.border_before(c);
      header += (edge ? " " : "") + cell(columns.label(c), cell_width_, false);
      border += (edge ? "+" : "") + std::string(static_cast<size_t>(cell_width_ + 2), '-');
    }
    while (header.back() == ' ') header.pop_back();
    out_ += header + '\n';
    for (int64_t r = rows.from; r < rows.to; ++r) {
      if (rows.border_before(r)) out_ += border + "+\n";
      out_ += padded(rank >= 2 ? rows.label(r) : "", label_width) + ' ';
      for (int64_t c = columns.from; c < columns.to; ++c) {
        if (columns.border_before(c)) out_ += '|';
        bool inside = r < rows.size && c < columns.size;
        if (rank >= 2) index[rank - 2] = r;
        if (rank >= 1) index[rank - 1] = c;
        out_ +=
            cell(inside ? std::to_string(linear_index(shape_, index)) : ".", cell_width_, inside && marked_ == index);
      }
      out_ += "|\n";
    }
    out_ += border + "+\n";
  }

  // Positions in order, a tile (or a row) a group: the index of the element there, or a dot.
  void memory() {
    int64_t group = 1;
    if (shape_.layout.tiled()) {
      for (int64_t t : shape_.layout.tiles.front().dims) {
        if (t != Tile::kCombine) group = saturating_product(group, t);
      }
    } else if (!shape_.dims.empty()) {
      group = shape_.dims[shape_.layout.minor_to_major[0]];
    }
    int64_t width = 1;
    for (int64_t n : shape_.dims) width += static_cast<int64_t>(std::to_string(n - 1).size()) + 1;
    width = std::max<int64_t>(width - 2, 1);
    int64_t room = std::max<int64_t>((kWidth - number_width_ - 6) / (width + 2), 1);
    // Whole groups on a line if one fits at all.
    int64_t on_line = room;
    if (group <= room) {
      on_line = group;
      while (on_line + group <= room &&
             (on_line + group) * (width + 2) + on_line / group * 2 < kWidth - number_width_ - 6) {
        on_line += group;
      }
    }
    int64_t first = 0, lines = ceildiv(stored_, on_line);
    int64_t most = stored_ <= kMaxCells ? lines : kMaxLines;
    if (lines > most && highlight_) {
      first = std::clamp<int64_t>(*highlight_ / on_line - most / 2, 0, lines - most);
    }
    int64_t last = std::min(lines, first + most);
    out_ += "\nin memory (position: index, . is padding)\n";
    for (int64_t line = first; line < last; ++line) {
      int64_t begin = line * on_line, end = std::min(stored_, begin + on_line);
      out_ += padded(std::to_string(begin), number_width_ + 2) + ':';
      for (int64_t p = begin; p < end; ++p) {
        if (p > begin && group <= on_line && p % group == 0) out_ += " |";
        out_ += cell(name(p), width, highlight_ == p);
      }
      while (out_.back() == ' ') out_.pop_back();
      out_ += '\n';
    }
    if (last - first < lines) {
      out_ += "  (positions " + std::to_string(first * on_line) + ".." +
              std::to_string(std::min(stored_, last * on_line) - 1) + " of " + std::to_string(stored_) + ")\n";
    }
  }

  std::string name(int64_t position) const {
    std::optional<Index> index = multi_index(shape_, position);
    if (!index) return ".";
    if (index->empty()) return "0";
    std::string out;
    for (int64_t i : *index) out += (out.empty() ? "" : ",") + std::to_string(i);
    return out;
  }

  const Shape& shape_;
  std::vector<int64_t> tile_;
  int64_t stored_;
  std::optional<int64_t> highlight_;
  std::optional<Index> marked_;
  int64_t number_width_ = 1, cell_width_ = 1;
  std::string out_;
};

}  // namespace

std::string draw(const Shape& shape, std::optional<int64_t> highlight) {
  if (!shape.is_array()) throw Error(ErrorKind::kInput, "only an array can be drawn");
  return Drawing(shape, highlight).text();
}

}  // namespace hlojit
