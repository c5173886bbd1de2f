#pragma once

#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace headrace {
namespace internal {

// Maps of strings find what a view names without a copy of it.
struct HashOfText {
  using is_transparent = void;
  size_t operator()(absl::string_view text) const {
    return absl::Hash<absl::string_view>{}(text);
  }
};

template <typename Key>
inline constexpr bool kIsText = std::is_same_v<Key, std::string>;

template <typename Key>
using HashOf = std::conditional_t<kIsText<Key>, HashOfText, absl::Hash<Key>>;

template <typename Key>
using EqualOf =
    std::conditional_t<kIsText<Key>, std::equal_to<>, std::equal_to<Key>>;

}  // namespace internal

// The hash tables of this library are those of the standard library, since an
// insertion that finds no memory leaves them as they were. Abseil's tables of
// the same shape are broken for good then: they are read and freed by a size
// that they never got.
template <typename Key, typename Value>
using HashMap = std::unordered_map<Key, Value, internal::HashOf<Key>,
                                   internal::EqualOf<Key>>;

template <typename Key>
using HashSet =
    std::unordered_set<Key, internal::HashOf<Key>, internal::EqualOf<Key>>;

}  // namespace headrace
