// SPDX-License-Identifier: Apache-2.0
//
// dots of quantised rows by integer products, written once over a vector of HEADWISE_SIMD_BYTES,
// which row_kernels.hpp defines and includes this text for; alone it is empty.
//
// The products of the codes with the queries' integers (integer_queries-inl.hpp) are added up
// exactly, over a row or a group, so that a tile changes no bit. The zeros are multiplied by the
// sum of the query as it was given: so a query's rounding meets codes alone (in int8_row less 128),
// and a row of nearly equal elements, whose zero is large, loses nothing.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

using shorts [[gnu::vector_size(HEADWISE_SIMD_BYTES)]] = std::int16_t;

template <class To, class From>
[[gnu::always_inline]] inline To load_as(const From& v) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return load<To>(&v);
}

// sum + the products of a and b. Which lane of the sum a product is added to differs; of each 16
// bytes they stay in the same 16 bytes.
[[gnu::always_inline]] inline ints add_integer_products(const ints& sum, const shorts& a,
                                                        const shorts& b) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  return sum + load_as<ints>(_mm512_madd_epi16(load_as<__m512i>(a), load_as<__m512i>(b)));
#elif HEADWISE_SIMD_BYTES == 32
  return sum + load_as<ints>(_mm256_madd_epi16(load_as<__m256i>(a), load_as<__m256i>(b)));
#elif defined(__x86_64__)
  return sum + load_as<ints>(_mm_madd_epi16(load_as<__m128i>(a), load_as<__m128i>(b)));
#elif defined(__aarch64__)
  return vmlal_high_s16(vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b)), a, b);
#else
  const ints x = load<ints>(&a), y = load<ints>(&b);
  return sum + (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
#endif
}

// The codes of 2 * lanes elements of a byte each.
[[gnu::always_inline]] inline shorts short_codes_of(const std::byte* at) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  return load_as<shorts>(_mm512_maskz_cvtepu8_epi16(0xffffffff, load<__m256i>(at)));
#elif HEADWISE_SIMD_BYTES == 32
  return load_as<shorts>(_mm256_cvtepu8_epi16(load<__m128i>(at)));
#else
  using bytes [[gnu::vector_size(8)]] = std::uint8_t;
  return __builtin_convertvector(load<bytes>(at), shorts);
#endif
}
// Steps of as many groups as a vector holds, each in the lanes of its group.
[[gnu::always_inline]] inline ints spread_all(const std::byte* steps) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  const auto all = load_as<ints>(_mm512_maskz_broadcast_i32x4(0xffff, load<__m128i>(steps)));
  return __builtin_shufflevector(all, all, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
#elif HEADWISE_SIMD_BYTES == 32
  std::int64_t both;
  std::memcpy(&both, steps, sizeof both);
  const auto all = load_as<ints>(_mm256_set1_epi64x(both));
  return __builtin_shufflevector(all, all, 0, 0, 0, 0, 1, 1, 1, 1);
#else
  return spread(steps);
#endif
}

[[gnu::always_inline]] inline quad multiply_add(const quad& a, const quad& b,
                                                const quad& c) noexcept {
#if HEADWISE_SIMD_BYTES == 64
  return _mm_maskz_fmadd_ps(0xf, a, b, c);
#elif HEADWISE_SIMD_BYTES == 32
  return _mm_fmadd_ps(a, b, c);
#else
  return fma(a, b, c);
#endif
}
[[gnu::always_inline]] inline quad quad_of(float x) noexcept {
  return x - quad{};
}
// Some rows of a tile, `step` apart, and where their logits go: query g of row r to
// logits[g * stride + r * step].
struct tile_of_rows {
  const std::byte* const* first;
  const std::byte* const* ahead;  // the first of those that come next
  std::size_t step;
  const float* zeros;   // int8_row: 128 - zero of each row
  const float* scales;  // by which its products are multiplied
  float* logits;
  std::size_t stride;

  // Rows from r on, queries from g on.
  [[nodiscard]] tile_of_rows part(std::size_t r, std::size_t g) const noexcept {
    return {first + r * step,
            ahead + r * step,
            step,
            zeros + r,
            scales + r,
            logits + g * stride + r * step,
            stride};
  }
};

