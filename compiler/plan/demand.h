// How many elements of a value a kernel evaluates, and at how many places of its loop bodies.
//
// Users that read a value at the same coordinates share its elements. The coordinates are those at which the users
// are wanted themselves, and a user may be wanted at several: at the kernel's own, through a slice, through another.
// Each such set of coordinates is a place, named by a number. A movement reads at another one, the same for all
// movements with its coordinates whose users have the same places.
//
//   a = x * y, b = a + x, wanted through two slices each:   x has the places of both, each counted once
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <unordered_map>
#include <vector>

#include "compiler/analysis/access.h"

namespace hlojit {

class Instruction;

inline double elements_in(const Shape& shape) { return static_cast<double>(shape.element_count()); }

class Demand {
 public:
  /// Elements alone, where their code stands elsewhere, or code alone, for elements that count elsewhere, are one too.
  struct Place {
    int number = 0;
    double elements = 0, code = 0;
    double ways = 1;  ///< from the kernel's results to here, which the one movement in front may hide
  };

  /// How it is wanted, which users hand on to what they are made of.
  struct Manner {
    bool strided = false;
    bool across = false;    ///< by rows whose neighbours lie apart in it
    bool each = false;      ///< each element where a value says
    bool relaid = false;    ///< by a copy whose neighbours are none of it
    bool told = false;      ///< as a part of a concatenation
    double parts = 1;       ///< how many there are of it, and of parts of parts
    bool folded = false;    ///< where several coordinates are one, or one is several
    double spacing = 1;     ///< places of the kernel's domain to one of the value's, where padding lies between them
    bool decides = false;   ///< says where elements of others are: these are looked up when it is known
    bool in_front = false;  ///< says where rows of few vectors are: a core has little else to do meanwhile
    /// A reshape in front makes coordinates along a dim of several: places in rows.
    struct Rows {
      uint64_t along = 0;  ///< dims that they go along, a bit each; none: there are no rows
      int64_t length = 1;  ///< elements; 0: rows begin who knows where
      int64_t first = 0;   ///< where one of them begins
    };
    Rows rows;
    bool summed = false;  ///< by a reduction whose terms are pulled: its loops may have lanes along any dim
    bool split = false;   ///< at coordinates that are quotients, or rests, of the one along lanes
    uint64_t slid = 0;    ///< its dims along which windows overlap, a bit each

    bool slides_along(int dim) const { return (slid & dim_bit(dim)) != 0; }
    static uint64_t dim_bit(int dim) { return uint64_t{1} << std::min(dim, 63); }

    /// Of what a data movement that is wanted in this manner reads at these coordinates; not for every element if
    /// `guarded`.
    Manner through(const Instruction& movement, const Coords& coords, bool guarded) const;
    /// In both.
    void join(const Manner& other) {
      strided |= other.strided;
      across |= other.across;
      each |= other.each;
      relaid |= other.relaid;
      told |= other.told;
      parts = std::max(parts, other.parts);
      folded |= other.folded;
      spacing = std::max(spacing, other.spacing);
      decides |= other.decides;
      in_front |= other.in_front;
      summed |= other.summed;
      split |= other.split;
      if (rows.along == 0) rows = other.rows;
      slid |= other.slid;
    }
  };
  Manner manner;
  bool crossed = false;  ///< wanted by a reshape whose dims share no borders with it: one by one, if it is moved itself
  bool moved = false;    ///< wanted at other coordinates than the elements at hand
  bool inside = false;   ///< the kernel computes it itself
  double hoisted = 0;    ///< elements that stand outside of the lanes: computed one by one
  double bare = 0;       ///< of those, elements with less than a vector's work inside, which hides nothing

  double elements() const { return sum(&Place::elements); }
  double code() const { return sum(&Place::code); }
  std::span<const Place> places() const { return {places_.data(), count_}; }
  double ways() const { return sum(&Place::ways); }
  /// Ways that want all of a value of so many elements, parts of it added up: what one repeats counts once.
  double times(double all) const {
    double times = 0;
    for (const Place& p : places()) times += std::min(p.elements / all, p.ways);
    return times;
  }

  /// Wanted at this place, maybe again.
  void want(const Place& p) {
    for (size_t k = 0; k < count_; ++k) {
      if (places_[k].number == p.number) return raise(places_[k], p);
    }
    if (count_ == places_.size()) return crowd(p);
    places_[count_++] = p;
  }

 private:
  // More than these are not told apart: of two sets of many the larger counts.
  static constexpr size_t kMost = 8;
  static constexpr int kCrowd = -1;

  static void raise(Place& own, const Place& p) {
    own.elements = std::max(own.elements, p.elements);
    own.code = std::max(own.code, p.code);
    own.ways = std::max(own.ways, p.ways);
  }
  void crowd(const Place& p) {
    places_[0] = {kCrowd, elements() + p.elements, code() + p.code, ways() + p.ways};
    count_ = 1;
  }
  double sum(double Place::* what) const {
    double all = 0;
    for (const Place& p : places()) all += p.*what;
    return all;
  }

  std::array<Place, kMost> places_;
  size_t count_ = 0;
};

/// Its result's dims along which windows of several elements slide, a bit each.
uint64_t slid_dims(const Instruction& reduction);

/// A reshape wanted in this manner ends dims of its operand within rows, somewhere else in each.
bool splits_rows(const Instruction& movement, const Coords& coords, const Demand::Manner& manner);

/// A concatenation wanted in this manner has each element ask which part it is of, and all parts are computed.
bool asks_each(const Instruction& movement, const Demand::Manner& manner);

/// The numbers of places.
class Places {
 public:
  static constexpr int kOwn = 0;  ///< of the kernel's own elements

  int fresh() { return ++last_; }

  /// Where a movement with these coordinates (in its result's, as variables from 0) reads for who is wanted as `user`.
  int behind(const Demand& user, const Coords& coords) {
    const auto of = std::views::transform(user.places(), &Demand::Place::number);
    size_t hash = CoordsHash()(coords);
    for (int number : of) hash = hash * 31 + static_cast<size_t>(number);
    for (auto [at, end] = known_.equal_range(hash); at != end; ++at) {
      if (std::ranges::equal(at->second.of, of) && at->second.coords == coords) return at->second.number;
    }
    return known_.insert({hash, {{of.begin(), of.end()}, coords, fresh()}})->second.number;
  }

 private:
  struct Known {
    std::vector<int> of;
    Coords coords;
    int number;
  };
  std::unordered_multimap<size_t, Known> known_;
  int last_ = kOwn;
};

}  // namespace hlojit
