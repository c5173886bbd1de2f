// Summaries as serialized messages: ScalarSummary, HistogramSummary,
// ImageSummary, AudioSummary, TensorSummary, MergeSummary.
#include "base/hash_map.h"
#include "op/op.h"
#include "ops/summary/summary_values.h"

namespace headrace {
namespace {

using tensorflow::Summary;

Status OneString(ShapeContext& c) {
  c.set_output(0, Shape());
  return OkStatus();
}

Status SetSummary(KernelContext& c, const Summary& summary) {
  std::string bytes;
  if (!summary.SerializeToString(&bytes)) {
    return InvalidArgument("a summary of over 2 GiB");
  }
  c.set_output(0, Tensor::Scalar(std::move(bytes)));
  return OkStatus();
}

// The numbers of a real tensor as doubles.
std::vector<double> Numbers(const Tensor& t) {
  std::vector<double> out;
  out.reserve(t.num_elements());
  DispatchDType(t.dtype(), RealTypes{}, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T& x : t.span<T>()) out.push_back(static_cast<double>(x));
  });
  return out;
}

Status Scalars(KernelContext& c) {
  if (c.input(0).shape() != c.input(1).shape()) {
    return InvalidArgument("tags and values are not the same shape: ",
                           c.input(0).shape(), " != ", c.input(1).shape());
  }
  Summary summary;
  const auto tags = c.input(0).span<std::string>();
  const std::vector<double> values = Numbers(c.input(1));
  for (size_t i = 0; i < values.size(); ++i) {
    auto* value = summary.add_value();
    value->set_tag(tags[i]);
    value->set_simple_value(static_cast<float>(values[i]));
  }
  return SetSummary(c, summary);
}

Status Histogram(KernelContext& c) {
  if (c.input(0).shape().rank() != 0) {
    return InvalidArgument("tags must be scalar, not of shape ",
                           c.input(0).shape());
  }
  Summary summary;
  auto* value = summary.add_value();
  value->set_tag(c.input(0).scalar<std::string>());
  HR_RETURN_IF_ERROR(
      FillHistogram(value->tag(), c.input(1), value->mutable_histo()));
  return SetSummary(c, summary);
}

Status MergeSummaries(KernelContext& c) {
  Summary merged;
  HashSet<std::string> tags;
  for (int i = 0; i < c.num_inputs(); ++i) {
    for (const std::string& bytes : c.input(i).span<std::string>()) {
      Summary part;
      if (!part.ParseFromString(bytes)) {
        return InvalidArgument(
            "Could not parse one of the summary inputs as a Summary");
      }
      for (const auto& value : part.value()) {
        if (!value.tag().empty() && !tags.insert(value.tag()).second) {
          return InvalidArgument("Duplicate tag ", value.tag(),
                                 " found in summary inputs");
        }
        *merged.add_value() = value;
      }
    }
  }
  return SetSummary(c, merged);
}

HR_OP(ScalarSummary)
    .Input("tags: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype")
    .Doc("A Summary of numbers, each under its tag.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Scalars>);

HR_OP(HistogramSummary)
    .Input("tag: string")
    .Input("values: T")
    .Output("summary: string")
    .Attr("T: realnumbertype = DT_FLOAT")
    .Doc("A Summary of how values are spread.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Histogram>);

HR_OP(MergeSummary)
    .Input("inputs: N * string")
    .Output("summary: string")
    .Attr("N: int >= 1")
    .Doc("All the values of several summaries, as one Summary.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<MergeSummaries>);

StatusOr<std::string> OneTag(const KernelContext& c, int i) {
  if (c.input(i).num_elements() == 1) return c.input(i).scalar<std::string>();
  return InvalidArgument("tag must be scalar, got shape ", c.input(i).shape());
}

Status Images(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string tag, OneTag(c, 0));
  Summary summary;
  HR_RETURN_IF_ERROR(AddImages(tag, c.input(1), c.op().int_attr("max_images"),
                               c.op().attr<Tensor>("bad_color"), &summary));
  return SetSummary(c, summary);
}

HR_OP(ImageSummary)
    .Input("tag: string")
    .Input("tensor: T")
    .Output("summary: string")
    .Attr("max_images: int >= 1 = 3")
    .Attr("T: {uint8, float, half, double} = DT_FLOAT")
    .Attr("bad_color: tensor = uint8 [255, 0, 0, 255]")
    .Doc("A Summary of images, as PNG files.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Images>);

Status Sounds(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string tag, OneTag(c, 0));
  float rate = 0;
  if (c.num_inputs() == 2) {
    rate = c.op().float_attr("sample_rate");
  } else if (c.input(2).num_elements() == 1) {
    rate = c.input(2).scalar<float>();
  } else {
    return InvalidArgument("sample_rate must be scalar, got shape ",
                           c.input(2).shape());
  }
  Summary summary;
  HR_RETURN_IF_ERROR(AddSounds(tag, c.input(1), c.op().int_attr("max_outputs"),
                               rate, &summary));
  return SetSummary(c, summary);
}

HR_OP(AudioSummaryV2)
    .Input("tag: string")
    .Input("tensor: float")
    .Input("sample_rate: float")
    .Output("summary: string")
    .Attr("max_outputs: int >= 1 = 3")
    .Doc("A Summary of sounds, as WAV files.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Sounds>);

HR_OP(AudioSummary)
    .Input("tag: string")
    .Input("tensor: float")
    .Output("summary: string")
    .Attr("sample_rate: float")
    .Attr("max_outputs: int >= 1 = 3")
    .Deprecated(15, "Use AudioSummaryV2.")
    .Doc("A Summary of sounds, as WAV files.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<Sounds>);

Status TensorValue(KernelContext& c) {
  HR_ASSIGN_OR_RETURN(const std::string tag, OneTag(c, 0));
  HR_ASSIGN_OR_RETURN(const std::string metadata, OneTag(c, 2));
  Summary summary;
  auto* value = summary.add_value();
  value->set_tag(tag);
  HR_RETURN_IF_ERROR(FillTensorProto(c.input(1), value->mutable_tensor()));
  // What cannot be read is left out, as upstream does.
  if (!value->mutable_metadata()->ParseFromString(metadata)) {
    value->mutable_metadata()->Clear();
  }
  return SetSummary(c, summary);
}

HR_OP(TensorSummaryV2)
    .Input("tag: string")
    .Input("tensor: T")
    .Input("serialized_summary_metadata: string")
    .Output("summary: string")
    .Attr("T: type")
    .Doc("A Summary of a tensor.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<TensorValue>);

// `description`, `labels` and `display_name` are not written, as upstream's
// kernel does not write them either.
Status NamelessTensor(KernelContext& c) {
  Summary summary;
  auto* value = summary.add_value();
  value->set_node_name(c.op().name());
  HR_RETURN_IF_ERROR(FillTensorProto(c.input(0), value->mutable_tensor()));
  return SetSummary(c, summary);
}

HR_OP(TensorSummary)
    .Input("tensor: T")
    .Output("summary: string")
    .Attr("T: type")
    .Attr("description: string = ''")
    .Attr("labels: list(string) = []")
    .Attr("display_name: string = ''")
    .Doc("A Summary of a tensor.")
    .Shape(OneString)
    .NoGradient()
    .Cpu(Compute<NamelessTensor>);

}  // namespace
}  // namespace headrace
