// Shardings as HLO writes them: which part each device has, and arrays cut and joined by them.
#include "runtime/pjrt/shards.h"

#include <doctest/doctest.h>

#include <numeric>

namespace hlojit::pjrt {
namespace {

using Parts = std::vector<std::vector<int64_t>>;

Buffer counting(std::vector<int64_t> dims) {
  Buffer b = Buffer::allocate(Shape::array(DType::kS32, std::move(dims)));
  auto* data = static_cast<int32_t*>(b.mutable_raw());
  std::iota(data, data + b.shape().element_count(), 0);
  return b;
}

std::vector<int32_t> values(const Buffer& b) {
  return {b.data<int32_t>(), b.data<int32_t>() + b.shape().element_count()};
}

}  // namespace

TEST_CASE("shards: who has which part") {
  Shape s = Shape::array(DType::kS32, {4, 6});
  CHECK(read_shards("{replicated}", s, 4).whole());
  CHECK(read_shards("", s, 4).whole());
  CHECK(read_shards("{devices=[2,2]<=[4]}", s, 4).of == Parts{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  CHECK(read_shards("{devices=[2,2]<=[2,2]T(1,0)}", s, 4).of == Parts{{0, 0}, {1, 0}, {0, 1}, {1, 1}});
  CHECK(read_shards("{devices=[2,2]3,2,1,0}", s, 4).of == Parts{{1, 1}, {1, 0}, {0, 1}, {0, 0}});
  CHECK(read_shards("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", s, 4).of ==
        Parts{{0, 0}, {0, 0}, {1, 0}, {1, 0}});
  CHECK(read_shards("{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}", s, 4).of ==
        Parts{{0, 0}, {0, 1}, {0, 0}, {0, 1}});
}

TEST_CASE("shards: what has no meaning is refused") {
  Shape s = Shape::array(DType::kS32, {4, 6});
  CHECK_THROWS_AS(read_shards("{manual}", s, 4), Error);
  CHECK_THROWS_AS(read_shards("{devices=[1,4]<=[4]}", s, 4), Error);  // 6 does not fall into 4
  CHECK_THROWS_AS(read_shards("{devices=[2,2]<=[4]}", s, 8), Error);
  CHECK_THROWS_AS(read_shards("{devices=[2,2", s, 4), Error);
}

TEST_CASE("shards: tuples") {
  CHECK(split_sharding("{{replicated}, {devices=[2]<=[2]}}", 2)[1] == "{devices=[2]<=[2]}");
  CHECK(split_sharding("{replicated}", 3).size() == 3);
  CHECK_THROWS_AS(split_sharding("{{replicated}}", 2), Error);
}

TEST_CASE("shards: cut and joined again") {
  Buffer whole = counting({4, 6});
  Shards shards = read_shards("{devices=[2,3]<=[3,2]T(1,0)}", whole.shape(), 6);
  std::vector<Buffer> parts;
  for (size_t d = 0; d < 6; ++d) parts.push_back(cut_shard(whole, shards, d));
  CHECK(parts[1].shape().dims == std::vector<int64_t>{2, 2});
  CHECK(values(parts[1]) == std::vector<int32_t>{12, 13, 18, 19});
  CHECK(values(join_shards(whole.shape(), shards, parts)) == values(whole));
  Buffer scalar = counting({});
  Shards all = read_shards("{replicated}", scalar.shape(), 2);
  CHECK(values(join_shards(scalar.shape(), all, {scalar, scalar})) == values(scalar));
}

}  // namespace hlojit::pjrt
