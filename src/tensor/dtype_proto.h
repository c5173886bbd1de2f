// Dtypes as protos name them.
#pragma once

#include "tensor/dtype.h"

namespace tensorflow {
enum DataType : int;
}

namespace headrace {

// The numbers are the same.
inline tensorflow::DataType TypeToProto(DType d) {
  return static_cast<tensorflow::DataType>(static_cast<int>(d));
}

}  // namespace headrace
