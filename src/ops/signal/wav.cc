// The format, numbers little-endian:
//   "RIFF" u32 bytes that follow  "WAVE"
//   "fmt " u32 16 or 18  u16 1 (PCM)  u16 channels  u32 rate  u32 bytes a
//     second  u16 bytes a sample of all channels  u16 bits (16) [u16 unused]
//   chunks: four letters, u32 size, bytes; one of them "data"
#include "ops/signal/wav.h"

#include <cmath>
#include <limits>

#include "base/coding.h"

namespace headrace {
namespace {

// The header has two bytes for it.
constexpr int64_t kMostChannels = 65535;

// Bytes from front to back; every read is checked.
class Reader {
 public:
  explicit Reader(StringView bytes) : left_(bytes) {}
  bool done() const { return left_.empty(); }
  StatusOr<StringView> Take(size_t n) {
    if (n > left_.size()) {
      return InvalidArgument("Data too short when trying to read string");
    }
    const StringView taken = left_.substr(0, n);
    left_.remove_prefix(n);
    return taken;
  }
  Status Expect(StringView word) {
    HR_ASSIGN_OR_RETURN(const StringView found, Take(word.size()));
    if (found == word) return OkStatus();
    return InvalidArgument("Header mismatch: Expected ", word, " but found ",
                           found);
  }
  StatusOr<uint32_t> Number(int bytes) {
    HR_ASSIGN_OR_RETURN(const StringView taken, Take(bytes));
    uint32_t v = 0;
    for (int i = 0; i < bytes; ++i) {
      v |= uint32_t{static_cast<uint8_t>(taken[i])} << (8 * i);
    }
    return v;
  }

 private:
  StringView left_;
};

// The "fmt " chunk.
Status ReadFormat(Reader& r, WavSound* sound) {
  HR_RETURN_IF_ERROR(r.Expect("fmt "));
  HR_ASSIGN_OR_RETURN(const uint32_t size, r.Number(4));
  if (size != 16 && size != 18) {
    return InvalidArgument(
        "Bad format chunk size for WAV: Expected 16 or 18, but got", size);
  }
  HR_ASSIGN_OR_RETURN(const uint32_t kind, r.Number(2));
  if (kind != 1) {
    return InvalidArgument(
        "Bad audio format for WAV: Expected 1 (PCM), but got", kind);
  }
  HR_ASSIGN_OR_RETURN(const uint32_t channels, r.Number(2));
  if (channels < 1) {
    return InvalidArgument(
        "Bad number of channels for WAV: Expected at least 1, but got ",
        channels);
  }
  HR_ASSIGN_OR_RETURN(sound->sample_rate, r.Number(4));
  HR_ASSIGN_OR_RETURN(const uint32_t second, r.Number(4));
  HR_ASSIGN_OR_RETURN(const uint32_t sample, r.Number(2));
  HR_ASSIGN_OR_RETURN(const uint32_t bits, r.Number(2));
  if (bits != 16) {
    return InvalidArgument("Can only read 16-bit WAV files, but received ",
                           bits);
  }
  if (sample != channels * 2) {
    return InvalidArgument("Bad bytes per sample in WAV header: Expected ",
                           channels * 2, " but got ", sample);
  }
  const uint64_t wanted = uint64_t{sample} * sound->sample_rate;
  if (second != wanted) {
    return InvalidArgument("Bad bytes per second in WAV header: Expected ",
                           wanted, " but got ", second,
                           " (sample_rate=", sound->sample_rate,
                           ", bytes_per_sample=", sample, ")");
  }
  sound->channels = channels;
  return size == 18 ? r.Take(2).status() : OkStatus();
}

}  // namespace

StatusOr<WavSound> ReadWav(StringView bytes) {
  WavSound sound;
  Reader r(bytes);
  HR_RETURN_IF_ERROR(r.Expect("RIFF"));
  HR_RETURN_IF_ERROR(r.Take(4).status());
  HR_RETURN_IF_ERROR(r.Expect("WAVE"));
  HR_RETURN_IF_ERROR(ReadFormat(r, &sound));
  bool found = false;
  while (!r.done()) {
    HR_ASSIGN_OR_RETURN(const StringView id, r.Take(4));
    HR_ASSIGN_OR_RETURN(const uint32_t size, r.Number(4));
    constexpr uint32_t kLimit = std::numeric_limits<int32_t>::max();
    if (size > kLimit) {
      return InvalidArgument("WAV data chunk '", id, "' is too large: ", size,
                             " bytes, but the limit is ", kLimit);
    }
    if (id != "data") {
      HR_RETURN_IF_ERROR(r.Take(size).status());
      continue;
    }
    if (found) return InvalidArgument("More than one data chunk found in WAV");
    found = true;
    sound.samples = size / (2 * sound.channels);
    HR_ASSIGN_OR_RETURN(sound.pcm, r.Take(sound.samples * sound.channels * 2));
  }
  if (!found) return InvalidArgument("No data chunk found in WAV");
  return sound;
}

StatusOr<Tensor> DecodeWav(const WavSound& sound, int64_t channels,
                           int64_t samples) {
  if (channels < 0) channels = sound.channels;
  if (samples < 0) samples = sound.samples;
  HR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({samples, channels}));
  HR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(DType::kFloat, shape));
  float* to = out.data<float>();
  for (int64_t i = 0; i < samples; ++i) {
    for (int64_t k = 0; k < channels; ++k, ++to) {
      *to = 0;
      if (i >= sound.samples) continue;
      const int64_t at =
          2 * (i * sound.channels + std::min(k, sound.channels - 1));
      const auto low = static_cast<uint8_t>(sound.pcm[at]);
      const auto high = static_cast<uint8_t>(sound.pcm[at + 1]);
      *to = static_cast<float>(static_cast<int16_t>(low | high << 8)) / 32768;
    }
  }
  return out;
}

