// Any bytes as an input of a model: a .npy file, or else JSON. What is read is
// printed and written, and read again.
#include <cstdlib>

#include "command/text/array_text.h"
#include "command/text/json_tensor.h"
#include "command/text/json_value_tensor.h"
#include "command/text/npy.h"

namespace headrace::command {
namespace {

void Use(const Tensor& t) {
  ArrayText(t);
  JsonWriter json;
  WriteJson(t, json);
  const auto bytes = NpyFromTensor(t);
  if (!bytes.ok()) return;
  const auto again = TensorFromNpy(*bytes);
  if (!again.ok() || again->shape() != t.shape()) abort();
}

}  // namespace
}  // namespace headrace::command

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  using namespace headrace;
  using namespace headrace::command;
  const StringView bytes(data, size);
  if (const auto t = TensorFromNpy(bytes); t.ok()) Use(*t);
  const auto json = ParseJson(bytes);
  if (!json.ok()) return 0;
  for (const DType d : {DType::kFloat, DType::kInt8, DType::kUint64,
                        DType::kBool, DType::kString, DType::kComplex64}) {
    if (const auto t = TensorFromJson(*json, d); t.ok()) Use(*t);
  }
  return 0;
}
