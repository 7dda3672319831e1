#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"

// Reads and writes of big- and little-endian integers in byte spans. The compiler turns each into
// one load or store (and one bswap); there is no aliasing and no alignment rule to break.
//
// Two families:
//   be<T, Offset>(fixed span)  the offset is checked by the compiler: for record views;
//   get_be<T>(span, offset)    the offset is checked at run time (CHECK): for tables of records,
//                              whose bounds the caller has already compared with the span.
namespace jbdlab {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

namespace detail {
template <std::unsigned_integral T, bool Big>
constexpr T load(const std::byte* from) noexcept {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return static_cast<T>(
        (... | (static_cast<T>(std::to_integer<T>(from[I])) << 8 * (Big ? sizeof(T) - 1 - I : I))));
  }(std::make_index_sequence<sizeof(T)>{});
}
template <std::unsigned_integral T, bool Big>
constexpr void store(std::byte* to, T value) noexcept {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((to[I] = static_cast<std::byte>(value >> 8 * (Big ? sizeof(T) - 1 - I : I))), ...);
  }(std::make_index_sequence<sizeof(T)>{});
}
}  // namespace detail

template <std::unsigned_integral T, std::size_t Offset, std::size_t N>
constexpr T be(std::span<const std::byte, N> raw) noexcept {
  static_assert(N != std::dynamic_extent && Offset + sizeof(T) <= N);
  return detail::load<T, true>(raw.data() + Offset);
}
template <std::unsigned_integral T, std::size_t Offset, std::size_t N>
constexpr T le(std::span<const std::byte, N> raw) noexcept {
  static_assert(N != std::dynamic_extent && Offset + sizeof(T) <= N);
  return detail::load<T, false>(raw.data() + Offset);
}
template <std::unsigned_integral T, std::size_t Offset, std::size_t N>
constexpr void put_be(std::span<std::byte, N> raw, T value) noexcept {
  static_assert(N != std::dynamic_extent && Offset + sizeof(T) <= N);
  detail::store<T, true>(raw.data() + Offset, value);
}
template <std::unsigned_integral T, std::size_t Offset, std::size_t N>
constexpr void put_le(std::span<std::byte, N> raw, T value) noexcept {
  static_assert(N != std::dynamic_extent && Offset + sizeof(T) <= N);
  detail::store<T, false>(raw.data() + Offset, value);
}

template <std::unsigned_integral T>
constexpr T get_be(ByteSpan raw, std::size_t offset) {
  CHECK(offset <= raw.size() && sizeof(T) <= raw.size() - offset);
  return detail::load<T, true>(raw.data() + offset);
}
template <std::unsigned_integral T>
constexpr T get_le(ByteSpan raw, std::size_t offset) {
  CHECK(offset <= raw.size() && sizeof(T) <= raw.size() - offset);
  return detail::load<T, false>(raw.data() + offset);
}
template <std::unsigned_integral T>
constexpr void set_be(MutableByteSpan raw, std::size_t offset, T value) {
  CHECK(offset <= raw.size() && sizeof(T) <= raw.size() - offset);
  detail::store<T, true>(raw.data() + offset, value);
}
template <std::unsigned_integral T>
constexpr void set_le(MutableByteSpan raw, std::size_t offset, T value) {
  CHECK(offset <= raw.size() && sizeof(T) <= raw.size() - offset);
  detail::store<T, false>(raw.data() + offset, value);
}

}  // namespace jbdlab
