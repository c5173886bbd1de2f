// Any bytes as packed ones.
#include "formats/snappy.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  std::string out;
  headrace::SnappyUnpack(absl::string_view(data, size), &out);
  return 0;
}
