// Cuts: every value exactly once, quotients affine, few pieces; and the whole way from a layout and
// a data movement to affine addresses, compared with the plain formula element by element.
#include "layout/digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "layout/index.h"
#include "layout/tiling.h"
#include "tests/layout/many_layouts.h"

namespace hlojit {
namespace {

// Runs the loops of a piece, clipping as documented; f(value, digit values).
void run_piece(const DimPiece& piece, const std::function<void(int64_t, std::span<const int64_t>)>& f) {
  std::vector<int64_t> digits(piece.digits.size(), 0);
  std::function<void(size_t, int64_t)> loop = [&](size_t k, int64_t so_far) {
    if (k == digits.size()) return f(so_far, digits);
    const Digit& d = piece.digits[k];
    int64_t trips = d.extent;
    if (d.clipped) trips = std::min(trips, ceildiv(piece.limit - so_far, d.stride));
    for (int64_t v = 0; v < trips; ++v) {
      digits[k] = v;
      loop(k + 1, so_far + v * d.stride);
    }
  };
  loop(0, piece.start);
}

// "0:{8,4}{1,8} ..." with ! on clipped digits.
std::string to_string(const DimCut& cut) {
  std::string out;
  for (const DimPiece& p : cut.pieces) {
    if (!out.empty()) out += ' ';
    out += std::to_string(p.start) + ':';
    for (const Digit& d : p.digits) {
      out += '{' + std::to_string(d.stride) + ',' + std::to_string(d.extent) + (d.clipped ? "!}" : "}");
    }
  }
  return out;
}

std::string cut_text(int64_t n, std::vector<Break> breaks, std::vector<int64_t> edges = {}) {
  return to_string(cut_dimension(n, breaks, edges));
}

TEST_CASE("nesting breaks become digits") {
  CHECK(cut_text(7, {}) == "0:{1,7}");
  CHECK(cut_text(1, {{8, 0}}) == "0:{1,1}");
  CHECK(cut_text(0, {{8, 0}}) == "");
  CHECK(cut_text(32, {{8, 0}}) == "0:{8,4}{1,8}");
  CHECK(cut_text(8, {{8, 0}}) == "0:{1,8}");
  CHECK(cut_text(4096, {{8, 0}, {128, 0}, {1024, 0}}) == "0:{1024,4}{128,8}{8,16}{1,8}");
  CHECK(cut_text(64, {{8, 8}, {8, -16}}) == "0:{8,8}{1,8}");  // offsets by whole tiles
}

TEST_CASE("the last digit may be cut short") {
  CHECK(cut_text(10, {{8, 0}}) == "0:{8,2}{1,8!}");
  CHECK(cut_text(130, {{8, 0}, {128, 0}}) == "0:{128,2}{8,16!}{1,8!}");
  CHECK(cut_text(136, {{8, 0}, {128, 0}}) == "0:{128,2}{8,16!}{1,8}");
  CHECK(cut_text(99, {{2, 0}}) == "0:{2,49}{1,2} 98:{1,1}");  // not one of so few steps
}

TEST_CASE("breaks that do not nest give runs of a period") {
  CHECK(cut_text(96, {{8, 0}, {12, 0}}) == "0:{24,4}{1,8} 8:{24,4}{4,2}{1,4} 16:{24,4}{1,8}");
  CHECK(cut_text(56, {{8, 3}, {8, 0}}) == "0:{8,7}{1,5} 5:{8,7}{1,3}");
  CHECK(cut_text(60, {{8, 4}, {8, 0}}) == "0:{8,8}{4,2!}{1,4}");  // reverse of 60 in tiles of 8
  CHECK(cut_text(20, {{8, 3}}) == "0:{1,5} 5:{8,2}{1,8!}");       // a head, then whole tiles
  CHECK(cut_text(400, {{8, 0, 100}, {100, 0}}) == "0:{100,4}{8,12}{1,8} 96:{100,4}{1,4}");
}

TEST_CASE("edges separate pieces") {
  CHECK(cut_text(20, {}, {5}) == "0:{1,5} 5:{1,15}");
  CHECK(cut_text(32, {{8, 0}}, {16, 16, 0, 32}) == "0:{8,2}{1,8} 16:{8,2}{1,8}");
  CHECK(cut_text(20, {{8, 0}}, {10}) == "0:{8,2}{1,8!} 10:{1,6} 16:{1,4}");
}

TEST_CASE("too many runs leave the coarser breaks uncut") {
  std::vector<Break> breaks = {{8, 0}, {7, 0}, {11, 0}};
  DimCut cut = cut_dimension(10000, breaks, {});
  CHECK(cut.pieces.size() <= 8);
  int64_t covered = 0;
  for (const DimPiece& p : cut.pieces) run_piece(p, [&](int64_t, auto) { ++covered; });
  CHECK(covered == 10000);
}

TEST_CASE("extreme sizes end at once") {
  int64_t big = std::numeric_limits<int64_t>::max() / 2;
  CHECK(cut_text(big, {{8, 0}}).starts_with("0:{8,"));
  std::vector<Break> breaks;
  for (int64_t w : {big - 1, big / 3, int64_t{7}, int64_t{1} << 40, int64_t{1000003}}) {
    for (int64_t o : {int64_t{0}, int64_t{5}, big / 7, -big}) breaks.push_back({w, o});
  }
  CHECK(cut_dimension(big, breaks, {}).pieces.size() >= 1);
}

TEST_CASE("random breaks: each value once, each quotient affine") {
  std::mt19937 rng(11);
  const int64_t widths[] = {2, 3, 4, 5, 6, 8, 12, 16, 24};
  for (int round = 0; round < 4000; ++round) {
    int64_t n = 1 + static_cast<int64_t>(rng() % 150);
    std::vector<Break> breaks;
    for (size_t k = rng() % 4; k-- > 0;) {
      Break b{widths[rng() % 9], static_cast<int64_t>(rng() % 40) - 20};
      if (rng() % 3 == 0) b.within = b.width + 1 + static_cast<int64_t>(rng() % 30);
      breaks.push_back(b);
    }
    std::vector<int64_t> edges;
    if (rng() % 3 == 0) edges.push_back(static_cast<int64_t>(rng() % 150));
    DimCut cut = cut_dimension(n, breaks, edges, 1000);
    CAPTURE(n);
    CAPTURE(to_string(cut));
    std::vector<int> seen(static_cast<size_t>(n), 0);
    for (const DimPiece& piece : cut.pieces) {
      std::vector<std::pair<int64_t, std::vector<int64_t>>> visited;
      run_piece(piece, [&](int64_t i, std::span<const int64_t> digits) {
        REQUIRE(i >= 0);
        REQUIRE(i < n);
        ++seen[static_cast<size_t>(i)];
        visited.push_back({i, {digits.begin(), digits.end()}});
      });
      for (const Digit& d : piece.digits) {
        // A digit that always runs in full is not marked.
        if (d.clipped) CHECK(piece.limit > piece.start);
      }
      for (int64_t e : edges) CHECK((piece.start >= e || piece.limit <= e));
      for (const Break& b : breaks) {
        auto quotient = [&](int64_t i) {
          return b.within > 0 ? mod(i + b.offset, b.within) / b.width : floordiv(i + b.offset, b.width);
        };
        auto outer = [&](int64_t i) { return b.within > 0 ? floordiv(i + b.offset, b.within) : 0; };
        if (b.within > 0 && b.within <= b.width) continue;
        for (const auto& f : {std::function<int64_t(int64_t)>(quotient), std::function<int64_t(int64_t)>(outer)}) {
          // Strides from unit digits, where these exist.
          std::vector<int64_t> slope(piece.digits.size(), 0);
          int64_t base = f(piece.start);
          for (const auto& [i, digits] : visited) {
            int64_t ones = std::accumulate(digits.begin(), digits.end(), int64_t{0});
            if (ones != 1) continue;
            size_t k = std::ranges::find(digits, 1) - digits.begin();
            slope[k] = f(i) - base;
          }
          for (const auto& [i, digits] : visited) {
            int64_t affine = base;
            for (size_t k = 0; k < digits.size(); ++k) affine += digits[k] * slope[k];
            REQUIRE(f(i) == affine);
          }
        }
      }
    }
    for (int count : seen) REQUIRE(count == 1);
  }
}

// --- Layouts and maps ---

using Coords = std::vector<IndexExpr>;

// A loop domain and the addresses of what it reads and writes, as a function of its coordinates.
struct Case {
  std::string name;
  std::vector<int64_t> dims;
  std::function<Coords(const Coords&)> addresses;
  std::vector<std::vector<int64_t>> edges = {};  // per dimension
};

struct Outcome {
  bool affine = true;
  size_t pieces = 0;
};

Coords variables_of(std::span<const int64_t> dims) {
  Coords out;
  for (size_t d = 0; d < dims.size(); ++d) {
    out.push_back(IndexExpr::var(static_cast<int>(d), dims[d]));
  }
  return out;
}

// Cuts each dimension and compares every address at every element: with the digits substituted in
// the uncut address, and built anew from coordinates made of digits.
Outcome cut_and_compare(const Case& c) {
  Outcome outcome;
  Coords uncut = c.addresses(variables_of(c.dims));
  std::vector<DimCut> cuts;
  for (size_t d = 0; d < c.dims.size(); ++d) {
    std::vector<Break> breaks;
    for (const IndexExpr& a : uncut) {
      for (const Break& b : breaks_of(a, static_cast<int>(d))) breaks.push_back(b);
    }
    cuts.push_back(cut_dimension(c.dims[d], breaks, c.edges.empty() ? std::vector<int64_t>{} : c.edges[d]));
  }
  std::set<std::vector<int64_t>> covered;
  std::vector<const DimPiece*> chosen(c.dims.size());
  std::function<void(size_t)> product = [&](size_t d) {
    if (d < c.dims.size()) {
      for (const DimPiece& p : cuts[d].pieces) {
        chosen[d] = &p;
        product(d + 1);
      }
      return;
    }
    ++outcome.pieces;
    int next = static_cast<int>(c.dims.size());
    Coords coords;
    for (const DimPiece* piece : chosen) {
      IndexExpr sum(piece->start);
      for (const Digit& digit : piece->digits) {
        sum = sum + IndexExpr::var(next++, digit.extent) * digit.stride;
      }
      coords.push_back(sum);
    }
    std::vector<IndexExpr::Substitution> values;
    for (const IndexExpr& e : coords) values.push_back({static_cast<int>(values.size()), e});
    Coords cut = substitute(uncut, values), anew = c.addresses(coords);
    for (size_t a = 0; a < uncut.size(); ++a) {
      for (const IndexExpr& e : {cut[a], anew[a]}) {
        if (e.is_affine()) continue;
        outcome.affine = false;
        MESSAGE(c.name << ": " << uncut[a].to_string() << "  =>  " << e.to_string());
      }
    }
    std::vector<int64_t> point(c.dims.size()), variables;
    std::function<void(size_t)> walk = [&](size_t k) {
      if (k == c.dims.size()) {
        REQUIRE(covered.insert(point).second);
        std::vector<int64_t> all = point;
        all.insert(all.end(), variables.begin(), variables.end());
        for (size_t a = 0; a < cut.size(); ++a) {
          int64_t address = uncut[a].evaluate(point);
          REQUIRE(cut[a].evaluate(all) == address);
          REQUIRE(anew[a].evaluate(all) == address);
        }
        return;
      }
      run_piece(*chosen[k], [&](int64_t value, std::span<const int64_t> digits) {
        point[k] = value;
        size_t before = variables.size();
        variables.insert(variables.end(), digits.begin(), digits.end());
        walk(k + 1);
        variables.resize(before);
      });
    };
    walk(0);
  };
  product(0);
  int64_t count = 1;
  for (int64_t n : c.dims) count *= n;
  REQUIRE(static_cast<int64_t>(covered.size()) == count);
  return outcome;
}

void check_affine(const Case& c, size_t max_pieces) {
  CAPTURE(c.name);
  Outcome o = cut_and_compare(c);
  CHECK(o.affine);
  CHECK(o.pieces <= max_pieces);
}

TEST_CASE("every layout alone, and beside the row-major one") {
  for (const Shape& shape : many_layouts()) {
    if (shape.element_count() == 0) continue;
    Shape plain = Shape::array(shape.type, shape.dims);
    check_affine({shape.to_string(), shape.dims,
                  [&](const Coords& i) { return Coords{linear_index(shape, i), linear_index(plain, i)}; }},
                 64);
  }
}

TEST_CASE("copies between layouts") {
  struct Pair {
    const char *from, *to;
    size_t pieces;
  };
  for (const Pair& p : std::vector<Pair>{
           {"f32[24,256]{1,0:T(8,128)}", "f32[24,256]{1,0:T(12,128)}", 3},
           {"f32[20,300]{0,1:T(8,128)}", "f32[20,300]{1,0:T(8,128)}", 1},
           {"f32[64,256]{0,1:T(8,128)}", "f32[64,256]{1,0:T(8,128)}", 1},
           {"bf16[20,300]{1,0:T(8,128)(2,1)}", "bf16[20,300]{1,0:T(8,128)}", 1},
           {"bf16[20,300]{1,0:T(8,128)(2,1)}", "bf16[20,300]{0,1}", 1},
           {"f32[24,10]{1,0:T(8,4)(3,1)}", "f32[24,10]{1,0:T(8,4)}", 2},
           {"f32[40,10]{1,0:T(8,4)(3,1)}", "f32[40,10]{1,0:T(3,4)}", 8},
           {"f32[30,20]{1,0:T(*,3)}", "f32[30,20]{1,0}", 9},
           {"pred[40,130]{1,0:T(32,128)(32,1)E(1)}", "pred[40,130]{1,0}", 1},
           {"f32[4,8,16]{2,1,0:T(*,8,4)}", "f32[4,8,16]{0,1,2:T(4,4)}", 1},
       }) {
    Shape from = Shape::parse(p.from), to = Shape::parse(p.to);
    check_affine({std::string(p.from) + " -> " + p.to, to.dims,
                  [&](const Coords& i) { return Coords{linear_index(from, i), linear_index(to, i)}; }},
                 p.pieces);
  }
}

TEST_CASE("slices at every offset, strides, reversal") {
  for (const char* tiles : {"T(8,4)", "T(8,4)(2,1)", "T(8,4)(4,2)", "T(6,4)"}) {
    Shape from = Shape::parse("f32[60,20]{1,0:" + std::string(tiles) + "}");
    for (int64_t start = 0; start <= 8; ++start) {
      Shape to = Shape::parse("f32[44,16]{1,0:" + std::string(tiles) + "}");
      check_affine({"slice " + std::to_string(start) + " of " + from.to_string(), to.dims,
                    [&](const Coords& i) {
                      return Coords{linear_index(from, Coords{i[0] + start, i[1] + start / 2}), linear_index(to, i)};
                    }},
                   start == 0 || (start == 8 && tiles[2] == '8') ? 1 : 64);
    }
    for (int64_t stride : {2, 3, 4, 5, 7}) {
      Shape to = Shape::parse("f32[8,20]{1,0:" + std::string(tiles) + "}");
      check_affine({"stride " + std::to_string(stride) + " of " + from.to_string(), to.dims,
                    [&](const Coords& i) {
                      return Coords{linear_index(from, Coords{i[0] * stride + 1, i[1]}), linear_index(to, i)};
                    }},
                   8);
    }
    check_affine({"reverse of " + from.to_string(), from.dims,
                  [&](const Coords& i) {
                    return Coords{linear_index(from, Coords{IndexExpr(59) - i[0], IndexExpr(19) - i[1]}),
                                  linear_index(from, i)};
                  }},
                 4);
  }
}

TEST_CASE("transpose, broadcast, pad and concatenate") {
  Shape tiled = Shape::parse("f32[20,36]{1,0:T(8,4)(2,1)}");
  Shape turned = Shape::parse("f32[36,20]{1,0:T(8,4)(2,1)}");
  check_affine(
      {"transpose", turned.dims,
       [&](const Coords& i) { return Coords{linear_index(tiled, Coords{i[1], i[0]}), linear_index(turned, i)}; }},
      4);
  Shape row = Shape::parse("f32[20]{0:T(8)}");
  check_affine({"broadcast", turned.dims,
                [&](const Coords& i) { return Coords{linear_index(row, Coords{i[1]}), linear_index(turned, i)}; }},
               4);
  // The part of concatenate or pad that begins at 10 of the result: a cut at the edge, then
  // offsets.
  Shape part = Shape::parse("f32[26,20]{1,0:T(8,4)}"), whole = Shape::parse("f32[36,20]{1,0:T(8,4)}");
  check_affine(
      {"concatenate at 10", part.dims,
       [&](const Coords& i) { return Coords{linear_index(part, i), linear_index(whole, Coords{i[0] + 10, i[1]})}; }},
      2);
  check_affine(
      {"the result's side", whole.dims, [&](const Coords& i) { return Coords{linear_index(whole, i)}; }, {{10}, {}}},
      3);
}

TEST_CASE("reshapes") {
  struct Reshape {
    const char *operand, *result;
    size_t pieces;
  };
  for (const Reshape& r : std::vector<Reshape>{
           {"f32[10,130]{1,0:T(8,128)}", "f32[1300]{0}", 4},
           {"f32[4,100,8]{2,1,0:T(8,4)}", "f32[400,8]{1,0}", 2},
           {"f32[4,100,8]{2,1,0:T(8,4)}", "f32[400,8]{1,0:T(8,4)}", 8},
           {"f32[4,96,8]{2,1,0:T(8,4)}", "f32[384,8]{1,0:T(8,4)}", 1},
           {"f32[384,8]{1,0:T(8,4)}", "f32[4,96,8]{2,1,0:T(8,4)}", 1},
           {"f32[12,32]{1,0:T(8,4)}", "f32[12,4,8]{2,1,0:T(2,4)}", 1},
           {"f32[6,35]{1,0}", "f32[10,21]{1,0}", 30},
           {"f32[16,16]{0,1:T(4,4)}", "f32[256]{0:T(128)}", 1},
           {"f32[2,3,4]{2,1,0}", "f32[24]{0:T(16)}", 2},
       }) {
    Shape operand = Shape::parse(r.operand), result = Shape::parse(r.result);
    check_affine({std::string("reshape ") + r.operand + " -> " + r.result, result.dims,
                  [&](const Coords& i) {
                    return Coords{linear_index(operand, reshape_coordinates(operand.dims, result.dims, i)),
                                  linear_index(result, i)};
                  }},
                 r.pieces);
  }
}

}  // namespace
}  // namespace hlojit
