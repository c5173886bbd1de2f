// Arrays in NumPy's files (.npy).
#pragma once

#include <string>

#include "base/status.h"
#include "tensor/tensor.h"

namespace headrace::command {

// The array in a file's bytes. InvalidArgument for what is no such file, ends
// too early, or says what its bytes do not hold; Unimplemented for arrays of
// objects and of types that tensors lack. Texts of NumPy (U) become UTF-8.
StatusOr<Tensor> TensorFromNpy(StringView bytes);

// The file's bytes. Strings become bytes of one length (S): InvalidArgument
// where one ends in a zero byte, which that form loses. Types that NumPy lacks
// are written as raw bytes (V2, V1), which is how it writes them itself.
// Unimplemented for resources and variants.
StatusOr<std::string> NpyFromTensor(const Tensor& tensor);

}  // namespace headrace::command
