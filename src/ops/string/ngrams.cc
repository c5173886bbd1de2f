// StringNGrams, UnsortedSegmentJoin: strings of several strings.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "op/op.h"
#include "ops/ragged/splits.h"

namespace headrace {
namespace {

struct Widths {
  std::vector<int64_t> widths;
  int64_t pad_width;  // negative: as wide as the n-gram lets
  bool keeps_short;
};

// One row's strings with their padding; n-grams are runs of these.
class Row {
 public:
  Row(const std::string* begin, int64_t n, const ResolvedOp& op)
      : begin_(begin),
        n_(n),
        left_(op.string_attr("left_pad")),
        right_(op.string_attr("right_pad")),
        separator_(op.string_attr("separator")) {}

  int64_t Padding(const Widths& w, int64_t width) const {
    // More would make n-grams of padding alone.
    return std::min(w.pad_width < 0 ? width - 1 : w.pad_width, width - 1);
  }
  int64_t Count(const Widths& w, int64_t width) const {
    return std::max<int64_t>(0, n_ + 2 * Padding(w, width) - width + 1);
  }
  int64_t TotalCount(const Widths& w) const {
    int64_t total = 0;
    for (int64_t width : w.widths) total += Count(w, width);
    return total > 0 || !KeepsShort(w) ? total : 1;
  }
  bool KeepsShort(const Widths& w) const { return w.keeps_short && n_ > 0; }

  // Writes TotalCount strings.
  void Write(const Widths& w, std::string* out) const {
    const std::string* first = out;
    for (int64_t width : w.widths) {
      const int64_t pad = Padding(w, width);
      for (int64_t i = 0; i < Count(w, width); ++i) {
        *out++ = Run(i - pad, width);
      }
    }
    if (out == first && KeepsShort(w)) {
      // Shorter than every n-gram: all of it, with its padding.
      const int64_t pad = std::max<int64_t>(0, w.pad_width);
      *out = Run(-pad, n_ + 2 * pad);
    }
  }

 private:
  // `width` strings from place `at`, where places outside are padding.
  std::string Run(int64_t at, int64_t width) const {
    std::vector<StringView> parts;
    for (int64_t i = at; i < at + width; ++i) {
      parts.push_back(i < 0 ? left_ : i >= n_ ? right_ : begin_[i]);
    }
    return absl::StrJoin(parts, separator_);
  }

  const std::string* begin_;
  const int64_t n_;
  const std::string &left_, &right_, &separator_;
};

Status CheckDataSplits(const Tensor& splits, int64_t n) {
  if (splits.rank() != 1) {
    return InvalidArgument("data_splits must be a vector, got shape ",
                           splits.shape());
  }
  if (splits.num_elements() == 0) return OkStatus();
  if (splits.IntAt(0) != 0) {
    return InvalidArgument("First split value must be 0, got ",
                           splits.IntAt(0));
  }
  for (int64_t i = 1; i < splits.num_elements(); ++i) {
    if (splits.IntAt(i) < splits.IntAt(i - 1) || splits.IntAt(i) > n) {
      return InvalidArgument("Invalid split value ", splits.IntAt(i),
                             ", must be in [", splits.IntAt(i - 1), ", ", n,
                             "]");
    }
  }
  if (splits.IntAt(splits.num_elements() - 1) != n) {
    return InvalidArgument("Last split value must be data size. Expected ", n,
                           ", got ", splits.IntAt(splits.num_elements() - 1));
  }
  return OkStatus();
}

StatusOr<Widths> WidthsOf(const ResolvedOp& op) {
  Widths w{op.attr<std::vector<int64_t>>("ngram_widths"),
           op.int_attr("pad_width"), op.bool_attr("preserve_short_sequences")};
  for (int64_t width : w.widths) {
    if (width <= 0) {
      return InvalidArgument("ngram_widths must contain positive values");
    }
  }
  if (w.pad_width > 1 << 20) {
    return InvalidArgument("pad_width ", w.pad_width, " is too large");
  }
  return w;
}

Status NGrams(KernelContext& c) {
  const Tensor& splits = c.input(1);
  HR_RETURN_IF_ERROR(CheckDataSplits(splits, c.input(0).num_elements()));
  HR_ASSIGN_OR_RETURN(const Widths w, WidthsOf(c.op()));
  HR_RETURN_IF_ERROR(c.Allocate(1, splits.shape()));
  const int64_t rows = std::max<int64_t>(0, splits.num_elements() - 1);
  auto row = [&](int64_t i) {
    const int64_t begin = splits.IntAt(i);
    return Row(c.in<std::string>(0) + begin, splits.IntAt(i + 1) - begin,
               c.op());
  };
  int64_t total = 0;
  if (splits.num_elements() > 0) SetInt(c.output(1), 0, 0);
  for (int64_t i = 0; i < rows; ++i) {
    total += row(i).TotalCount(w);
    if (total > INT32_MAX && splits.dtype() == DType::kInt32) {
      return InvalidArgument("the splits of ", total,
                             " n-grams do not fit in int32");
    }
    SetInt(c.output(1), i + 1, total);
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{total}));
  for (int64_t i = 0; i < rows; ++i) {
    row(i).Write(w, c.out<std::string>(0) + c.output(1).IntAt(i));
  }
  return OkStatus();
}

Status NGramsShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return InvalidArgument("data must be a vector, got shape ", c.input(0));
  }
  c.set_output(0, Shape{Shape::kUnknown});
  c.set_output(1, c.input(1));
  return OkStatus();
}

