// SPDX-License-Identifier: Apache-2.0
//
// The loops of decode attention, written once over a vector of HEADWISE_SIMD_BYTES, which
// row_kernels.hpp defines and includes this text for, width by width; alone it is empty.
//
// A row is decoded in registers, for up to four query heads at a time. A sum depends on the
// elements and the width alone, never on how rows are cut into slabs or tiles: each dot product is
// one chain of fused steps along the row and then a fixed tree over the lanes, each output element
// one chain along the rows.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

// Within each 16 bytes: the lower (upper) halves of a and b, a unit of `Unit` lanes of each by
// turns.
template <std::size_t Unit, bool Upper, std::size_t... I>
[[gnu::always_inline]] inline vec interleave(const vec& a, const vec& b,
                                             std::index_sequence<I...>) noexcept {
  return __builtin_shufflevector(
      a, b,
      static_cast<int>(I / 4 * 4 + (Upper ? 2 : 0) + I % 4 / (2 * Unit) * Unit + I % Unit +
                       (I % 4 / Unit % 2 == 1 ? lanes : 0))...);
}
template <std::size_t Unit>
[[gnu::always_inline]] inline vec add_interleaved(const vec& a, const vec& b) noexcept {
  constexpr auto all = std::make_index_sequence<lanes>{};
  return interleave<Unit, false>(a, b, all) + interleave<Unit, true>(a, b, all);
}
// The sums over the lanes of four vectors.
[[gnu::always_inline]] inline quad sums_of(const vec& a, const vec& b, const vec& c,
                                           const vec& d) noexcept {
  const vec all = add_interleaved<2>(add_interleaved<1>(a, b), add_interleaved<1>(c, d));
#if HEADWISE_SIMD_BYTES == 64
  return (__builtin_shufflevector(all, all, 0, 1, 2, 3) +
          __builtin_shufflevector(all, all, 4, 5, 6, 7)) +
         (__builtin_shufflevector(all, all, 8, 9, 10, 11) +
          __builtin_shufflevector(all, all, 12, 13, 14, 15));
#elif HEADWISE_SIMD_BYTES == 32
  return __builtin_shufflevector(all, all, 0, 1, 2, 3) +
         __builtin_shufflevector(all, all, 4, 5, 6, 7);
#else
  return all;
#endif
}

