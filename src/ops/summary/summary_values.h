// The values of summaries: tensors, images, sounds and how numbers are spread.
#pragma once

#include <string>

#include "op/op.h"
#include "tensorflow/core/framework/summary.pb.h"

namespace headrace {

// Unimplemented for handles and variants.
Status FillTensorProto(const Tensor& t, tensorflow::TensorProto* proto);

// How the numbers of a real tensor are spread; InvalidArgument where one is no
// number or infinite.
Status FillHistogram(const std::string& tag, const Tensor& values,
                     tensorflow::HistogramProto* histogram);

// At most `most` images of [n, height, width, 1, 3 or 4] as PNG files under
// "TAG/image/0" and so on (of one: "TAG/image"). Floating numbers are scaled so
// that the largest becomes 255, and 0 becomes 128 where there are negative
// ones; pixels with one that is not finite get `bad_color`, a uint8 a channel.
Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                 const Tensor& bad_color, tensorflow::Summary* summary);

// At most `most` sounds of [n, frames] or [n, frames, channels] as WAV files.
Status AddSounds(const std::string& tag, const Tensor& sounds, int64_t most,
                 float sample_rate, tensorflow::Summary* summary);

}  // namespace headrace