StatusOr<std::string> EncodeWav(const float* sound, int64_t samples,
                                int64_t channels, int64_t sample_rate) {
  // The header has four bytes for sizes and rates.
  constexpr int64_t kLimit = int64_t{1} << 32;
  if (sample_rate <= 0 || sample_rate >= kLimit) {
    return InvalidArgument("sample_rate must be in (0, 2^32), got: ",
                           sample_rate);
  }
  if (channels <= 0 || channels > kMostChannels) {
    return InvalidArgument("num_channels must be in (0, 2^16), got: ",
                           channels);
  }
  const int64_t sample = channels * 2;
  if (samples > (kLimit - 64) / sample || sample_rate * sample >= kLimit) {
    return InvalidArgument("a WAV file cannot hold ", samples, " samples of ",
                           channels, " channels at a rate of ", sample_rate);
  }
  const auto bytes = static_cast<uint32_t>(samples * sample);
  std::string out = "RIFF";
  out.reserve(size_t{bytes} + 44);
  PutFixed32(&out, bytes + 36);
  out += "WAVEfmt ";
  PutFixed32(&out, 16);
  auto half = [&out](int64_t v) {
    out.push_back(static_cast<char>(v & 0xff));
    out.push_back(static_cast<char>(v >> 8 & 0xff));
  };
  half(1);
  half(channels);
  PutFixed32(&out, static_cast<uint32_t>(sample_rate));
  PutFixed32(&out, static_cast<uint32_t>(sample_rate * sample));
  half(sample);
  half(16);
  out += "data";
  PutFixed32(&out, bytes);
  for (int64_t i = 0; i < samples * channels; ++i) {
    const float v = std::round(sound[i] * 32768);
    half(std::isnan(v)
             ? 0
             : static_cast<int64_t>(std::clamp(v, -32768.f, 32767.f)));
  }
  return out;
}

namespace {

Status DecodeShape(ShapeContext& c) {
  HR_RETURN_IF_ERROR(CheckRank(c.input(0), 0));
  const int64_t channels = c.op().int_attr("desired_channels");
  const int64_t samples = c.op().int_attr("desired_samples");
  if (channels < -1) {
    return InvalidArgument("desired_channels must be >= -1, got ", channels);
  }
  if (samples < -1) {
    return InvalidArgument("desired_samples must be >= -1, got ", samples);
  }
  HR_ASSIGN_OR_RETURN(Shape shape, Shape::Make({samples, channels}, true));
  c.set_output(0, std::move(shape));
  c.set_output(1, Shape());
  return OkStatus();
}

Status RunDecode(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const WavSound sound,
                      ReadWav(c.input(0).scalar<std::string>()));
  HR_ASSIGN_OR_RETURN(Tensor out,
                      DecodeWav(sound, c.op().int_attr("desired_channels"),
                                c.op().int_attr("desired_samples")));
  c.set_output(0, std::move(out));
  c.set_output(1, Tensor::Scalar(static_cast<int32_t>(sound.sample_rate)));
  return OkStatus();
}

HR_OP(DecodeWav)
    .Input("contents: string")
    .Output("audio: float")
    .Output("sample_rate: int32")
    .Attr("desired_channels: int = -1")
    .Attr("desired_samples: int = -1")
    .Doc("The samples of a 16-bit sound file, in [-1, 1).")
    .Shape(DecodeShape)
    .Cpu(ComputeOwn<RunDecode>);

Status EncodeShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 2) {
    return InvalidArgument("audio must be 2-dimensional", c.input(0));
  }
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("Input sample_rate should be a scalar tensor, got ",
                           c.input(1), " instead.");
  }
  c.set_output(0, Shape());
  return OkStatus();
}

Status RunEncode(KernelContext& c) {
  const Tensor& in = c.input(0);
  HR_ASSIGN_OR_RETURN(
      *c.out<std::string>(0),
      EncodeWav(in.data<float>(), in.dim(0), in.dim(1), c.in<int32_t>(1)[0]));
  return OkStatus();
}

HR_OP(EncodeWav)
    .Input("audio: float")
    .Input("sample_rate: int32")
    .Output("contents: string")
    .Doc("A 16-bit sound file of samples [length, channels].")
    .Shape(EncodeShape)
    .Cpu(Compute<RunEncode>);

}  // namespace
}  // namespace headrace