// Four sums at a time, of rows or of queries, become logits: sums[g][r] are those of G queries and
// R rows. logits_of(four sums, of_queries, of_rows), where of_queries(p) and of_rows(p) are what
// belongs to each of the four.
template <std::size_t R, std::size_t G, class V, class Fn>
[[gnu::always_inline]] inline void write_logits(const V (&sums)[G][R], const tile_of_rows& tile,
                                                const Fn& logits_of) noexcept {
  constexpr bool of_rows = R >= 4;
  constexpr std::size_t quads = of_rows ? G * R / 4 : R;
  V flat[4 * quads];
#pragma GCC unroll 8
  for (std::size_t n = 0; n < 4 * quads; ++n)
    flat[n] = of_rows ? sums[n / R % G][n % R] : n % 4 < G ? sums[n % 4 % G][n / 4 % R] : V{};
#pragma GCC unroll 8
  for (std::size_t n = 0; n < quads; ++n) {
    const std::size_t g = of_rows ? 4 * n / R : 0, r = of_rows ? 4 * n % R : n;
    const quad logits = logits_of(
        sums_of(flat[4 * n], flat[4 * n + 1], flat[4 * n + 2], flat[4 * n + 3]),
        [&](const float* p) { return of_rows ? quad_of(p[g]) : load<quad>(p); },
        [&](const float* p) { return of_rows ? load<quad>(p + r) : quad_of(p[r]); });
#pragma GCC unroll 4
    for (std::size_t k = 0; k < 4; ++k)
      if (of_rows)
        tile.logits[g * tile.stride + (r + k) * tile.step] = logits[k];
      else if (k < G)
        tile.logits[k * tile.stride + r * tile.step] = logits[k];
  }
}

// Elements i .. of R rows, whose numbers are those at n of each query.
template <std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void add_chunk(ints (&sums)[G][R], const std::byte* const (&row)[R],
                                             const std::int16_t* numbers, std::size_t i) noexcept {
  shorts codes[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) codes[r] = short_codes_of(row[r] + affine_step::bytes + i);
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g) {
    shorts query = load<shorts>(numbers + g * integer_queries<int8_row>::chunk);
    keep_in_register(query);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r)
      sums[g][r] = add_integer_products(sums[g][r], codes[r], query);
  }
}
template <std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void dot_integers(const tile_of_rows& tile,
                                                const integer_queries<int8_row>& queries,
                                                std::size_t from) noexcept {
  constexpr std::size_t chunk = integer_queries<int8_row>::chunk;
  constexpr std::size_t part = std::max<std::size_t>(32, chunk),
                        all = chunk * integer_queries<int8_row>::most_queries;
  const std::byte* row[R];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) row[r] = tile.first[r * tile.step];
  const std::int16_t* numbers = queries.numbers(from);
  const std::size_t d = queries.stored();
  ints sums[G][R];  // zeroed by loops: what `= {}` zeroes GCC 12 keeps in memory
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) sums[g][r] = ints{};
  std::size_t i = 0;
  for (; i + part <= d; i += part) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) prefetch<int8_row, part>(tile.ahead[r * tile.step], i);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < part; k += chunk, numbers += all)
      add_chunk(sums, row, numbers, i + k);
  }
  for (; i < d; i += chunk, numbers += all) add_chunk(sums, row, numbers, std::min(i, d - chunk));
  write_logits(sums, tile, [&](const auto& sum, const auto& of_queries, const auto& of_rows) {
    const quad coded = __builtin_convertvector(sum, quad) - of_queries(queries.code_sums(from));
    return multiply_add(of_rows(tile.zeros), of_queries(queries.sums(from)), coded) *
           of_queries(queries.steps(from)) * of_rows(tile.scales);
  });
}

