// Dispatch on how elements move, not on what they mean: a type per element
// size, and the object types.
#pragma once

#include <string>

#include "tensor/dtype.h"
#include "tensor/variant.h"

namespace headrace {

// Plain elements by size; they may alias elements of any type.
using Word1 = uint8_t;
struct __attribute__((may_alias)) Word2 {
  uint16_t bits;
};
struct __attribute__((may_alias)) Word4 {
  uint32_t bits;
};
struct __attribute__((may_alias)) Word8 {
  uint64_t bits;
};
struct __attribute__((may_alias)) Word16 {
  uint64_t low, high;
};

// Calls f(TypeTag<T>{}) with the type that moves elements of `dtype`; false
// for dtypes without elements.
template <typename F>
bool DispatchElement(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kString:
      f(TypeTag<std::string>{});
      return true;
    case DType::kVariant:
      f(TypeTag<Variant>{});
      return true;
    case DType::kResource:
      f(TypeTag<ResourceHandle>{});
      return true;
    default:
      break;
  }
  switch (DTypeSize(dtype)) {
    case 1:
      f(TypeTag<Word1>{});
      return true;
    case 2:
      f(TypeTag<Word2>{});
      return true;
    case 4:
      f(TypeTag<Word4>{});
      return true;
    case 8:
      f(TypeTag<Word8>{});
      return true;
    case 16:
      f(TypeTag<Word16>{});
      return true;
    default:
      return false;
  }
}

}  // namespace headrace