template <std::size_t G, std::size_t R>
[[gnu::always_inline]] inline void copy(const vec (&from)[G][R], vec (&to)[G][R]) noexcept {
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) to[g][r] = from[g][r];
}
// The floats of row g.
[[gnu::always_inline]] inline const std::byte* floats_of(const rows<const float>& all,
                                                         std::size_t g) noexcept {
  return reinterpret_cast<const std::byte*>(all.data + g * all.stride);
}
// Elements i .. of R rows and G queries, a unit of the codec.
template <class Codec, std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void add_products(vec (&sums)[G][R], const std::byte* const (&row)[R],
                                                const rows<const float>& queries,
                                                std::size_t i) noexcept {
  constexpr std::size_t vectors = unit<Codec> / lanes;
  vec keys[R][vectors];
  if constexpr (vectors == 1) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) load_vectors<Codec>(row[r], queries.width, i, keys[r]);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < G; ++g) {
      vec query = load<vec>(queries.data + g * queries.stride + i);
      keep_in_register(query);  // or it would be loaded again for each row
#pragma GCC unroll 8
      for (std::size_t r = 0; r < R; ++r) sums[g][r] = fma(keys[r][0], query, sums[g][r]);
    }
  } else {  // a row at a time, since a unit of each would not fit the registers
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      load_vectors<Codec>(row[r], queries.width, i, keys[r]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < vectors; ++v)
#pragma GCC unroll 8
        for (std::size_t g = 0; g < G; ++g)
          sums[g][r] = fma(keys[r][v], load<vec>(queries.data + g * queries.stride + i + v * lanes),
                           sums[g][r]);
    }
  }
}
// The elements from i on, fewer than a unit.
template <class Codec, std::size_t R, std::size_t G>
[[gnu::noinline]] void add_last_products(vec (&sums)[G][R], const std::byte* const (&row)[R],
                                         const rows<const float>& queries, std::size_t i) noexcept {
  const std::size_t d = queries.width;
  for (; i < d; i += lanes)
    for (std::size_t r = 0; r < R; ++r) {
      const vec key = load_some<Codec>(row[r], d, i);
      for (std::size_t g = 0; g < G; ++g)
        sums[g][r] = fma(key, load_some<f32>(floats_of(queries, g), d, i), sums[g][r]);
    }
}
// Asks for the rows that come next while these are read; as far as the second-level cache, since
// they are many.
[[gnu::always_inline]] inline void prefetch(const std::byte* at, std::size_t bytes) noexcept {
  for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line, 0, 2);
}
// Lane by lane, the products of R rows, or the first `count` of them, and G queries.
template <class Codec, std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void multiply(const std::byte* first, std::size_t count,
                                            const std::byte* ahead,
                                            const rows<const float>& queries,
                                            vec (&sums)[G][R]) noexcept {
  const std::size_t d = queries.width;
  const std::byte* row[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) row[r] = first + std::min(r, count - 1) * Codec::row_bytes(d);
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) sums[g][r] = vec{};
  std::size_t i = 0;
  for (; i + unit<Codec> <= d; i += unit<Codec>) {
    prefetch(ahead, R * Codec::row_bytes(unit<Codec>));
    ahead += R * Codec::row_bytes(unit<Codec>);
    add_products<Codec>(sums, row, queries, i);
  }
  if (i < d) {
    vec all[G][R];  // what a real call is given cannot stay in registers
    copy(sums, all);
    add_last_products<Codec>(all, row, queries, i);
    copy(all, sums);
  }
}
// Dot products of R rows, or the first `count` of them, and G queries: products[g][q] holds those
// of the rows 4 q to 4 q + 3.
template <class Codec, std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void dot_tile(const std::byte* first, std::size_t count,
                                            const std::byte* ahead,
                                            const rows<const float>& queries,
                                            quad (&products)[G][R / 4]) noexcept {
  if constexpr (R * G < registers) {
    vec sums[G][R];
    multiply<Codec>(first, count, ahead, queries, sums);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
      for (std::size_t q = 0; q < R / 4; ++q)
        products[g][q] =
            sums_of(sums[g][4 * q], sums[g][4 * q + 1], sums[g][4 * q + 2], sums[g][4 * q + 3]);
  } else {  // two rows at a time, each of which gives a column
    static_assert(R == 4 && G == 4);
    quad column[R];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; r += 2) {
      vec sums[G][2];
      const std::size_t last = count - 1;
      multiply<Codec>(first + std::min(r, last) * Codec::row_bytes(queries.width),
                      count - std::min(r, last), ahead + r * Codec::row_bytes(queries.width),
                      queries, sums);
      column[r] = sums_of(sums[0][0], sums[1][0], sums[2][0], sums[3][0]);
      column[r + 1] = sums_of(sums[0][1], sums[1][1], sums[2][1], sums[3][1]);
    }
    const quad low01 = __builtin_shufflevector(column[0], column[1], 0, 4, 1, 5);
    const quad low23 = __builtin_shufflevector(column[2], column[3], 0, 4, 1, 5);
    const quad high01 = __builtin_shufflevector(column[0], column[1], 2, 6, 3, 7);
    const quad high23 = __builtin_shufflevector(column[2], column[3], 2, 6, 3, 7);
    products[0][0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    products[1][0] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    products[2][0] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    products[3][0] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  }
}
// weights[g * stride + r] = scale * <query g, row r>
template <class Codec, std::size_t G>
void dots_of(const row_block& block, const rows<const float>& queries, float scale, float* weights,
             std::size_t stride) noexcept {
  constexpr std::size_t at_once = G == 1 ? 8 : 4;  // sums enough to hide how long an addition takes
  const std::size_t row_bytes = Codec::row_bytes(queries.width);
  for (std::size_t r = 0; r < block.count; r += at_once) {
    const std::size_t count = std::min(at_once, block.count - r);
    quad products[G][at_once / 4];
    dot_tile<Codec, at_once, G>(block.row + r * row_bytes, count,
                                (block.ahead == nullptr ? block.row : block.ahead) + r * row_bytes,
                                queries, products);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < G; ++g) {
#pragma GCC unroll 8
      for (std::size_t q = 0; q < at_once / 4; ++q) products[g][q] *= scale;
      float* const to = weights + g * stride + r;
      if (count == at_once)
        std::memcpy(to, products[g], at_once * sizeof(float));
      else
        std::memcpy(to, products[g], count * sizeof(float));
    }
  }
}
template <class Codec>
void dots(const row_block& block, const rows<const float>& queries, float scale, float* weights,
          std::size_t stride) noexcept {
  row_block again = block;
  for (std::size_t g = 0; g < queries.count; g += 4) {
    const std::size_t few = std::min<std::size_t>(4, queries.count - g);
    const rows<const float> part(queries.data + g * queries.stride, few, queries.width,
                                 queries.stride);
    float* const to = weights + g * stride;
    if (few == 4) dots_of<Codec, 4>(again, part, scale, to, stride);
    if (few == 3) dots_of<Codec, 3>(again, part, scale, to, stride);
    if (few == 2) dots_of<Codec, 2>(again, part, scale, to, stride);
    if (few == 1) dots_of<Codec, 1>(again, part, scale, to, stride);
    again.ahead = nullptr;
  }
}