// Groups from `group` on of a row, as many as a vector holds; numbers, group_sums: of their chunk.
template <std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void add_chunk(vec (&sums)[G][R], std::size_t r,
                                             const std::byte* steps_at, const std::byte* codes_at,
                                             const std::int16_t* numbers,
                                             const float* group_sums) noexcept {
  using integers = integer_queries<int4_group>;
  const ints steps = spread_all(steps_at);
  const vec scale = float_of(steps << 16), zero = __builtin_convertvector(steps >> 16, vec);
  const shorts words = load<shorts>(codes_at);
  ints products[G];
#pragma GCC unroll 4
  for (std::size_t g = 0; g < G; ++g) products[g] = ints{};
#pragma GCC unroll 4
  for (std::size_t v = 0; v < 4; ++v) {
    const shorts codes = (words >> static_cast<int>(4 * v)) & 15;
#pragma GCC unroll 4
    for (std::size_t g = 0; g < G; ++g)
      products[g] = add_integer_products(
          products[g], codes, load<shorts>(numbers + g * integers::chunk + v * 2 * lanes));
  }
#pragma GCC unroll 4
  for (std::size_t g = 0; g < G; ++g)
    sums[g][r] = fma(scale,
                     fma(-zero, load<vec>(group_sums + g * integers::sums_stride),
                         __builtin_convertvector(products[g], vec)),
                     sums[g][r]);
}
template <std::size_t R, std::size_t G>
[[gnu::always_inline]] inline void dot_integers(const tile_of_rows& tile,
                                                const integer_queries<int4_group>& queries,
                                                std::size_t from) noexcept {
  using integers = integer_queries<int4_group>;
  constexpr std::size_t chunk = integers::chunk, together = chunk / int4_group::group_elements;
  const std::size_t groups = queries.stored() / int4_group::group_elements;
  const std::int16_t* const numbers = queries.numbers(from);
  const float* const group_sums = queries.sums(from);
  vec sums[G][R];
#pragma GCC unroll 8
  for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) sums[g][r] = vec{};
  for (std::size_t k = 0, c = 0; k < groups; k += together, ++c) {
    const std::size_t at = std::min(k, groups - together);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const std::byte* const row = tile.first[r * tile.step];
      __builtin_prefetch(tile.ahead[r * tile.step] +
                         k * int4_group::row_bytes(int4_group::group_elements));
      add_chunk(sums, r, row + at * affine_step::bytes,
                row + groups * affine_step::bytes + at * int4_group::group_bytes,
                numbers + c * chunk * integers::most_queries, group_sums + c * lanes);
    }
  }
  write_logits(sums, tile, [&](const auto& sum, const auto& of_queries, const auto& of_rows) {
    return sum * of_queries(queries.steps(from)) * of_rows(tile.scales);
  });
}

// As dots() of row_kernels-inl.hpp.
template <affine_codec Codec>
void integer_dots(row_block block, const rows<const float>& queries, float scale, float* weights,
                  std::size_t stride) noexcept {
  using integers = integer_queries<Codec>;
  if (!integers::fits(queries.width)) return dots<Codec>(block, queries, scale, weights, stride);
  integers numbers;
  for (std::size_t from = 0; from < queries.count; from += integers::most_queries) {
    const std::size_t some = std::min(integers::most_queries, queries.count - from);
    float* const to = weights + from * stride;
    if (!numbers.take(some_of(queries, from, some))) {
      dots<Codec>(block, some_of(queries, from, some), scale, to, stride);
      continue;
    }
    for_each_tile(block, [&](auto n, std::size_t r, std::size_t step, std::size_t ahead) {
      constexpr std::size_t N = n();
      float zeros[N], scales[N];
      for (std::size_t k = 0; k < N; ++k) {
        zeros[k] = 0;
        scales[k] = scale;
        if constexpr (std::same_as<Codec, int8_row>) {
          const affine_step s = affine_step::read(block[r + k * step]);
          zeros[k] = static_cast<float>(128 - s.zero);
          scales[k] = scale * float_from_bf16(s.scale);
        }
      }
      const tile_of_rows tile = {
          block.data() + r, block.data() + ahead, step, zeros, scales, to + r, stride};
      for_each_few<N>(some, [&](auto count, std::size_t g) {
        constexpr std::size_t G = count(), R = std::min(N, rows_at_once<G>);
        for (std::size_t k = 0; k < N; k += R) dot_integers<R, G>(tile.part(k, g), numbers, g);
      });
    });
  }
}

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