HR_OP(StringNGrams)
    .Input("data: string")
    .Input("data_splits: Tsplits")
    .Output("ngrams: string")
    .Output("ngrams_splits: Tsplits")
    .Attr("separator: string")
    .Attr("ngram_widths: list(int) >= 0")
    .Attr("left_pad: string")
    .Attr("right_pad: string")
    .Attr("pad_width: int")
    .Attr("preserve_short_sequences: bool")
    .Attr("Tsplits: {int32, int64} = DT_INT64")
    .Doc("Runs of neighbouring strings of each row, joined.")
    .Shape(NGramsShape)
    .Cpu(ComputeOwn<NGrams>);

Status SegmentJoinShape(ShapeContext& c) {
  const Shape &in = c.input(0), &ids = c.input(1);
  if (ids.known_rank() && ids.rank() == 0) {
    return InvalidArgument("Segment_id cannot have rank 0");
  }
  if (!in.known_rank() || !ids.known_rank()) return OkStatus();
  if (ids.rank() > in.rank()) {
    return OutOfRange("Invalid segment_id rank ", ids.rank(),
                      " for input with ", in.rank(), " dimension(s)");
  }
  if (!in.Sub(0, ids.rank()).CompatibleWith(ids)) {
    return InvalidArgument("segment_ids of shape ", ids,
                           " are no prefix of the shape ", in, " of inputs");
  }
  const Tensor* n = c.value(2);
  if (n != nullptr && (n->rank() != 0 || n->IntAt(0) < 0)) {
    return InvalidArgument("Number of segments must be a scalar of at least 0");
  }
  Shape out{n == nullptr ? Shape::kUnknown : n->IntAt(0)};
  c.set_output(0, out.Concat(in.Sub(ids.rank(), in.rank())));
  return OkStatus();
}

Status SegmentJoin(KernelContext& c) {
  const Tensor& ids = c.input(1);
  const std::string& separator = c.op().string_attr("separator");
  const int64_t segments = c.output(0).dim(0);
  const int64_t inner = ids.num_elements() == 0
                            ? 0
                            : c.input(0).num_elements() / ids.num_elements();
  std::vector<bool> begun(segments, false);
  for (int64_t i = 0; i < ids.num_elements(); ++i) {
    const int64_t id = ids.IntAt(i);
    if (id < 0 || id >= segments) {
      return InvalidArgument(
          "segment_ids are not allowed to exceed num_segments or to have "
          "negative values.");
    }
    for (int64_t k = 0; k < inner; ++k) {
      std::string& out = c.out<std::string>(0)[id * inner + k];
      if (begun[id]) out += separator;
      out += c.in<std::string>(0)[i * inner + k];
    }
    begun[id] = true;
  }
  return OkStatus();
}

HR_OP(UnsortedSegmentJoin)
    .Input("inputs: string")
    .Input("segment_ids: Tindices")
    .Input("num_segments: Tnumsegments")
    .Output("output: string")
    .Attr("separator: string = ''")
    .Attr("Tindices: {int32, int64}")
    .Attr("Tnumsegments: {int32, int64} = DT_INT32")
    .Doc("The strings of each segment, joined.")
    .Shape(SegmentJoinShape)
    .Cpu(Compute<SegmentJoin>);

}  // namespace
}  // namespace headrace