// Elements i .. of G outputs, T whole vectors of them, or the `width` that are left:
// out[g] += weights[g][r] * row r.
template <class Codec, std::size_t T, std::size_t G>
[[gnu::always_inline]] inline void sum_tile(const row_block& block, std::size_t row_bytes,
                                            std::size_t i, std::size_t width, const float* weights,
                                            std::size_t stride, const rows<float>& out) noexcept {
  const std::size_t d = out.width;
  vec sums[G][T];
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t t = 0; t < T; ++t)
      sums[g][t] = width == lanes ? load<vec>(out.data + g * out.stride + i + t * lanes)
                                  : load_some<f32>(floats_of(out, g), d, i);
  for (std::size_t r = 0; r < block.count; ++r) {
    if (block.ahead != nullptr) prefetch(block.ahead + r * row_bytes, row_bytes);
    vec values[T];
    if (width == lanes)
      load_vectors<Codec>(block.row + r * row_bytes, d, i, values);
    else
      values[0] = load_some<Codec>(block.row + r * row_bytes, d, i);
#pragma GCC unroll 8
    for (std::size_t g = 0; g < G; ++g) {
      const vec weight = broadcast(weights[g * stride + r]);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < T; ++t) sums[g][t] = fma(weight, values[t], sums[g][t]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t t = 0; t < T; ++t)
      std::memcpy(out.data + g * out.stride + i + t * lanes, &sums[g][t], width * sizeof(float));
}
template <class Codec, std::size_t G>
void sums_for(row_block block, const float* weights, std::size_t stride,
              const rows<float>& out) noexcept {
  constexpr std::size_t at_once = (G == 1 ? 8 : G == 2 ? 4 : 2) * registers / 16;
  const std::size_t d = out.width, row_bytes = Codec::row_bytes(d);
  std::size_t i = 0;
  for (; i + at_once * lanes <= d; i += at_once * lanes, block.ahead = nullptr)
    sum_tile<Codec, at_once, G>(block, row_bytes, i, lanes, weights, stride, out);
  for (; i < d; i += lanes, block.ahead = nullptr)
    sum_tile<Codec, 1, G>(block, row_bytes, i, std::min(lanes, d - i), weights, stride, out);
}
template <class Codec>
void sums(const row_block& block, const float* weights, std::size_t stride,
          const rows<float>& out) noexcept {
  row_block again = block;
  for (std::size_t g = 0; g < out.count; g += 4) {
    const std::size_t few = std::min<std::size_t>(4, out.count - g);
    const rows<float> part(out.data + g * out.stride, few, out.width, out.stride);
    const float* const from = weights + g * stride;
    if (few == 4) sums_for<Codec, 4>(again, from, stride, part);
    if (few == 3) sums_for<Codec, 3>(again, from, stride, part);
    if (few == 2) sums_for<Codec, 2>(again, from, stride, part);
    if (few == 1) sums_for<Codec, 1>(again, from, stride, part);
    again.ahead = nullptr;
  }
}

