// SPDX-License-Identifier: Apache-2.0
//
// Queries as integers of 16 bits, in steps of their largest magnitude / most_number, for
// integer_dots-inl.hpp; written once over a vector of HEADWISE_SIMD_BYTES, which row_kernels.hpp
// defines and includes this text for; alone it is empty.
//
// Rows are read in chunks. Where the last would be short, it begins earlier, and the numbers of the
// query that another chunk has counted are 0 in it.
#ifdef HEADWISE_SIMD_BYTES
#include "headwise/core/simd_begin-inl.hpp"

// The largest magnitude; NaN where an element is.
[[gnu::always_inline]] inline float largest_of(const std::byte* query, std::size_t d) noexcept {
  ints top = {};
  for (std::size_t i = 0; i < d; i += lanes) {
    const ints bits = bits_of(load_some<f32>(query, d, i)) & 0x7fffffff;
    const ints above = bits > top;
    top = (above & bits) | (~above & top);
  }
  std::int32_t most = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) most = std::max(most, top[lane]);
  return std::bit_cast<float>(most);
}

// Queries as integers: some of a group, head_dim wide.
template <affine_codec Codec>
class integer_queries {
 public:
  static constexpr std::size_t most_queries = 8, most_width = 512;
  // Elements that are read together, so many vectors of shorts.
  static constexpr std::size_t vectors = std::same_as<Codec, int8_row> ? 1 : 4;
  static constexpr std::size_t chunk = vectors * 2 * lanes;
  static constexpr bool grouped = std::same_as<Codec, int4_group>;
  static constexpr std::size_t sums_stride = grouped ? most_width / chunk * lanes : 1;

  integer_queries() noexcept {
    if constexpr (!grouped) std::fill(std::begin(sums_), std::end(sums_), 0.0F);
  }
  // Whether rows of so many elements have a whole chunk, and are not too wide for integers.
  [[nodiscard]] static bool fits(std::size_t d) noexcept {
    return stored(d) >= chunk && d <= most_width;
  }
  // False where a query is no number, too large or too small.
  [[nodiscard]] bool take(const rows<const float>& queries) noexcept {
    stored_ = stored(queries.width);
    for (std::size_t g = 0; g < queries.count; ++g)
      if (!take(g, floats_of(queries, g), queries.width)) return false;
    return true;
  }

  // Elements of a row, stored ones.
  [[nodiscard]] std::size_t stored() const noexcept { return stored_; }
  // Of query g and those after it: [chunks, most_queries, chunk].
  [[nodiscard]] const std::int16_t* numbers(std::size_t g) const noexcept {
    return numbers_ + g * chunk;
  }
  // The step of query g and of those after it.
  [[nodiscard]] const float* steps(std::size_t g) const noexcept { return steps_ + g; }
  // 128 * the sum of its numbers.
  [[nodiscard]] const float* code_sums(std::size_t g) const noexcept { return code_sums_ + g; }
  // The sum of its elements, in steps. int4_group: the sum over each group, [sums_stride] for each
  // query, for each chunk in the first of the lanes of its groups.
  [[nodiscard]] const float* sums(std::size_t g) const noexcept { return sums_ + g * sums_stride; }

 private:
  // The first element of a chunk.
  [[nodiscard]] std::size_t first_of(std::size_t c) const noexcept {
    return std::min(c * chunk, stored_ - chunk);
  }
  static constexpr std::size_t group = int4_group::group_elements;
  [[nodiscard]] static std::size_t stored(std::size_t d) noexcept {
    return grouped ? int4_group::groups(d) * group : d;
  }
  // The products of d numbers with codes of 8 bits stay below 2^31.
  [[nodiscard]] static float most_number(std::size_t d) noexcept {
    return static_cast<float>(std::min<std::size_t>(32767, 0x7fffffff / 255 / d));
  }

  bool take(std::size_t g, const std::byte* query, std::size_t d) noexcept {
    const float largest = largest_of(query, d);
    if (largest != 0.0F && !(largest >= 0x1p-100F && largest <= 0x1p+100F)) return false;
    const float per_step = largest == 0.0F ? 0.0F : most_number(d) / largest;
    steps_[g] = largest == 0.0F ? 0.0F : 1.0F / per_step;
    std::int16_t numbers[most_width + lanes];
    std::memset(numbers + d, 0, (stored_ - d) * sizeof *numbers);
    float* const sums = sums_ + g * sums_stride;
    std::fill(sums, sums + sums_stride, 0.0F);
    constexpr std::size_t part = grouped ? group : most_width;
    for (std::size_t i = 0; i < d; i += part) {
      std::int32_t whole = 0;
      const float rest = round(query, d, i, std::min(d, i + part), per_step, numbers, whole);
      const std::size_t c = i / chunk;
      sums[grouped ? c * lanes + (i - first_of(c)) / group * 4 : 0] =
          static_cast<float>(whole) + rest;
      code_sums_[g] = 128.0F * static_cast<float>(whole);
    }
    for (std::size_t c = 0; c * chunk < stored_; ++c) place(numbers, g, c);
    return true;
  }
  // Elements from .. to become numbers, whose sum is `whole`. Returns what rounding took.
  static float round(const std::byte* query, std::size_t d, std::size_t from, std::size_t to,
                     float per_step, std::int16_t* numbers, std::int32_t& whole) noexcept {
    constexpr float shift = 12582912.0F;  // 1.5 * 2^23: adding it rounds
    using halves [[gnu::vector_size(HEADWISE_SIMD_BYTES / 2)]] = std::int16_t;
    ints total = {};
    vec rests = {};
    for (std::size_t i = from; i < to; i += lanes) {
      const vec exact = load_some<f32>(query, d, i) * per_step;
      const ints number = bits_of(exact + shift) - std::bit_cast<std::int32_t>(shift);
      const halves narrow = __builtin_convertvector(number, halves);
      std::memcpy(numbers + i, &narrow, sizeof narrow);
      total += number;
      rests += exact - __builtin_convertvector(number, vec);
    }
    float rest = 0.0F;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      whole += total[lane];
      rest += rests[lane];
    }
    return rest;
  }
  // Chunk c in the order in which codes are unpacked.
  void place(const std::int16_t* numbers, std::size_t g, std::size_t c) noexcept {
    const std::size_t first = first_of(c);
    std::int16_t* const to = numbers_ + (c * most_queries + g) * chunk;
    if constexpr (grouped) {
      for (std::size_t i = 0; i < chunk; i += 8) {
        std::int16_t* const at = to + i % group * (chunk / group) + i / group * 8;
        if (first + i < c * chunk)
          std::memset(at, 0, 8 * sizeof *at);
        else
          std::memcpy(at, numbers + first + i, 8 * sizeof *at);
      }
    } else {
      std::memcpy(to, numbers + first, chunk * sizeof *to);
      for (std::size_t i = 0; first + i < c * chunk; ++i) to[i] = 0;
    }
  }

  std::size_t stored_ = 0;
  alignas(HEADWISE_SIMD_BYTES) std::int16_t numbers_[most_queries * most_width];
  alignas(HEADWISE_SIMD_BYTES) float sums_[(most_queries + 3) * sums_stride];
  float steps_[most_queries + 3] = {};  // read by fours, from any query on
  float code_sums_[most_queries + 3] = {};
};

#include "headwise/core/simd_end-inl.hpp"
#undef HEADWISE_SIMD_BYTES
#endif  // HEADWISE_SIMD_BYTES
