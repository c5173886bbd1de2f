// StringJoin, ReduceJoin, StringSplit, StringSplitV2.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/sandbox.h"
#include "op/op.h"

namespace headrace {
namespace {

// All inputs that are not scalars have one shape.
Status JoinShape(ShapeContext& c) {
  Shape out;
  bool unknown = false;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Shape& s = c.input(i);
    if (!s.known_rank()) {
      unknown = true;
    } else if (s.rank() > 0) {
      if (out.rank() > 0 && !out.CompatibleWith(s)) {
        return c.Refuse(
            NotMerged(out, s),
            InvalidArgument("Input shapes do not match: ", out, " vs. ", s));
      }
      if (out.rank() > 0) {
        HR_ASSIGN_OR_RETURN(out, MergeShapes(out, s));
      } else {
        out = s;
      }
    }
  }
  c.set_output(0, unknown && out.rank() == 0 ? Shape::UnknownRank() : out);
  return OkStatus();
}

// *out: the parts joined. *total: the bytes of the output so far, which a
// sandbox may not grant: strings that are joined with themselves soon fill any
// memory.
Status JoinParts(absl::Span<const StringView> parts, StringView separator,
                 int64_t* total, std::string* out) {
  for (const StringView part : parts) *total += part.size() + separator.size();
  HR_RETURN_IF_ERROR(CheckSandboxTensor(*total));
  HR_RETURN_IF_ERROR(CheckSandboxMemory(*total));
  *out = absl::StrJoin(parts, separator);
  return OkStatus();
}

Status Join(KernelContext& c) {
  const std::string& separator = c.op().string_attr("separator");
  Tensor& out = c.output(0);
  std::vector<StringView> parts(c.num_inputs());
  int64_t total = 0;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    for (int k = 0; k < c.num_inputs(); ++k) {
      parts[k] = c.in<std::string>(k)[c.input(k).rank() == 0 ? 0 : i];
    }
    HR_RETURN_IF_ERROR(
        JoinParts(parts, separator, &total, &out.data<std::string>()[i]));
  }
  return OkStatus();
}

HR_OP(StringJoin)
    .Input("inputs: N * string")
    .Output("output: string")
    .Attr("N: int >= 0")
    .Attr("separator: string = ''")
    .Doc("Joins strings of several tensors, element by element.")
    .Shape(JoinShape)
    .NoGradient()
    .Cpu(Compute<Join>);

// The axes to join over, the one that runs fastest last.
StatusOr<std::vector<int>> JoinAxes(const Tensor& axes, int rank) {
  std::vector<int> out;
  std::vector<bool> seen(rank, false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    int64_t axis = axes.IntAt(i);
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension ", axis,
                             " for input with ", rank, " dimension(s)");
    }
    if (axis < 0) axis += rank;
    if (seen[axis]) {
      return InvalidArgument("Duplicate reduction dimension ", axis);
    }
    seen[axis] = true;
    out.push_back(static_cast<int>(axis));
  }
  // Joining over the first axis named comes first: it runs fastest.
  std::reverse(out.begin(), out.end());
  return out;
}

Status ReduceJoin(KernelContext& c) {
  const Tensor& in = c.input(0);
  HR_ASSIGN_OR_RETURN(std::vector<int> axes, JoinAxes(c.input(1), in.rank()));
  const std::string& separator = c.op().string_attr("separator");
  const bool keep = c.op().bool_attr("keep_dims");
  std::vector<int> kept;
  Shape out;
  for (int d = 0; d < in.rank(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      kept.push_back(d);
      out.AddDim(in.dim(d));
    } else if (keep) {
      out.AddDim(1);
    }
  }
  HR_RETURN_IF_ERROR(c.Allocate(0, out));
  // The offset of place `i`, counted over `dims` with the last one fastest.
  auto offset = [&](const std::vector<int>& dims, int64_t i) {
    int64_t at = 0;
    for (size_t k = dims.size(); k-- > 0;) {
      at += i % in.dim(dims[k]) * in.shape().Product(dims[k] + 1, in.rank());
      i /= in.dim(dims[k]);
    }
    return at;
  };
  int64_t joined = 1;
  for (int d : axes) joined *= in.dim(d);
  std::vector<StringView> parts(joined);
  int64_t total = 0;
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t base = offset(kept, i);
    for (int64_t k = 0; k < joined; ++k) {
      parts[k] = in.data<std::string>()[base + offset(axes, k)];
    }
    HR_RETURN_IF_ERROR(
        JoinParts(parts, separator, &total, &c.out<std::string>(0)[i]));
  }
  return OkStatus();
}

HR_OP(ReduceJoin)
    .Input("inputs: string")
    .Input("reduction_indices: int32")
    .Output("output: string")
    .Attr("keep_dims: bool = false")
    .Attr("separator: string = ''")
    .Doc("Joins the strings along dimensions.")
    .Shape(ReductionShape)
    .NoGradient()
    .Cpu(ComputeOwn<ReduceJoin>);

