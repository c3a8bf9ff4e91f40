// SPDX-License-Identifier: Apache-2.0
//
// The loops of decode attention, written once over a vector of HEADWISE_SIMD_BYTES, which
// row_kernels.hpp defines and includes this text for, width by width; alone it is empty.
//
// A row is decoded in registers, for up to four query heads at a time. A sum depends on the
// elements, the number of rows of the block and the width alone, not on how rows lie in pages: each
// dot product is one chain of fused steps along the row and then a fixed tree over the lanes, each
// output element one chain along the rows in the order in which they are read. Rows of int8_row are
// multiplied before they are scaled: numbers of at most 17 bits, exact in float; their queries must
// stay below 2^100 in size.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

// Within each 16 bytes: the lower (upper) halves of a and b, a unit of `Unit` lanes of each by
// turns.
template <std::size_t Unit, bool Upper, class V, std::size_t... I>
[[gnu::always_inline]] inline V interleave(const V& a, const V& b,
                                           std::index_sequence<I...>) noexcept {
  return __builtin_shufflevector(
      a, b,
      static_cast<int>(I / 4 * 4 + (Upper ? 2 : 0) + I % 4 / (2 * Unit) * Unit + I % Unit +
                       (I % 4 / Unit % 2 == 1 ? lanes : 0))...);
}
template <std::size_t Unit, class V>
[[gnu::always_inline]] inline V add_interleaved(const V& a, const V& b) noexcept {
  constexpr auto all = std::make_index_sequence<lanes>{};
  return interleave<Unit, false>(a, b, all) + interleave<Unit, true>(a, b, all);
}
// The sums over the lanes of four vectors, of float or of integers.
template <class V>
[[gnu::always_inline]] inline auto sums_of(const V& a, const V& b, const V& c,
                                           const V& d) noexcept {
  const V all = add_interleaved<2>(add_interleaved<1>(a, b), add_interleaved<1>(c, d));
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

// The floats of row g.
[[gnu::always_inline]] inline const std::byte* floats_of(const rows<const float>& all,
                                                         std::size_t g) noexcept {
  return reinterpret_cast<const std::byte*>(all.data + g * all.stride);
}
// The queries or outputs g .. g + count.
template <class T>
[[gnu::always_inline]] inline rows<T> some_of(const rows<T>& all, std::size_t g,
                                              std::size_t count) noexcept {
  return {all.data + g * all.stride, count, all.width, all.stride};
}
// Rows that G queries meet at once: with sums for each, they fill half of the registers.
template <std::size_t G>
inline constexpr std::size_t rows_at_once = std::bit_floor(std::min<std::size_t>(8, registers / 2 /
                                                                                        G));

// fn(G, g) for G queries of `count`, a constant, from the g-th on. N: the rows that they meet; for
// a single one, fewer kinds of loops are compiled.
template <std::size_t N, class Fn>
[[gnu::always_inline]] inline void for_each_few(std::size_t count, const Fn& fn) noexcept {
  std::size_t g = 0;
  for (; g + 4 <= count; g += 4) fn(std::integral_constant<std::size_t, 4>{}, g);
  if constexpr (N > 1) {
    if (count - g == 3) return fn(std::integral_constant<std::size_t, 3>{}, g);
    if (count - g == 2) return fn(std::integral_constant<std::size_t, 2>{}, g);
  }
  for (; g < count; ++g) fn(std::integral_constant<std::size_t, 1>{}, g);
}
// fn(N, r, step, ahead) for the rows of a block, N of them at a time, a constant: r, r + step ..
// ahead: the first of those that come next.
template <class Fn>
[[gnu::always_inline]] inline void for_each_tile(row_block block, const Fn& fn) noexcept {
  const std::size_t step = block.size() / 8;
  for (std::size_t r = 0; r < step; ++r)
    fn(std::integral_constant<std::size_t, 8>{}, r, step, std::min(r + 1, step - 1));
  for (std::size_t r = 8 * step; r < block.size(); ++r)
    fn(std::integral_constant<std::size_t, 1>{}, r, std::size_t{1}, r);
}

// Asks for elements i .. of a row that is read later, as many as the caller is about to read of
// another. A processor that has many lines on their way drops what it is asked for, so it does no
// harm that some are asked for twice.
template <class Codec, std::size_t Elements>
[[gnu::always_inline]] inline void prefetch(const std::byte* row, std::size_t i) noexcept {
  for (std::size_t at = 0; at < Codec::row_bytes(Elements); at += 64)
    __builtin_prefetch(row + Codec::row_bytes(i) + at);
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
    for (std::size_t r = 0; r < R; ++r) load_numbers<Codec>(row[r], queries.width, i, keys[r]);
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
      load_numbers<Codec>(row[r], queries.width, i, keys[r]);
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
[[gnu::noinline]] void add_last_products(vec (&sums)[G][R], const std::byte* const* first,
                                         std::size_t step, const rows<const float>& queries,
                                         std::size_t i) noexcept {
  const std::size_t d = queries.width;
  for (; i < d; i += lanes)
    for (std::size_t r = 0; r < R; ++r) {
      const vec key = load_some_numbers<Codec>(first[r * step], d, i);
      for (std::size_t g = 0; g < G; ++g)
        sums[g][r] = fma(key, load_some<f32>(floats_of(queries, g), d, i), sums[g][r]);
    }
}
template <std::size_t G, std::size_t R>
[[gnu::always_inline]] inline void copy(const vec (&from)[G][R], vec (&to)[G][R]) noexcept {
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) to[g][r] = from[g][r];
}
// weights[g * stride + r * step] = scale * <query g, row r * step>, for R rows; ahead: the first of
// those that come next
template <class Codec, std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void dot_tile(const std::byte* const* first, std::size_t step,
                                            const std::byte* const* ahead,
                                            const rows<const float>& queries, float scale,
                                            float* weights, std::size_t stride) noexcept {
  constexpr std::size_t part = 32;
  const std::byte* row[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) row[r] = first[r * step];
  vec sums[G][R] = {};
  std::size_t i = 0;
  for (; i + part <= queries.width; i += part) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) prefetch<Codec, part>(ahead[r * step], i);
#pragma GCC unroll 8
    for (std::size_t u = 0; u < part; u += unit<Codec>)
      add_products<Codec>(sums, row, queries, i + u);
  }
  for (; i + unit<Codec> <= queries.width; i += unit<Codec>)
    add_products<Codec>(sums, row, queries, i);
  if (i < queries.width) {
    vec all[G][R];  // what a real call is given cannot stay in registers
    copy(sums, all);
    add_last_products<Codec>(all, first, step, queries, i);
    copy(all, sums);
  }
  constexpr std::size_t padded = (G * R + 3) / 4 * 4;
  vec flat[padded];
