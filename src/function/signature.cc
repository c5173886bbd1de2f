#include "function/signature.h"

#include <algorithm>

namespace headrace {

[[gnu::hot]] void Signature::AddShape(Tag tag, DType dtype,
                                      const Shape& shape) {
  const int rank = shape.rank();
  tokens_.push_back(Token(
      tag, static_cast<uint64_t>(dtype) << 16 | static_cast<uint8_t>(rank)));
  for (int i = 0; i < rank; ++i) tokens_.push_back(shape[i]);
}

[[gnu::hot]] void Signature::AddTensor(const Value& v) {
  AddShape(kTensor, v.dtype(), v.shape());
  leaves_.push_back(v);
  // What lies behind a handle is part of the signature: bodies are traced for
  // its dtype and shape.
  if (v.dtype() != DType::kResource && v.dtype() != DType::kVariant) return;
  const HandleData* behind = v.handle_data();
  if (behind == nullptr) return;
  for (const auto& part : *behind) AddShape(kHandle, part.dtype, part.shape);
}

void Signature::AddVariable(const Value& handle, DType dtype,
                            const Shape& shape, bool trainable) {
  AddShape(kVariable, dtype, shape);
  // Which arguments are the same variable, not which variable it is: a trace
  // fits other variables, unless two of them coincide where they did not.
  const auto at = std::find(variables_.begin(), variables_.end(), handle.id());
  tokens_.push_back(uint64_t{trainable} << 32 |
                    static_cast<uint64_t>(at - variables_.begin()));
  if (at == variables_.end()) variables_.push_back(handle.id());
  leaves_.push_back(handle);
}

}  // namespace headrace
