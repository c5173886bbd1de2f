// Sound files (RIFF WAVE, 16 bits a sample) from and to samples.
#pragma once

#include <string>

#include "op/op.h"

namespace headrace {

// What a file holds. Samples lie in the file's bytes, channel by channel.
struct WavSound {
  uint32_t sample_rate = 0;
  int64_t channels = 0;
  int64_t samples = 0;  // of each channel
  StringView pcm;       // samples * channels little-endian int16; borrowed
};

// Reads the chunks of a file: "RIFF" size "WAVE", "fmt " first, then any, of
// which "data" is kept. Bytes may be hostile; InvalidArgument in upstream's
// words where they are no such file. The result points into `bytes`.
StatusOr<WavSound> ReadWav(StringView bytes);

// [samples, channels] in [-1, 1). `channels` and `samples`: -1, what the file
// has; more of them repeat the last channel, and end in silence.
StatusOr<Tensor> DecodeWav(const WavSound& sound, int64_t channels,
                           int64_t samples);

// A file of `samples` times `channels` numbers, of which 1 is the loudest.
StatusOr<std::string> EncodeWav(const float* sound, int64_t samples,
                                int64_t channels, int64_t sample_rate);

}  // namespace headrace