#pragma GCC unroll 8
  for (std::size_t n = 0; n < padded; ++n) flat[n] = n < G * R ? sums[n / R % G][n % R] : vec{};
#pragma GCC unroll 8
  for (std::size_t n = 0; n < padded; n += 4) {
    const quad products = sums_of(flat[n], flat[n + 1], flat[n + 2], flat[n + 3]);
#pragma GCC unroll 4
    for (std::size_t k = n; k < n + 4; ++k)
      if (k < G * R)
        weights[k / R * stride + k % R * step] =
            products[k - n] * (scale * factor_of<Codec>(row[k % R]));
  }
}
// The same for N rows and all queries.
template <class Codec, std::size_t N>
void dot_rows(const std::byte* const* first, std::size_t step, const std::byte* const* ahead,
              const rows<const float>& queries, float scale, float* weights,
              std::size_t stride) noexcept {
  for_each_few<N>(queries.count, [&](auto count, std::size_t g) {
    constexpr std::size_t G = count(), R = std::min(N, rows_at_once<G>);
    for (std::size_t r = 0; r < N; r += R)
      dot_tile<Codec, R, G>(first + r * step, step, ahead + r * step, some_of(queries, g, G), scale,
                            weights + g * stride + r * step, stride);
  });
}
template <class Codec>
void dots(row_block block, const rows<const float>& queries, float scale, float* weights,
          std::size_t stride) noexcept {
  for_each_tile(block, [&](auto count, std::size_t r, std::size_t step, std::size_t ahead) {
    dot_rows<Codec, count()>(block.data() + r, step, block.data() + ahead, queries, scale,
                             weights + r, stride);
  });
}

// Elements i .. of G outputs, T whole vectors of them, or the `width` that are left:
// out[g] += the sum over r of weight[g][r] * row r * step, for R rows
template <class Codec, std::size_t T, std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void sum_tile(const std::byte* const* first, std::size_t step,
                                            const std::byte* const* ahead,
                                            const float (&weight)[G][R], std::size_t i,
                                            std::size_t width, const rows<float>& out) noexcept {
  const std::size_t d = out.width;
  vec sums[G][T];
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t t = 0; t < T; ++t)
      sums[g][t] = width == lanes ? load<vec>(out.data + g * out.stride + i + t * lanes)
                                  : load_some<f32>(floats_of(out, g), d, i);
  for (std::size_t r = 0; r < R; ++r) {
    vec values[T];
    if (width == lanes) {
      prefetch<Codec, T * lanes>(ahead[r * step], i);
      load_numbers<Codec>(first[r * step], d, i, values);
    } else {
      values[0] = load_some_numbers<Codec>(first[r * step], d, i);
    }
#pragma GCC unroll 8
    for (std::size_t g = 0; g < G; ++g) {
      const vec w = broadcast(weight[g][r]);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < T; ++t) sums[g][t] = fma(w, values[t], sums[g][t]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t t = 0; t < T; ++t)
      std::memcpy(out.data + g * out.stride + i + t * lanes, &sums[g][t], width * sizeof(float));
}
// out[g] += the sum over r of weights[g * stride + r * step] * row r * step, for R rows and all
// outputs
template <class Codec, std::size_t R>
void sum_rows(const std::byte* const* first, std::size_t step, const std::byte* const* ahead,
              const float* weights, std::size_t stride, const rows<float>& out) noexcept {
  for_each_few<R>(out.count, [&](auto count, std::size_t from) {
    constexpr std::size_t G = count(), at_once = (G <= 2 ? 4 : 2) * registers / 16;
    const auto part = some_of(out, from, G);
    float weight[G][R];
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t g = 0; g < G; ++g)
        weight[g][r] = weights[(from + g) * stride + r * step] * factor_of<Codec>(first[r * step]);
    std::size_t i = 0;
    for (; i + at_once * lanes <= part.width; i += at_once * lanes)
      sum_tile<Codec, at_once>(first, step, ahead, weight, i, lanes, part);
    for (; i < part.width; i += lanes)
      sum_tile<Codec, 1>(first, step, ahead, weight, i, std::min(lanes, part.width - i), part);
  });
}
template <class Codec>
void sums(row_block block, const float* weights, std::size_t stride,
          const rows<float>& out) noexcept {
  for_each_tile(block, [&](auto count, std::size_t r, std::size_t step, std::size_t ahead) {
    sum_rows<Codec, count()>(block.data() + r, step, block.data() + ahead, weights + r, stride,
                             out);
  });
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
  const float base = base_of(top_of(logits));
  const double sum = exponentials(logits, base);
  multiply_by(logits, inverse_of(sum));
  return base + static_cast<float>(std::log(sum));
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