// exp(x) for x <= 0, to a few units in the last place; 0 below -87.3, where it is no normal number.
// A NaN stays one. x = n ln 2 + r, and exp(r) = 1 + r + r^2 p(r).
[[gnu::always_inline]] inline vec exp_of(const vec& x) noexcept {
  constexpr float lowest = -87.3F, shift = 12582912.0F;  // 1.5 * 2^23: adding it rounds
  const ints gone = x < lowest;
  const vec in_range = float_of((gone & bits_of(broadcast(lowest))) | (~gone & bits_of(x)));
  const vec shifted = fma(in_range, broadcast(0x1.715476p+0F), broadcast(shift));
  const vec n = shifted - shift;
  vec r = fma(n, broadcast(-0x1.62e400p-1F), in_range);
  r = fma(n, broadcast(-0x1.7f7d1cp-20F), r);
  vec p = broadcast(0x1.6a2434p-10F);  // minimax for the relative error of exp on |r| <= ln 2 / 2
  p = fma(p, r, broadcast(0x1.1239e2p-7F));
  p = fma(p, r, broadcast(0x1.5558f2p-5F));
  p = fma(p, r, broadcast(0x1.555492p-3F));
  p = fma(p, r, broadcast(0x1.fffffcp-2F));
  const vec small = fma(p, r * r, r) + 1.0F;
  const ints power = (bits_of(shifted) - std::bit_cast<std::int32_t>(shift) + 127) << 23;
  return float_of(~gone & bits_of(small * float_of(power)));
}

inline constexpr float least = -std::numeric_limits<float>::infinity();

// The last logits, below `lanes`, in a vector.
[[gnu::always_inline]] inline vec last_of(std::span<const float> logits) noexcept {
  const std::size_t rest = logits.size() % lanes;
  vec padded = broadcast(least);
  std::memcpy(&padded, logits.data() + logits.size() - rest, rest * sizeof(float));
  return padded;
}
// The greatest of the logits; one that is no number does not count.
inline float top_of(std::span<const float> logits) noexcept {
  vec tops = broadcast(least);
  const auto raise = [&](const vec& v) {
    const ints above = v > tops;
    tops = float_of((above & bits_of(v)) | (~above & bits_of(tops)));
  };
  for (std::size_t i = 0; i + lanes <= logits.size(); i += lanes)
    raise(load<vec>(logits.data() + i));
  raise(last_of(logits));
  float top = least;
  for (std::size_t lane = 0; lane < lanes; ++lane) top = std::max(top, tops[lane]);
  return top;
}
// In place: exp(logit - top). Returns the sum.
inline double exponentials(std::span<float> logits, float top) noexcept {
  const std::size_t n = logits.size(), whole = n / lanes * lanes;
  double sum = 0.0;
  for (std::size_t i = 0; i < whole;) {
    vec part = {};  // few enough that float loses nothing that counts
    for (const std::size_t end = std::min(whole, i + 64 * lanes); i < end; i += lanes) {
      const vec v = exp_of(load<vec>(logits.data() + i) - top);
      store(logits.data() + i, v);
      part += v;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) sum += static_cast<double>(part[lane]);
  }
  const vec padded = exp_of(last_of(logits) - top);
  std::memcpy(logits.data() + whole, &padded, (n - whole) * sizeof(float));
  for (std::size_t lane = 0; lane < n - whole; ++lane) sum += static_cast<double>(padded[lane]);
  return sum;
}
inline void multiply_by(std::span<float> numbers, float factor) noexcept {
  std::size_t i = 0;
  for (; i + lanes <= numbers.size(); i += lanes)
    store(numbers.data() + i, load<vec>(numbers.data() + i) * factor);
  for (; i < numbers.size(); ++i) numbers[i] *= factor;
}
// In place: logits become probabilities. Returns log(sum(exp(logits))).
inline float softmax(std::span<float> logits) noexcept {
  const float top = top_of(logits);
  const double sum = exponentials(logits, top);
  multiply_by(logits, static_cast<float>(1.0 / sum));
  return top + static_cast<float>(std::log(sum));
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
