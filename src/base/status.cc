#include "base/status.h"

namespace headrace {
static_assert(static_cast<int>(absl::StatusCode::kDataLoss) == 15,
              "status codes are upstream's numbers");
}  // namespace headrace