Status SplitShape(ShapeContext& c) {
  if (c.input(0).known_rank() && c.input(0).rank() != 1) {
    return InvalidArgument("input must be a vector, got shape: ", c.input(0));
  }
  if (c.input(1).known_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("delimiter must be a scalar, got shape: ",
                           c.input(1));
  }
  c.set_output(0, Shape{Shape::kUnknown, 2});
  c.set_output(1, Shape{Shape::kUnknown});
  c.set_output(2, Shape{2});
  return OkStatus();
}

// Pieces of strings, in their memory, row after row.
struct PieceRows {
  std::vector<StringView> pieces;
  std::vector<int64_t> ends;  // of each row, within `pieces`
};

// The pieces of all strings as a sparse matrix.
Status SetPieces(KernelContext& c, const PieceRows& rows) {
  const auto total = static_cast<int64_t>(rows.pieces.size());
  HR_RETURN_IF_ERROR(c.Allocate(0, Shape{total, 2}));
  HR_RETURN_IF_ERROR(c.Allocate(1, Shape{total}));
  HR_RETURN_IF_ERROR(c.Allocate(2, Shape{2}));
  int64_t* place = c.out<int64_t>(0);
  std::string* text = c.out<std::string>(1);
  int64_t at = 0, widest = 0;
  for (size_t r = 0; r < rows.ends.size(); ++r) {
    const int64_t begin = at;
    for (; at < rows.ends[r]; ++at) {
      place[2 * at] = static_cast<int64_t>(r);
      place[2 * at + 1] = at - begin;
      text[at].assign(rows.pieces[at].data(), rows.pieces[at].size());
    }
    widest = std::max(widest, at - begin);
  }
  c.out<int64_t>(2)[0] = static_cast<int64_t>(rows.ends.size());
  c.out<int64_t>(2)[1] = widest;
  return OkStatus();
}

// As Python's str.split(sep, maxsplit): no `sep` splits at white space. There,
// as upstream has it, what is left after `most` pieces is one more, even if
// nothing is left.
void SplitAt(StringView s, StringView sep, int64_t most,
             std::vector<StringView>* out) {
  int64_t count = 0;
  if (sep.empty()) {
    while (most != 0) {
      s = absl::StripLeadingAsciiWhitespace(s);
      if (count == most) break;
      if (s.empty()) return;
      size_t n = 0;
      while (n < s.size() && !absl::ascii_isspace(s[n])) ++n;
      out->push_back(s.substr(0, n));
      ++count;
      s.remove_prefix(n);
    }
    out->push_back(s);
    return;
  }
  for (; most < 0 || count < most; ++count) {
    const size_t n = sep.size() == 1 ? s.find(sep[0]) : s.find(sep);
    if (n == StringView::npos) break;
    out->push_back(s.substr(0, n));
    s.remove_prefix(n + sep.size());
  }
  out->push_back(s);
}

// Calls split(string, where its pieces go) for every string.
template <typename F>
Status SplitAll(KernelContext& c, F split) {
  PieceRows rows;
  for (const std::string& s : c.input(0).span<std::string>()) {
    split(s, &rows.pieces);
    rows.ends.push_back(static_cast<int64_t>(rows.pieces.size()));
  }
  return SetPieces(c, rows);
}

Status SplitV2(KernelContext& c) {
  const std::string& sep = c.input(1).scalar<std::string>();
  const int64_t most = c.op().int_attr("maxsplit");
  return SplitAll(c, [&](StringView s, std::vector<StringView>* out) {
    SplitAt(s, sep, most, out);
  });
}

HR_OP(StringSplitV2)
    .Input("input: string")
    .Input("sep: string")
    .Output("indices: int64")
    .Output("values: string")
    .Output("shape: int64")
    .Attr("maxsplit: int = -1")
    .Doc("Splits strings as Python's str.split does, into a sparse matrix.")
    .Shape(SplitShape)
    .Cpu(ComputeOwn<SplitV2>);

// Every character of `delimiters` ends a piece; none: every byte is one.
void SplitAtAny(StringView s, StringView delimiters, bool skip_empty,
                std::vector<StringView>* out) {
  if (s.empty()) return;
  if (delimiters.empty()) {
    for (size_t i = 0; i < s.size(); ++i) out->push_back(s.substr(i, 1));
    return;
  }
  while (true) {
    size_t n = std::min(s.find_first_of(delimiters), s.size());
    if (n > 0 || !skip_empty) out->push_back(s.substr(0, n));
    if (n == s.size()) return;
    s.remove_prefix(n + 1);
  }
}

Status Split(KernelContext& c) {
  const std::string& delimiters = c.input(1).scalar<std::string>();
  const bool skip_empty = c.op().bool_attr("skip_empty");
  return SplitAll(c, [&](StringView s, std::vector<StringView>* out) {
    SplitAtAny(s, delimiters, skip_empty, out);
  });
}

HR_OP(StringSplit)
    .Input("input: string")
    .Input("delimiter: string")
    .Output("indices: int64")
    .Output("values: string")
    .Output("shape: int64")
    .Attr("skip_empty: bool = true")
    .Doc("Splits strings at any of some characters, into a sparse matrix.")
    .Shape(SplitShape)
    .NoGradient()
    .Cpu(ComputeOwn<Split>);

}  // namespace
}  // namespace headrace
