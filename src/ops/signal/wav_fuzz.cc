// Any bytes as a sound file.
#include "ops/signal/wav.h"

namespace headrace {
namespace {

void Read(StringView bytes) {
  auto sound = ReadWav(bytes);
  if (!sound.ok()) return;
  (void)DecodeWav(*sound, -1, -1);
  (void)DecodeWav(*sound, 3, 7);
  auto all = DecodeWav(*sound, -1, -1);
  if (!all.ok()) return;
  (void)EncodeWav(all->data<float>(), all->dim(0), all->dim(1),
                  sound->sample_rate);
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const char* data, size_t size) {
  headrace::Read(headrace::StringView(data, size));
  return 0;
}
